"""One table under one (epoch, generation): the owner's orders carried out, its channels held, until a newer pair comes."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import RpcError, wire_error
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import World
from headgate_tables.system import Ids
from headgate_writer.attached import AttachedTable, Membership
from headgate_writer.bucket_side import BucketSide
from headgate_writer.buffers import MemoryBudget
from headgate_writer.channels import Entry, Hold
from headgate_writer.checkpoint_window import CheckpointWindow
from headgate_writer.exchange import ExchangeSender
from headgate_writer.metrics import TableTotals
from headgate_writer.orders import read_membership
from headgate_writer.pipeline import Pipeline
from headgate_writer.rate_limiter import RateLimiter
from headgate_writer.reports import Report, set_report


class Owner(Protocol):
    """The control stream on which the table was attached."""

    def send(self, message: wire.ControlRequest) -> None:
        """In order; lost when the stream is."""

    def next_request(self) -> int:
        """Unique on this stream."""

    def send_heartbeat(self) -> None:
        """At once: a table's first uncommitted bytes have arrived."""


@dataclass(frozen=True, slots=True)
class WriterResources:
    """What the tables of a process share. ``process``: its id (rule RO8). ``ids``: the stores' own.

    ``budget``: of all rows in memory; ``ingest_budget``: of those that wait in pipelines. Its limit is smaller, so that
    rows of other writers always find room in the end (rule EX4): two writers full of rows for each other would stand still.
    """

    process: str
    settings: ServiceSettings
    ids: Ids
    world: World
    budget: MemoryBudget
    ingest_budget: MemoryBudget
    cpu: Executor
    flushing: Executor


class TableWriter:
    """Made by an Attach, ends with ``close``. ``run`` does its work until then. ``rate``: how fast clients' batches are taken.

    ``window``: how many of them the filling checkpoint takes.
    """

    def __init__(
        self, attached: AttachedTable, membership: Membership, owner: Owner, parts: WriterResources, totals: TableTotals
    ) -> None:
        self.attached = attached
        self.owner = owner
        self.rate = RateLimiter(parts.world.clock)
        self.window = CheckpointWindow(membership.intake_bytes, self.ask_checkpoint)
        self._process = parts.process
        self._holds: dict[int, Hold] = {}
        self._opens: dict[int, asyncio.Future[Hold]] = {}
        self._checkpoint_asked = False
        self._takes_rows = membership.index(parts.process) is not None
        self._closed = asyncio.Event()
        self.side = BucketSide(attached, parts.process, parts.budget, parts.world, parts.flushing, self._report, self._broken)
        self.side.set_membership(membership)
        self._exchange = ExchangeSender(
            attached, parts.process, parts.settings, parts.world.clock, self._broken, parts.budget, parts.cpu
        )
        self._pipeline = Pipeline(
            attached,
            parts.process,
            membership,
            self.side,
            self._exchange,
            (parts.budget, parts.ingest_budget),
            parts.cpu,
            parts.world.clock,
            totals,
            self._report,
            owner.send_heartbeat,
        )

    @property
    def name(self) -> str:
        """The table's."""
        return self.attached.name

    @property
    def pair(self) -> tuple[int, int]:
        """(epoch, generation)."""
        return self.attached.epoch, self.attached.generation

    @property
    def uncommitted_bytes(self) -> int:
        """Arrow bytes that this process took from clients and that are not committed."""
        return self._pipeline.uncommitted_bytes

    @property
    def channels(self) -> int:
        """Held now."""
        return len(self._holds)

    @property
    def lags(self) -> Mapping[str, int]:
        """By channel: offsets that were taken and are not durable."""
        return {hold.channel: hold.lag for hold in list(self._holds.values())}

    async def run(self) -> None:
        """Until ``close``."""
        async with asyncio.TaskGroup() as group:
            works = [group.create_task(part.run()) for part in (self._pipeline, self._exchange, self.side)]
            await self._closed.wait()
            for work in works:
                work.cancel()

    def close(self, error: errors_pb2.Error) -> None:
        """Drops all that is uncommitted, and ends every channel with ``error``. Reports nothing: the owner knows."""
        for hold in list(self._holds.values()):
            hold.end(error)
        self._holds.clear()
        for opening in self._opens.values():
            if not opening.done():
                opening.set_exception(RpcError(_try_again()))
        self._opens.clear()
        self._pipeline.close()
        self._exchange.close()
        self.side.close()
        self._closed.set()

    # For clients.

    async def open_channel(self, channel: str, incarnation: int, principal: str) -> Hold:
        """Raises RpcError: refused by the owner, or the table changed hands meanwhile."""
        if not self._takes_rows:
            raise RpcError(moved_error())
        request = self.owner.next_request()
        opening: asyncio.Future[Hold] = asyncio.get_running_loop().create_future()
        self._opens[request] = opening
        self._report(wire.OpenRequest(request=request, channel=channel, incarnation=incarnation, principal=principal))
        try:
            return await opening
        except asyncio.CancelledError:
            # The client went away in the very moment in which the grant came.
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                self.release_hold(opening.result())
            raise

    def append_entry(self, entry: Entry) -> None:
        """Into the pipeline."""
        nbytes = entry.batch.nbytes if entry.batch is not None else 0
        self.rate.count_bytes(nbytes)
        self._pipeline.append_entry(entry)
        self.window.count_bytes(nbytes)

    def ask_checkpoint(self) -> None:
        """Once for all who ask before the next barrier: it covers what any of them has sent."""
        if not self._checkpoint_asked:
            self._checkpoint_asked = True
            self._report(wire.AskCheckpoint())

    def release_hold(self, hold: Hold) -> None:
        """Its client has closed it or went away. What was accepted stays."""
        if self._holds.pop(hold.hold, None) is not None:
            if not hold.ended:
                hold.end()
            self._report(wire.ChannelEnded(channel=hold.channel, hold=hold.hold, uncommitted=hold.uncommitted))

    def move_clients(self) -> None:
        """This process leaves: its clients go elsewhere, what was accepted is committed here."""
        self._takes_rows = False
        for hold in list(self._holds.values()):
            self._end(hold, moved_error())
        for opening in self._opens.values():
            if not opening.done():
                opening.set_exception(RpcError(moved_error()))

    # From the owner, in order (rule RO9).

    def end_checkpoint(self, order: wire.Barrier) -> None:
        """The bucket side learns the next membership at once: other writers' rows of it may be faster than our own barrier."""
        following = read_membership(order.next)
        self._checkpoint_asked = False
        self.side.set_membership(following)
        self._pipeline.append_barrier(order.checkpoint, following)
        self.window.begin_checkpoint(following.intake_bytes)
        if following.index(self._process) is None:
            self.move_clients()

    def set_instant(self, order: wire.Instant) -> None:
        self.side.set_instant(order.checkpoint, order.instant)

    def mark_decided(self, order: wire.Decided) -> None:
        if order.level == wire.LEVEL_DURABLE:
            self.side.mark_durable(order.checkpoint)
            self._pipeline.mark_durable(order.checkpoint)
        else:
            self._pipeline.mark_queryable(order.checkpoint)

    def grant_channel(self, order: wire.Grant) -> None:
        """The hold is there from this moment: the next order may end it."""
        opening = self._opens.pop(order.request, None)
        hold = Hold(order.channel, order.hold, order.incarnation, order.committed_offset)
        self._holds[hold.hold] = hold
        if opening is None or opening.done():
            self.release_hold(hold)
        else:
            opening.set_result(hold)

    def refuse_open(self, order: wire.OpenRefused) -> None:
        opening = self._opens.pop(order.request, None)
        if opening is not None and not opening.done():
            opening.set_exception(RpcError(order.error))

    def end_channel(self, order: wire.EndChannel) -> None:
        """An unknown hold has ended by itself, and this was reported."""
        hold = self._holds.get(order.hold)
        if hold is not None:
            self._end(hold, order.error)

    def refuse_slices(self, order: wire.RefuseSlices) -> None:
        """For batches that are not routed yet."""
        self._pipeline.refused_slices = {(each.partition, each.bucket): each.why for each in order.slices}

    def _end(self, hold: Hold, error: errors_pb2.Error) -> None:
        hold.end(error)
        self.release_hold(hold)

    def _report(self, content: Report) -> None:
        if self._closed.is_set():
            return
        attached = self.attached
        report = wire.TableReport(table=attached.name, epoch=attached.epoch, generation=attached.generation)
        set_report(report, content)
        self.owner.send(wire.ControlRequest(table=report))

    def _broken(self, why: str) -> None:
        self._report(wire.Broken(why=why))


def moved_error() -> errors_pb2.Error:
    """This writer takes no rows of the table any more."""
    return wire_error(errors_pb2.CODE_MOVED, "this writer is leaving", "Open the channel again at another writer.")


def _try_again() -> errors_pb2.Error:
    return wire_error(errors_pb2.CODE_UNAVAILABLE, "the table is changing hands", "Send the same again shortly.")
