"""The owner drops its table: which one, whose channels end, and what runs meanwhile (rules D5, D7, D8)."""

import asyncio
import threading
from pathlib import Path

import grpc
import pyarrow as pa
import pytest

from headgate_coordinator.tables.endings import Endings
from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1.maintenance_pb2_grpc import MaintenanceServiceStub
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import from_call
from headgate_tables.catalog import FormerTable
from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.errors import StoreDeniedError
from headgate_tables.face.results import DropResult
from headgate_tables.hudi import open_table
from headgate_tables.hudi.services import dropping
from headgate_tables.storage.store import Store
from support.running_coordinator import OPTIONS, Running, T, drop, persist, refused, running_coordinator
from support.scripted_compactor import scripted_compactor
from support.scripted_writer import ScriptedWriter, scripted_writer
from support.tables import SCHEMA, rows

OTHER = pa.schema({"id": pa.int64(), "city": pa.string()})


async def described(coordinator: Running) -> tables_pb2.TableDescription:
    answer = await coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name=T))
    found: tables_pb2.TableDescription = answer.table
    return found


async def drop_again(coordinator: Running, uuid: str) -> api.DropResponse:
    return await persist(lambda: drop(coordinator, uuid))


def folder_of(table: tables_pb2.TableDescription) -> Path:
    return Path(table.url.removeprefix("file://"))


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


@pytest.mark.parametrize("plan_only", [False, True])
async def test_d8_a_drop_that_means_another_table_or_none_ends_no_channel(
    coordinator: Running, writer: ScriptedWriter, plan_only: bool
) -> None:
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    error = await refused(drop(coordinator, "11111111-1111-4111-8111-111111111111", plan_only=plan_only))
    assert (error.code, "another table has this name" in error.message) == (errors_pb2.CODE_INVALID_ARGUMENT, True)
    error = await refused(drop(coordinator, "", plan_only=plan_only))
    assert (error.code, "table_uuid" in error.fix) == (errors_pb2.CODE_INVALID_ARGUMENT, True)
    await writer.commit(T, rows(("b", 1, "y")), "c", 2)
    assert (writer.waiting(T, "detach"), writer.pair(T)) == (0, (1, 1))


async def test_d5_a_plan_ends_no_channel_and_says_what_the_drop_then_deletes(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    table = await described(coordinator)
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    planned = await drop(coordinator, table.table_uuid, plan_only=True)
    assert (planned.dropped_ms, planned.files > 0, planned.bytes > 0) == (0, True, True)
    await writer.commit(T, rows(("b", 1, "y"), part="other"), "c", 2)
    assert writer.waiting(T, "detach") == 0
    done = await drop(coordinator, table.table_uuid)
    assert done.files == planned.files + 1
    assert (await writer.order(T, "detach")).error.code == errors_pb2.CODE_MOVED
    assert left_in(folder_of(table)) == [".headgate-dropped"]


async def test_d5_rows_on_their_way_do_not_hold_a_drop_up_and_a_second_one_has_the_same_answer(
    tmp_path: Path, redis: str
) -> None:
    """The writer has rows of a checkpoint that it never flushes."""
    async with running_coordinator(tmp_path, redis) as coordinator:
        await coordinator.create(T, SCHEMA, **OPTIONS)
        table = await described(coordinator)
        async with scripted_writer(coordinator.address, flushes=False) as writer:
            await writer.order(T, "attach")
            await writer.open(T, "c")
            writer.take(T, rows(("a", 1, "on its way")), "c", 1)
            await writer.order(T, "barrier")
            done = await drop(coordinator, table.table_uuid)
            await writer.order(T, "detach")
        assert left_in(folder_of(table)) == [".headgate-dropped"]
        assert (await drop_again(coordinator, table.table_uuid)).dropped_ms == done.dropped_ms > 0
        error = await refused(drop_again(coordinator, "11111111-1111-4111-8111-111111111111"))
        assert error.code == errors_pb2.CODE_TABLE_DROPPED
        error = await refused(coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name=T)))
        assert (error.code, "was dropped at 2" in error.message) == (errors_pb2.CODE_TABLE_DROPPED, True)


async def test_d5_two_drops_at_once_are_one(coordinator: Running, writer: ScriptedWriter) -> None:
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    table = await described(coordinator)
    tries = [asyncio.ensure_future(drop(coordinator, table.table_uuid)) for _ in range(2)]
    answers = await asyncio.gather(*tries, return_exceptions=True)
    for answer in answers:  # the SDK sends the same again after such an error
        if isinstance(answer, grpc.aio.AioRpcError):
            assert from_call(answer).action == errors_pb2.ACTION_RETRY
    done = [answer.dropped_ms for answer in answers if isinstance(answer, api.DropResponse)]
    assert done
    assert {*done, (await drop_again(coordinator, table.table_uuid)).dropped_ms} == {done[0]}


async def test_d5_a_drop_that_ends_while_it_is_asked_for_again_is_answered(
    coordinator: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end comes between the two looks of the second call."""
    table = await described(coordinator)
    tried, looked, forgotten = threading.Event(), threading.Event(), threading.Event()
    forget, ended = Endings._forget, Endings.ended

    def forget_late(endings: Endings, place: str, done: DropResult) -> None:
        if not tried.is_set():
            tried.set()
            raise StoreDeniedError("scripted", fix="Wait.")
        looked.wait(5)  # the second call may wait for the end itself, and looks after it
        forget(endings, place, done)
        forgotten.set()

    def look_early(endings: Endings, name: str, uuid: str) -> FormerTable | None:
        found = ended(endings, name, uuid)
        looked.set()
        assert forgotten.wait(60)
        return found

    monkeypatch.setattr(Endings, "_forget", forget_late)
    monkeypatch.setattr(Endings, "ended", look_early)
    await refused(drop(coordinator, table.table_uuid))
    assert (await drop_again(coordinator, table.table_uuid)).dropped_ms > 0


async def test_d6_a_compaction_that_ends_after_the_drop_leaves_nothing(coordinator: Running, writer: ScriptedWriter) -> None:
    table = await described(coordinator)
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    async with scripted_compactor(coordinator.address) as compactor:
        compactor.ready()
        progress = MaintenanceServiceStub(coordinator.channel).Compact(api.CompactRequest(table=T))
        order = await compactor.run()
        report = await compactor.report(order)  # its file is there
        await drop(coordinator, table.table_uuid)
        with pytest.raises(grpc.aio.AioRpcError):
            async for _ in progress:
                pass
        compactor.say(report)
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await coordinator.until(T, state="owned")
    assert left_in(folder_of(table)) == [".headgate-dropped"]


async def test_d8_a_table_of_the_name_is_there_again_at_once_with_another_definition_and_nothing_of_the_old_one(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    old = await described(coordinator)
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x"), ("b", 1, "y")), "c", 7)
    old_pair = writer.pair(T)
    done = await drop(coordinator, old.table_uuid)
    await writer.order(T, "detach")
    new = await coordinator.create(T, OTHER, buckets=1)
    assert new.url == f"{old.url}~2"
    assert new.table_uuid != old.table_uuid
    await writer.order(T, "attach")
    assert (await writer.open(T, "c")).committed_offset == 0
    assert writer.pair(T) > old_pair
    late = wire.Flushed(checkpoint=1, files=[wire.FileStatus(partition="p", name="of the old table")])
    writer.report(T, pair=old_pair, flushed=late)
    await writer.commit(T, pa.table({"id": [1], "city": ["Bern"]}, OTHER), "c", 1)
    assert open_table(new.url).scan().to_table().to_pylist() == [{"id": 1, "city": "Bern"}]
    for plan_only in (True, False):
        again = await drop(coordinator, old.table_uuid, plan_only=plan_only)
        assert (again.dropped_ms, again.files) == (done.dropped_ms, 0)
    assert open_table(new.url).scan().to_table().num_rows == 1
    await drop(coordinator, new.table_uuid)
    assert (await coordinator.create(T, SCHEMA, **OPTIONS)).url == f"{old.url}~3"


async def test_no_commit_waits_while_a_plan_lists_the_table(
    coordinator: Running, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing may take minutes. A request for another table lists nothing at all."""
    table = await described(coordinator)
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    listing, go_on = threading.Event(), threading.Event()
    would_drop = dropping.would_drop

    def slowly(store: Store, log: CommitLog) -> DropResult:
        listing.set()
        assert go_on.wait(60)
        return would_drop(store, log)

    monkeypatch.setattr(dropping, "would_drop", slowly)
    error = await refused(drop(coordinator, "11111111-1111-4111-8111-111111111111"))
    assert (error.code, listing.is_set()) == (errors_pb2.CODE_INVALID_ARGUMENT, False)
    planned = asyncio.ensure_future(drop(coordinator, table.table_uuid, plan_only=True))
    try:
        assert await asyncio.to_thread(listing.wait, 60)
        await asyncio.wait_for(writer.commit(T, rows(("b", 1, "y")), "c", 2), 20)
    finally:
        go_on.set()
    assert (await planned).files >= 2
    listing.clear()
    assert (await drop_again(coordinator, table.table_uuid)).dropped_ms
    assert not listing.is_set()
