"""Hazard H14: a writer whose disk has refused to make something durable ends, and its rows are sent again to another one."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.world import World
from headgate_tables.errors import SyncFailedError
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.store import Buffers
from headgate_writer.process import running, serve
from headgate_writer.settings import WriterSettings
from support.failing_syncs import fail_syncs
from support.processes import READY_S
from support.producer import producers
from support.running_writer import TABLE, Cluster, opened_channel
from support.scripted_owner import OwnedTable, scripted_owner
from support.tables import create, notes, rows

ROWS = rows(("a", 1, "x"), ("b", 1, "y"))


@pytest.mark.parametrize("what", ["stage/1", "_1"], ids=["of the folder that its new stage folder is in", "of a file"])
async def test_a_writer_whose_sync_fails_ends_and_its_rows_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The stage folder is there after the failure: a later flush would not sync its name any more, and be acknowledged."""
    table = create(tmp_path)
    assert table.definition is not None
    async with asyncio.timeout(READY_S), scripted_owner() as owner:
        owner.tables.add(TABLE)
        settings = WriterSettings(coordinator=[owner.address])
        serving = asyncio.ensure_future(serve(settings, asyncio.Event(), World.real()))
        async with opened_channel(owner, table) as (link, owned, channel):
            await channel.append(ROWS)
            await channel.acked(received=2)  # else the barrier, on another connection, may come before the rows
            transaction = table.transaction()
            transaction.announce()
            syncs = fail_syncs(monkeypatch, f"/.hoodie/.headgate/{what}" if "/" in what else what)
            owned.order(link, instant=wire.Instant(checkpoint=1, instant=transaction.instant))
            owned.barrier([link], 1)
            await asyncio.wait([serving])
        error = serving.exception()
        assert isinstance(error, ExceptionGroup)
        assert error.subgroup(SyncFailedError) is not None
        assert len(syncs.failed) == 1
        assert not link.count("flushed")
        transaction.rollback()

        async with running(settings, World.real()) as other, producers(other.address) as again:
            link = await owner.writer()
            owned = OwnedTable(TABLE, table.url, table.definition, generation=2)
            owned.attach([link])
            cluster = Cluster(owner, table, owned, [other], [link], [again])
            channel = await cluster.channel()
            await channel.append(ROWS)
            await channel.acked(received=2)
            assert await cluster.commit(1) == {"c": 2}
    assert notes(table) == {"a": "x", "b": "y"}


async def test_a_failed_sync_ends_the_writer_also_when_its_table_was_dropped_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for that flush any more, and the next generation uses the same stage folder."""
    table = create(tmp_path)
    assert table.definition is not None
    async with asyncio.timeout(READY_S), scripted_owner() as owner:
        owner.tables.add(TABLE)
        settings, flushing = WriterSettings(coordinator=[owner.address]), asyncio.Event()
        fails = _hold_up(monkeypatch, partial(asyncio.get_running_loop().call_soon_threadsafe, flushing.set))
        serving = asyncio.ensure_future(serve(settings, asyncio.Event(), World.real()))
        async with opened_channel(owner, table) as (link, owned, channel):
            await channel.append(ROWS)
            await channel.acked(received=2)  # else the barrier, on another connection, may come before the rows
            transaction = table.transaction()
            transaction.announce()
            owned.order(link, instant=wire.Instant(checkpoint=1, instant=transaction.instant))
            owned.barrier([link], 1)
            await flushing.wait()
            OwnedTable(TABLE, table.url, table.definition, generation=2).attach([link])
            await channel.ended()
            fails.set()
            await asyncio.wait([serving])
        error = serving.exception()
        assert isinstance(error, ExceptionGroup)
        assert error.subgroup(SyncFailedError) is not None


def _hold_up(monkeypatch: pytest.MonkeyPatch, begun: Callable[[], object]) -> threading.Event:
    """Staging waits until the event is set, and then the disk does not sync."""
    fails = threading.Event()

    def stage(store: LocalStore, files: Sequence[tuple[str, Buffers]]) -> None:
        begun()
        fails.wait()
        raise SyncFailedError("fsync failed", fix="Look at the disk.")

    monkeypatch.setattr(LocalStore, "stage", stage)
    return fails
