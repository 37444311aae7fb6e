"""Writers in this process, with real sockets and files, under a scripted owner; and that owner's commits."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from headgate_coordinator.core.reconciling import reconcile
from headgate_coordinator.streams.messages import event_of
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.world import World
from headgate_tables import hudi
from headgate_tables.commitlog.records import DataFile
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_writer.channels import Hold
from headgate_writer.process import Writer, running
from headgate_writer.settings import WriterSettings
from headgate_writer.table_writer import TableWriter
from support.processes import READY_S
from support.producer import Producer, producers
from support.scripted_owner import OwnedTable, ScriptedOwner, WriterLink, scripted_owner
from support.tables import create

TABLE = "table"


@dataclass
class Cluster:
    """A table of support.tables, its owner, and writers that have attached it. ``links`` are in the order of ``writers``."""

    owner: ScriptedOwner
    table: hudi.Table
    owned: OwnedTable
    writers: list[Writer]
    links: list[WriterLink]
    clients: list[Any]

    def producer(self, writer: int = 0) -> Producer:
        """A client of that writer, not yet open."""
        return cast(Producer, self.clients[writer]())

    async def channel(self, name: str = "c", *, writer: int = 0, hold: int = 1, committed: int = 0) -> Producer:
        """An open one."""
        producer = self.producer(writer)
        await producer.open(TABLE, name)
        await self.owned.grant(self.links[writer], hold=hold, committed=committed)
        producer.offset = (await producer.opened()).committed_offset
        return producer

    async def held(self) -> tuple[TableWriter, Hold]:
        """The first writer's side of the table, once it is attached, and its hold of a channel "c" that has no client."""
        tables = self.writers[0].tables
        while (writer := tables.writer_of(TABLE)) is None:
            await tables.wait_for_change(TABLE)
        opening = asyncio.ensure_future(writer.open_channel("c", 0, "somebody"))
        await self.owned.grant(self.links[0])
        return writer, await opening

    async def attached(self, epoch: int, generation: int = 1, *, writer: int = 0) -> None:
        """Waits until that writer obeys the owner of that epoch, in that generation."""
        tables = self.writers[writer].tables
        while (now := tables.current_side(TABLE)) is None or now[:2] != (epoch, generation):
            await tables.wait_for_change(TABLE)

    async def end_checkpoint(self, number: int, following: Sequence[WriterLink] | None = None) -> list[wire.BarrierPassed]:
        """Sends the barrier; what each ingest side noted."""
        self.owned.barrier(self.links, number, following)
        return [await link.report("barrier_passed") for link in self.links]

    async def commit(self, number: int, following: Sequence[WriterLink] | None = None) -> dict[str, int]:
        """Ends the checkpoint, writes and commits it, tells all writers; returns the offsets that it holds."""
        transaction = self.table.transaction()
        transaction.announce()
        for link in self.links:
            self.owned.order(link, instant=wire.Instant(checkpoint=number, instant=transaction.instant))
        noted = await self.end_checkpoint(number, following)
        flushed = [await link.report("flushed") for link in self.links]
        _assert_they_agree(self.links, noted, flushed)
        for each in flushed:
            assert each.checkpoint == number
            transaction.add([_status(file) for file in each.files])
        transaction.commit()
        self.owned.decided(self.links, number, wire.LEVEL_DURABLE)
        self.owned.decided(self.links, number, wire.LEVEL_QUERYABLE)
        return {channel: offset for each in noted for channel, offset in each.offsets.items()}


@asynccontextmanager
async def opened_channel(owner: ScriptedOwner, table: hudi.Table) -> AsyncIterator[tuple[WriterLink, OwnedTable, Producer]]:
    """Attaches the table to the next writer that connects to ``owner``, and opens a channel to that writer."""
    assert table.definition is not None
    owner.tables.add(TABLE)  # the open may come to the writer before the attachment, and the writer then asks for the table
    link = await owner.writer()
    owned = OwnedTable(TABLE, table.url, table.definition)
    owned.attach([link])
    async with producers(link.address) as client:
        channel = client()
        await channel.open(TABLE)
        await owned.grant(link)
        await channel.opened()
        yield link, owned, channel


@asynccontextmanager
async def cluster(tmp_path: Path, *, writers: int = 1, world: World | None = None, **settings: Any) -> AsyncIterator[Cluster]:
    """Running, in checkpoint 1. A block that takes longer than READY_S fails: something that it awaits never comes."""
    table = create(tmp_path)
    assert table.definition is not None
    async with asyncio.timeout(READY_S), AsyncExitStack() as stack:
        owner = await stack.enter_async_context(scripted_owner())
        owner.tables.add(TABLE)
        owned = OwnedTable(TABLE, table.url, table.definition)
        made = Cluster(owner, table, owned, [], [], [])
        for _ in range(writers):
            # Orders and opens come on two connections: an open that is faster than its attachment waits for it.
            configured = WriterSettings(coordinator=[owner.address], **{"attach_timeout": READY_S, **settings})
            writer = await stack.enter_async_context(running(configured, world or World.real()))
            made.writers.append(writer)
            made.links.append(await owner.writer())
            await writer.coordinators.welcomed.wait()  # until then it has nobody to ask whether a table is there
            made.clients.append(await stack.enter_async_context(producers(writer.address)))
        owned.attach(made.links)
        yield made


def _assert_they_agree(
    links: Sequence[WriterLink], passed: Sequence[wire.BarrierPassed], flushed: Sequence[wire.Flushed]
) -> None:
    """As the owner looks at them (rule RO10)."""
    barriers = {
        link.process: event_of(link.process, wire.TableReport(barrier_passed=each))
        for link, each in zip(links, passed, strict=True)
    }
    files = {
        link.process: event_of(link.process, wire.TableReport(flushed=each)) for link, each in zip(links, flushed, strict=True)
    }
    assert reconcile(cast(Any, barriers), cast(Any, files)) == []


def _status(file: wire.FileStatus) -> WriteStatus:
    stat = WriteStat(file.file_id, file.partition, file.name, file.size, file.rows, file.deletes, file.log_version)
    return WriteStatus(stat, DataFile(stat.path, file.size, file.sha256, file.stage))
