"""One table under one (epoch, generation): carries the owner's orders out and keeps the holds, until a newer pair comes."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import RpcError, wire_error
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import World
from headgate_tables.errors import SyncFailedError
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
        """Sends in order. A message is lost if the stream ends first."""

    def next_request(self) -> int:
        """Returns a number that is unique on this stream."""

    def send_heartbeat(self) -> None:
        """Sends a heartbeat now: a table's first uncommitted bytes have arrived."""


@dataclass(frozen=True, slots=True)
class WriterResources:
    """What the tables of a process share. ``process``: its id (rule RO8). ``ids``: for the stores.

    ``budget``: of all rows in memory; ``ingest_budget``: of the rows that wait in pipelines. Its limit is smaller, so that rows
    of other writers find room in the end (rule EX4): else two writers full of rows for each other would stand still.
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
    """One table from an Attach to ``close``. ``run`` does its work. ``rate`` limits how fast clients' batches are taken,
    ``window`` how many bytes the filling checkpoint takes. ``failed``: see ``fail``. ``has_part``: the process was a member when
    it was attached, and no writer that its owner has excluded.
    """

    def __init__(
        self,
        attached: AttachedTable,
        membership: Membership,
        owner: Owner,
        parts: WriterResources,
        totals: TableTotals,
        failed: Callable[["TableWriter", Exception], None],
    ) -> None:
        self.attached = attached
        self.owner = owner
        self.had_holds = False
        """Whether any client had a channel here."""
        self.rate = RateLimiter(parts.world.clock)
        self.window = CheckpointWindow(membership.intake_bytes, self.ask_checkpoint)
        self._on_failed = failed
        self._process = parts.process
        self._holds: dict[int, Hold] = {}
        self._opens: dict[int, asyncio.Future[Hold]] = {}
        self._checkpoint_asked = False
        self.has_part = self._takes_rows = membership.index(parts.process) is not None
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
        """The table's name."""
        return self.attached.name

    @property
    def pair(self) -> tuple[int, int]:
        """(epoch, generation)."""
        return self.attached.epoch, self.attached.generation

    @property
    def uncommitted_bytes(self) -> int:
        """Arrow bytes that this process took from clients and that are in no decided checkpoint."""
        return self._pipeline.uncommitted_bytes

    @property
    def channels(self) -> int:
        """Number of channels with a hold here."""
        return len(self._holds)

    @property
    def lags(self) -> Mapping[str, int]:
        """By channel: the offsets from the last durable to the last taken."""
        return {hold.channel: hold.lag for hold in list(self._holds.values())}

    async def run(self) -> None:
        """Runs pipeline, exchange and bucket side until ``close``. Raises, in a group, SyncFailedError: this process must not
        write any more (hazard H14).
        """
        async with asyncio.TaskGroup() as group:
            works = [group.create_task(self._run(part.run)) for part in (self._pipeline, self._exchange, self.side)]
            await self._closed.wait()
            for work in works:
                work.cancel()

    async def _run(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        try:
            await work()
        except SyncFailedError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, other tables go on; it is logged, and an alarm (rule RO12)
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Calls ``failed``, which closes the table at once: nothing of a half-changed state may be reported (rule RO12)."""
        if not self._closed.is_set():
            self._on_failed(self, error)

    def close(self, error: errors_pb2.Error) -> None:
        """Drops everything uncommitted, and ends every channel with ``error``. Reports nothing: the owner knows already."""
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

    async def open_channel(self, channel: str, incarnation: int, principal: str, channels: int = 0) -> Hold:
        """Returns the hold that the owner grants. ``channels``: how many the principal may have; 0: any number.

        Raises RpcError if the owner refuses, or the table changes hands meanwhile.
        """
        if not self._takes_rows:
            raise RpcError(moved_error())
        request = self.owner.next_request()
        opening: asyncio.Future[Hold] = asyncio.get_running_loop().create_future()
        self._opens[request] = opening
        asked = wire.OpenRequest(
            request=request, channel=channel, incarnation=incarnation, principal=principal, channels=channels
        )
        self._report(asked)
        try:
            return await opening
        except asyncio.CancelledError:
            # The client went away just when the grant came.
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                self.release_hold(opening.result())
            raise

    def append_entry(self, entry: Entry) -> None:
        """Puts an entry into the pipeline, and counts its bytes against rate and window."""
        nbytes = entry.batch.nbytes if entry.batch is not None else 0
        self.rate.count_bytes(nbytes)
        self._pipeline.append_entry(entry)
        self.window.count_bytes(nbytes)

    def ask_checkpoint(self) -> None:
        """Asks the owner to end the checkpoint. Asks once before each barrier, which covers the rows of all callers."""
        if not self._checkpoint_asked:
            self._checkpoint_asked = True
            self._report(wire.AskCheckpoint())

    def release_hold(self, hold: Hold) -> None:
        """Ends the hold of a client that has closed its channel or gone away. Accepted rows stay."""
        if self._holds.pop(hold.hold, None) is not None:
            if not hold.ended:
                hold.end()
            self._report(wire.ChannelEnded(channel=hold.channel, hold=hold.hold, uncommitted=hold.uncommitted))

    def end_hold(self, hold: Hold, error: errors_pb2.Error) -> None:
        """Its client may not send rows any more. What was accepted stays."""
        if hold.hold in self._holds:
            self._end(hold, error)

    def move_clients(self) -> None:
        """Sends clients to other writers, because this process leaves. Accepted rows are still committed here."""
        self._takes_rows = False
        for hold in list(self._holds.values()):
            self._end(hold, moved_error())
        for opening in self._opens.values():
            if not opening.done():
                opening.set_exception(RpcError(moved_error()))

    # From the owner, in order (rule RO9).

    def end_checkpoint(self, order: wire.Barrier) -> None:
        """Ends the checkpoint at the ingest side.

        The bucket side gets the next membership at once: other writers' rows may overtake the barrier of this pipeline.
        """
        following = read_membership(order.next, self.attached.definition.key_groups)
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
        """Makes the hold now, not when its client's stream wakes: the next order may end it."""
        opening = self._opens.pop(order.request, None)
        hold = Hold(order.channel, order.hold, order.incarnation, order.committed_offset)
        self._holds[hold.hold] = hold
        self.had_holds = True
        if opening is None or opening.done():
            self.release_hold(hold)
        else:
            opening.set_result(hold)

    def refuse_open(self, order: wire.OpenRefused) -> None:
        opening = self._opens.pop(order.request, None)
        if opening is not None and not opening.done():
            opening.set_exception(RpcError(order.error))

    def end_channel(self, order: wire.EndChannel) -> None:
        """Ends a hold with the owner's error. An unknown hold has ended before, and was reported."""
        hold = self._holds.get(order.hold)
        if hold is not None:
            self._end(hold, order.error)

    def refuse_slices(self, order: wire.RefuseSlices) -> None:
        """Refuses rows of these slices, also in batches that were taken and are not routed yet."""
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

    def _broken(self, why: str, own: bool = False) -> None:
        self._report(wire.Broken(why=why, own_error=own))


def moved_error() -> errors_pb2.Error:
    """The error for clients of a writer that takes no more rows of the table."""
    return wire_error(errors_pb2.CODE_MOVED, "this writer is leaving", "Open the channel again at another writer.")


def _try_again() -> errors_pb2.Error:
    return wire_error(errors_pb2.CODE_UNAVAILABLE, "the table is changing hands", "Send the same again shortly.")
