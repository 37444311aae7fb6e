"""Which orders of which stream reach a table, and who is told what becomes of it: without a network."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.definitions import definition_message
from headgate_runtime.errors import RpcError
from headgate_runtime.world import World
from headgate_tables.system import SystemIds
from headgate_writer.buffers import MemoryBudget
from headgate_writer.settings import WriterSettings
from headgate_writer.table_writer import TableWriter, WriterResources
from headgate_writer.tables import Tables, _largest
from support.processes import READY_S
from support.tables import create


class Owner:
    """A control stream to a coordinator."""

    def __init__(self) -> None:
        self.sent: list[wire.TableReport] = []

    def send(self, message: wire.ControlRequest) -> None:
        self.sent.append(message.table)

    def next_request(self) -> int:
        return len(self.sent) + 1

    def send_heartbeat(self) -> None: ...


class Scene:
    """A writer's tables, and orders about tables that are all the same one on the disk."""

    def __init__(self, tables: Tables, folder: Path) -> None:
        self.tables = tables
        made = create(folder)
        assert made.definition is not None
        self.url, self.definition = made.url, definition_message(made.definition)
        self.groups = made.definition.key_groups

    def order(self, owner: Owner, table: str = "t", epoch: int = 1, generation: int = 1, **content: Any) -> None:
        self.tables.receive_order(owner, wire.TableOrder(table=table, epoch=epoch, generation=generation, **content))

    def attach(
        self, owner: Owner, table: str = "t", epoch: int = 1, generation: int = 1, url: str = "", member: str = "me"
    ) -> None:
        members = [wire.Member(process=member, address="me:1")]
        membership = wire.Membership(checkpoint=1, members=members, assignment=[0] * self.groups)
        content = wire.Attach(membership=membership, url=url or self.url, definition=self.definition)
        self.order(owner, table, epoch, generation, attach=content)


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    budget, intake = MemoryBudget(1 << 30, 1 << 30), MemoryBudget(1 << 30, 1 << 30)
    with ThreadPoolExecutor(1) as threads:
        settings = WriterSettings(coordinator=["c:1"])
        parts = WriterResources("me", settings, SystemIds(), World.real(), budget, intake, threads, threads)
        async with asyncio.timeout(READY_S), asyncio.TaskGroup() as group:
            tables = Tables(parts, str(folder), {}, group)
            try:
                yield Scene(tables, folder)
            finally:
                tables.close()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_coordinator_that_comes_back_on_another_stream_attaches_anew_and_its_older_stream_counts_no_more(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as here:
        older, newer = Owner(), Owner()
        here.attach(older)
        before = here.tables.writer_of("t")
        here.attach(newer)
        now = here.tables.writer_of("t")
        assert now is not before
        assert now is not None
        assert now.owner is newer
        here.order(older, detach=wire.Detach())
        here.tables.owner_lost(older)
        assert here.tables.writer_of("t") is now


async def test_an_attachment_that_comes_twice_on_one_stream_drops_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        owner = Owner()
        here.attach(owner)
        before = here.tables.writer_of("t")
        here.attach(owner)
        assert here.tables.writer_of("t") is before


async def test_ro13_a_writer_without_a_part_gets_one_in_the_same_generation_and_streams_of_others_wait_for_that(
    tmp_path: Path,
) -> None:
    """It was excluded, and is no more. Its bucket side of before knows of no checkpoint that it has a part in."""
    async with scene(tmp_path) as here:
        owner = Owner()
        here.attach(owner, member="other")
        before = here.tables.writer_of("t")
        assert before is not None
        assert here.tables.current_side("t") is None
        here.attach(owner, generation=1, member="me")
        now = here.tables.writer_of("t")
        assert now is not None
        assert now is not before
        assert here.tables.current_side("t") == (1, 1, now.side)
        assert before.side.over


async def test_an_owner_hears_of_loads_of_its_own_tables_only_and_of_none_that_is_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = {"a": 7, "b": 9}
    monkeypatch.setattr(TableWriter, "uncommitted_bytes", property(lambda table: held.get(table.attached.name, 0)))
    async with scene(tmp_path) as here:
        one, other = Owner(), Owner()
        for table, owner in (("a", one), ("b", other), ("idle", one)):
            here.attach(owner, table)
        assert [load.table for load in here.tables.loads(one)] == ["a"]
        assert [load.table for load in here.tables.loads(other)] == ["b"]


async def test_who_waits_for_a_table_and_goes_leaves_nothing_behind(tmp_path: Path) -> None:
    """Clients choose the names, and may ask for tables that nobody ever attaches."""
    async with scene(tmp_path) as made:
        tables = made.tables
        first, second = (asyncio.ensure_future(tables.wait_for_change("never")) for _ in range(2))
        await settled()
        for gone, left in ((first, {"never"}), (second, set[str]())):
            gone.cancel()
            await asyncio.wait([gone])
            assert tables._changes.keys() == left
        third = asyncio.ensure_future(tables.wait_for_change("t"))
        await settled()
        made.attach(Owner())
        await third
        assert not tables._changes


def test_a_heartbeat_has_the_channels_with_the_largest_lags() -> None:
    lags = {f"c{number}": number for number in range(1_500)}
    assert _largest(lags) == {f"c{number}": number for number in range(500, 1_500)}
    assert _largest({"idle": 0, "busy": 3}) == {"busy": 3}


async def test_a_table_that_is_attached_while_the_process_leaves_takes_no_clients(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.tables.move_clients()
        here.attach(Owner())
        writer = here.tables.writer_of("t")
        assert writer is not None
        with pytest.raises(RpcError) as refused:
            await asyncio.wait_for(writer.open_channel("c", 0, "me"), READY_S)
        assert refused.value.error.code == errors_pb2.CODE_MOVED


async def test_a_released_table_is_not_there_and_says_nothing_more_and_who_waited_for_its_owner_hears_so(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        owner = Owner()
        here.attach(owner)
        writer = here.tables.writer_of("t")
        assert writer is not None
        opening = asyncio.ensure_future(writer.open_channel("c", 0, "me"))
        await settled()
        assert [report.WhichOneof("message") for report in owner.sent] == ["open"]
        here.order(owner, detach=wire.Detach())
        assert here.tables.current_side("t") is None
        with pytest.raises(RpcError) as refused:
            await asyncio.wait_for(opening, READY_S)
        assert refused.value.error.code == errors_pb2.CODE_UNAVAILABLE
        writer.ask_checkpoint()
        assert len(owner.sent) == 1


@pytest.mark.parametrize(
    "url", ["file:///etc", "{folder}", "{folder}/../elsewhere", "s3://bucket/table", "http://169.254.169.254/a"]
)
async def test_a_table_outside_of_the_store_is_not_attached_and_others_are(tmp_path: Path, url: str) -> None:
    async with scene(tmp_path) as here:
        owner = Owner()
        here.attach(owner, "elsewhere", url=url.format(folder=tmp_path))
        here.attach(owner, "t")
        assert here.tables.writer_of("elsewhere") is None
        assert here.tables.writer_of("t") is not None
