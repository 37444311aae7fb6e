"""The ingest side of one table: takes batches of many channels, and passes their rows on to bucket sides, by checkpoint.

Batches that wait are checked, keyed and routed together, off the event loop: a hundred channels that send single rows cost a few
kernel calls a turn. Each channel keeps its order: turns follow one another, and each turn keeps the order of its batches.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import pyarrow as pa

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import cut, from_tables, wire_error
from headgate_runtime.world import Clock
from headgate_tables.errors import FixCall
from headgate_tables.face.definition import Definition
from headgate_writer.admission import Admitted
from headgate_writer.attached import AttachedTable, Membership
from headgate_writer.bucket_side import BucketSide
from headgate_writer.buffers import MemoryBudget
from headgate_writer.channels import Entry, Hold
from headgate_writer.exchange import ExchangeSender
from headgate_writer.ingest_queue import Barrier, IngestQueue, arrow_bytes
from headgate_writer.metrics import TableTotals
from headgate_writer.progress import ProgressReporter
from headgate_writer.reservation import Reservation
from headgate_writer.routing import RoutedRows, SliceRefusedError, check_slices, route, split_by_member
from headgate_writer.tallies import Tally, tally_messages

TURN_BYTES = 8 << 20
"""Arrow bytes that are routed at once. Higher: a barrier waits longer, and kernels get no faster."""

PAUSE, PAUSE_AMONG_SEVERAL = 0.01, 0.1
"""Seconds between two turns while little waits and no checkpoint ends, so that more rows share an ack and a turn's fixed cost:
about a millisecond of kernel calls, and as much for each other writer, which gets its rows of a turn in one frame. They delay
`received`, and the refusal of rows, by as much; rows become durable with a checkpoint, seconds later."""

_LITTLE = 256 << 10

INLINE_BYTES, INLINE_BATCHES = 64 << 10, 200
"""A turn within both limits is routed on the loop, in a millisecond or two. On another thread it would take tens of them: each
kernel call releases the interpreter's lock, and a busy loop gives it back late."""

_BAD_ROWS = (FixCall, SliceRefusedError, pa.ArrowException)
"""Errors that refuse a batch. An Arrow kernel that refuses values is the rows' fault, too: if the table failed, its client would
send the batch again, and it would fail again."""

_CHANNELS_NAMED = 3
"""Most channels that the error of a turn names: one of them may send the rows that bring it about."""

Part: TypeAlias = tuple[int, RoutedRows]
"""Rows for the member with that index."""


@dataclass(slots=True)
class _Noted:
    """A checkpoint whose barrier has passed: the holds whose offsets it covers, and the Arrow bytes that clients sent in it."""

    checkpoint: int
    holds: Sequence[Hold]
    nbytes: int


class Pipeline:
    """One table's pipeline under one (epoch, generation). ``on_first_bytes`` is called when the first uncommitted bytes arrive.

    ``budgets`` count the bytes that wait here; a client's stream waits for room in them before it reads on. ``refused_slices``:
    slices that take no rows, by partition path and bucket, with the error for clients.
    """

    def __init__(
        self,
        attached: AttachedTable,
        process: str,
        membership: Membership,
        side: BucketSide,
        exchange: ExchangeSender,
        budgets: Sequence[MemoryBudget],
        executor: Executor,
        clock: Clock,
        totals: TableTotals,
        report: Callable[[wire.BarrierPassed | wire.Progress | wire.WaitsForRoom], None],
        on_first_bytes: Callable[[], None],
    ) -> None:
        self._definition = attached.definition
        self._process = process
        self._membership = membership
        self._side = side
        self._exchange = exchange
        self._reservation = Reservation(budgets)
        self._executor = executor
        self._totals = totals
        self._report = report
        self._on_first_bytes = on_first_bytes
        self._progress = ProgressReporter(clock, report)
        self.refused_slices: Mapping[tuple[str, int], errors_pb2.Error] = {}
        self._queue = IngestQueue()
        self._awake, self._due = asyncio.Event(), asyncio.Event()
        self._grown: dict[Hold, None] = {}
        self._handed: dict[str, Tally] = {}
        self._checkpoint_bytes = 0
        self._noted: list[_Noted] = []
        self._uncommitted = 0
        self._waiting_for_room = False

    @property
    def uncommitted_bytes(self) -> int:
        """Arrow bytes from clients that are in no decided checkpoint.

        At least 1 while an offset without rows (of a skip, or an empty batch) waits for a checkpoint, because an owner starts no
        checkpoint without load.
        """
        return self._uncommitted or int(bool(self._grown) or len(self._queue) > 0)

    def append_entry(self, entry: Entry) -> None:
        """Appends an entry. Its rows are routed, or its hold gets the refusal."""
        first = not self.uncommitted_bytes
        self._queue.append_entry(entry)
        nbytes = arrow_bytes([entry])
        self._uncommitted += nbytes
        self._reservation.add(nbytes)
        self._awake.set()
        if self._queue.nbytes >= _LITTLE:
            self._due.set()
        if first:
            self._on_first_bytes()

    def append_barrier(self, number: int, following: Membership) -> None:
        """Ends the checkpoint: entries appended from now on belong to the next one."""
        self._queue.append_barrier(Barrier(number, following))
        self._awake.set()
        self._due.set()
        self._report_wait()

    def mark_durable(self, number: int) -> None:
        """The checkpoint's slot is won."""
        for noted in self._noted:
            if noted.checkpoint <= number:
                self._uncommitted -= noted.nbytes
                noted.nbytes = 0
                for hold in noted.holds:
                    hold.mark_durable(noted.checkpoint)

    def mark_queryable(self, number: int) -> None:
        """Readers see the checkpoint."""
        for noted in self._noted:
            if noted.checkpoint <= number:
                for hold in noted.holds:
                    hold.mark_queryable(noted.checkpoint)
        self._noted = [noted for noted in self._noted if noted.checkpoint > number]

    def close(self) -> None:
        """Drops all entries that wait. The caller cancels ``run`` as well."""
        self._reservation.close()

    async def run(self) -> None:
        """Routes entries and passes barriers on until it is cancelled."""
        while True:
            await self._awake.wait()
            turn = self._queue.take_turn(TURN_BYTES)
            match turn:
                case Barrier():
                    await self._pass(turn)
                case list():
                    try:
                        await self._route(turn)
                    except Exception as unforeseen:
                        unforeseen.add_note(_while_routing(turn))
                        raise
                case _:
                    assert_never(turn)
            if not self._queue:
                self._awake.clear()
            await self._pause()

    async def _pause(self) -> None:
        """Returns when much waits or a checkpoint ends, and at the latest after a while."""
        if self._queue.has_barrier or self._queue.nbytes >= _LITTLE:
            return
        self._due.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PAUSE_AMONG_SEVERAL if len(self._membership.members) > 1 else PAUSE):
                await self._due.wait()

    async def _route(self, turn: list[Entry]) -> None:
        live = [entry for entry in turn if not entry.dropped]
        for entry in live:
            entry.under_way = True
        batches = [entry.batch for entry in live if entry.batch is not None]
        try:
            parts = await self._routed(batches) if batches else []
        except _BAD_ROWS:
            await self._route_singly(live)
        else:
            await self._hand_over(parts, live)
        nbytes = arrow_bytes(turn)
        self._uncommitted -= nbytes - sum(entry.batch.nbytes for entry in live if entry.batch is not None and not entry.dropped)
        self._reservation.free(nbytes)
        if self._queue.has_barrier:
            self._progress.report_progress(self._membership.checkpoint)

    async def _route_singly(self, entries: list[Entry]) -> None:
        """Routes each entry by itself after one of them failed: that one stops its channel, and only that channel (rule CH2)."""
        for entry in entries:
            if entry.dropped:
                continue
            try:
                parts = await self._routed([entry.batch]) if entry.batch is not None else []
            except _BAD_ROWS as refused:
                entry.dropped = True
                entry.hold.refuse_taken(entry, _refusal(refused), refused.rows if isinstance(refused, SliceRefusedError) else b"")
            else:
                await self._hand_over(parts, [entry])

    async def _routed(self, batches: Sequence[Admitted]) -> list[Part]:
        if len(batches) <= INLINE_BATCHES and sum(batch.nbytes for batch in batches) <= INLINE_BYTES:
            return _routed_parts(batches, self._membership, self._definition, self.refused_slices)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._executor, _routed_parts, batches, self._membership, self._definition, self.refused_slices
        )

    async def _hand_over(self, parts: list[Part], entries: list[Entry]) -> None:
        for index, rows in parts:
            self._totals.rows += rows.rows.num_rows
            member = self._membership.members[index]
            tally = self._handed.setdefault(member.process, Tally())
            if member.process == self._process:
                tally.add(rows.rows.num_rows)
                self._side.add_rows(self._membership.checkpoint, rows, self._process)
            else:
                await self._exchange.send_rows(member, self._membership.checkpoint, rows, tally, self._wait_for_room)
                self._waiting_for_room = False
        nbytes = arrow_bytes(entries)
        self._checkpoint_bytes += nbytes
        self._totals.nbytes += nbytes
        for entry in entries:
            self._grown[entry.hold] = None
            entry.hold.mark_routed(entry)

    def _wait_for_room(self) -> None:
        self._waiting_for_room = True
        self._report_wait()

    def _report_wait(self) -> None:
        """Reports that another bucket side holds up the barrier in the queue: its owner could blame this writer (rule RO11)."""
        if self._waiting_for_room and self._queue.has_barrier:
            self._report(wire.WaitsForRoom(checkpoint=self._membership.checkpoint))

    async def _pass(self, barrier: Barrier) -> None:
        """Notes the checkpoint's offsets now that all its rows have been handed over (rule RO2), and passes the barrier on."""
        offsets = {hold.channel: offset for hold in self._grown if (offset := hold.note_barrier(barrier.checkpoint)) is not None}
        nbytes = self._checkpoint_bytes
        self._noted.append(_Noted(barrier.checkpoint, list(self._grown), nbytes))
        passed = wire.BarrierPassed(
            checkpoint=barrier.checkpoint, offsets=offsets, bytes=nbytes, handed=tally_messages(self._handed)
        )
        self._grown, self._handed, self._checkpoint_bytes = {}, {}, 0
        for member in self._membership.members:
            if member.process == self._process:
                self._side.add_barrier(barrier.checkpoint, self._process)
            else:
                await self._exchange.send_barrier(member, barrier.checkpoint)
        self._exchange.finish_departed(barrier.next.members)
        self._membership = barrier.next
        self._report(passed)


def _routed_parts(
    batches: Sequence[Admitted],
    membership: Membership,
    definition: Definition,
    refused: Mapping[tuple[str, int], errors_pb2.Error],
) -> list[Part]:
    routed = route(batches, definition)
    check_slices(routed, refused)
    return list(split_by_member(routed, membership, definition).items())


def _while_routing(entries: Sequence[Entry]) -> str:
    channels = list(dict.fromkeys(repr(cut(entry.hold.channel)) for entry in entries))
    more = f" and {len(channels) - _CHANNELS_NAMED} more" if len(channels) > _CHANNELS_NAMED else ""
    return f"while rows of {', '.join(channels[:_CHANNELS_NAMED])}{more} were routed"


def _refusal(refused: Exception) -> errors_pb2.Error:
    if isinstance(refused, SliceRefusedError):
        return refused.error
    if isinstance(refused, FixCall):
        return from_tables(refused)
    return wire_error(
        errors_pb2.CODE_CORRUPT_BATCH, f"the rows cannot be stored: {refused}", "Correct the rows, or skip the batch."
    )
