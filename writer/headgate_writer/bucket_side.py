"""The bucket side of one table: collects rows by checkpoint and bucket, in durable log files before the checkpoint commits.

The event loop calls the methods; ``run`` flushes one portion after another while more rows come in.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Final, TypeAlias

import pyarrow as pa

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.world import World
from headgate_tables.errors import SyncFailedError, TablesError
from headgate_tables.writing import change_sink, key_group
from headgate_writer.attached import AttachedTable, Membership
from headgate_writer.buffers import Bytes, CheckpointBuffer, FlushCandidate, FlushChoice, MemoryBudget, Portion, next_flush
from headgate_writer.flushing import FlushedPortion, flush, may_be_own
from headgate_writer.frame_reader import FrameReader
from headgate_writer.known_members import KnownMembers
from headgate_writer.progress import ProgressReporter
from headgate_writer.routing import RoutedRows
from headgate_writer.tallies import Tally, tally_messages
from headgate_writer.windows import ReceiveWindow

BucketReport: TypeAlias = Callable[
    [wire.AskInstant | wire.AskCheckpoint | wire.CheckpointFull | wire.Progress | wire.Flushed], None
]

FULL_BUCKET: Final = 64 << 20
"""Arrow bytes at which a bucket is flushed before its checkpoint ends. Higher: fewer log files of a hot bucket."""


class _Checkpoint:
    """One checkpoint at this bucket side. Membership, instant, rows and barriers may come in any order."""

    def __init__(self) -> None:
        self.membership: Membership | None = None
        self.instant = ""
        self.barriers: set[str] = set()
        self.buffer = CheckpointBuffer()
        self.statuses: list[wire.FileStatus] = []
        self.received: dict[str, Tally] = {}
        self.beaten = 0
        self.begun = self.asked = self.full = self.flushed = False

    @property
    def closing(self) -> bool:
        """Whether the barriers of all ingest sides have come, so that no more rows of the checkpoint will."""
        return self.membership is not None and all(member.process in self.barriers for member in self.membership.members)

    @property
    def flushable(self) -> bool:
        """Whether rows may be written: the instant stands on the timeline (rule P3)."""
        return bool(self.instant) and self.membership is not None

    @property
    def early(self) -> Bytes:
        """int64[groups]: bytes that may be flushed before the checkpoint ends; 0 without files left for it (rule EX4)."""
        return self.buffer.early(self.membership.slice_files if self.membership is not None else 0)


class BucketSide:
    """One table's bucket side under one (epoch, generation), until ``close`` (rules RO1 to RO3).

    ``report`` and ``broken`` send to the owner; after ``broken`` nothing is flushed, and no checkpoint is reported. Over the
    exchange ``received`` came, by process id of the sender; ``frames`` reads it, and ``members`` may send it.
    """

    def __init__(
        self,
        attached: AttachedTable,
        process: str,
        budget: MemoryBudget,
        world: World,
        executor: Executor,
        report: BucketReport,
        broken: Callable[[str, bool], None],
    ) -> None:
        self._attached = attached
        self._process = process
        self._budget = budget
        self._world = world
        self._executor = executor
        self._report = report
        self._progress = ProgressReporter(world.clock, report)
        self._on_broken = broken
        self._sink = change_sink(attached.store, attached.definition, epoch=attached.epoch, process=process)
        self.received: dict[str, ReceiveWindow] = {}
        self.frames = FrameReader(attached.definition)
        self.members = KnownMembers(process)
        self._checkpoints: dict[int, _Checkpoint] = {}
        self._decided = 0
        self._written = self._flushed = 0
        self._over = False
        self._wake = asyncio.Event()
        self._share = budget.add_share(self._wake.set)

    @property
    def uncommitted_bytes(self) -> int:
        """Arrow bytes of the checkpoints that are not decided, flushed ones included."""
        return sum(int(each.buffer.totals.sum()) for each in self._checkpoints.values())

    def set_membership(self, membership: Membership) -> None:
        """Sets the members of a checkpoint (rule RO3). This process need not be one of them."""
        self.members.add_membership(membership)
        if membership.index(self._process) is not None and (current := self._checkpoint(membership.checkpoint)) is not None:
            current.membership = membership
            self._settle(membership.checkpoint)

    def add_rows(self, checkpoint: int, rows: RoutedRows, sender: str) -> None:
        """Adds rows from the ingest side of that process. Call it in the order in which their channels sent them."""
        if not rows.rows.num_rows or (current := self._checkpoint(checkpoint, "rows")) is None:
            return
        current.received.setdefault(sender, Tally()).add(rows.rows.num_rows, rows.checksum)
        first = not current.buffer.groups
        current.buffer.add(rows)
        if first:
            self._report(wire.AskInstant(checkpoint=checkpoint))
        if current.barriers:
            self._progress.report_progress(checkpoint)
        self._settle(checkpoint)

    def add_barrier(self, checkpoint: int, sender: str) -> None:
        """Notes that no more rows of the checkpoint come from that ingest side (rule EX2)."""
        if (current := self._checkpoint(checkpoint, "a barrier")) is None:
            return
        if not current.barriers:
            self._world.reached("first_barrier_in")
        current.barriers.add(sender)
        if current.closing:
            self._world.reached("last_barrier_in")
        self._settle(checkpoint)

    def set_instant(self, checkpoint: int, instant: str) -> None:
        """Sets the instant of the checkpoint, which the owner has announced on the timeline."""
        if (current := self._checkpoint(checkpoint)) is not None:
            current.instant = instant
            self._settle(checkpoint)

    def mark_durable(self, checkpoint: int) -> None:
        """The checkpoint's slot is won: drops all that is kept of it."""
        self._decided = max(self._decided, checkpoint)
        for number in [number for number in self._checkpoints if number <= checkpoint]:
            del self._checkpoints[number]
        self._count()

    async def run(self) -> None:
        """Flushes until it is cancelled, or ``close``. Raises SyncFailedError: this process must not write any more."""
        while not self._over:
            await self._wake.wait()
            self._wake.clear()
            while (chosen := self._next()) is not None:
                await self._flush(chosen)

    def close(self) -> None:
        """Drops everything. Written files stay, for the owner to sweep: their checkpoint may still be decided (rule RO2)."""
        self._over = True
        self.members.close()
        self._budget.remove_share(self._share)
        self._checkpoints.clear()
        self._wake.set()

    def report_broken(self, why: str, *, own: bool = False) -> None:
        """Reports that a commit now could lose rows: the owner has to abort. ``own``: the cause may be this process."""
        if not self._over:
            self._over = True
            self._share.set_bytes(self._share.nbytes, 0)  # it flushes no more, so that other tables are chosen to flush
            self._on_broken(why, own)

    @property
    def over(self) -> bool:
        """Whether it is closed or broken: rows that come now are dropped."""
        return self._over

    def _checkpoint(self, checkpoint: int, late: str = "") -> _Checkpoint | None:
        """Returns the checkpoint's state, None after its end or ``over``. ``late``: what came, if it must not come then."""
        if self._over:
            return None
        current = None if checkpoint <= self._decided else self._checkpoints.setdefault(checkpoint, _Checkpoint())
        if late and (current is None or current.flushed):
            self.report_broken(f"{late} of checkpoint {checkpoint} came after its end")
            return None
        return current

    def _settle(self, checkpoint: int) -> None:
        """Reports the checkpoint if it is complete, and wakes ``run``. Call it after any change to the checkpoint."""
        current = self._checkpoints[checkpoint]
        if current.closing and not current.flushed and not current.buffer.sizes.any():
            current.flushed = True
            self._report(self._flushed_message(checkpoint, current))
        self._count()
        self._wake.set()

    def _flushed_message(self, checkpoint: int, current: _Checkpoint) -> wire.Flushed:
        by_key_group: Counter[int] = Counter()
        for (partition, bucket), nbytes in zip(current.buffer.groups, current.buffer.totals.tolist(), strict=True):
            by_key_group[key_group(partition, bucket, self._attached.definition.key_groups)] += nbytes
        return wire.Flushed(
            checkpoint=checkpoint,
            files=current.statuses,
            key_group_bytes=by_key_group,
            received=tally_messages(current.received),
            beaten=current.beaten,
        )

    def _count(self) -> None:
        if not self._over:
            checkpoints = self._checkpoints.values()
            ready = [each.buffer.sizes if each.closing else each.early for each in checkpoints if each.flushable]
            largest = max((int(sizes.max(initial=0)) for sizes in ready), default=0)
            self._share.set_bytes(sum(each.buffer.nbytes for each in checkpoints), largest)
            self._watch_limits(largest)

    def _watch_limits(self, largest: int) -> None:
        """Asks the owner to end a checkpoint before it reaches a limit: rows that have come cannot be sent back."""
        blocked = older = False
        for number, each in sorted(self._checkpoints.items()):
            if each.membership is None or each.closing:
                continue
            limit = each.membership.slice_bytes
            most = int(each.buffer.totals.max(initial=0)) * self._log_bytes_per_byte if limit else 0
            # Behind an older checkpoint, which ends by now, an instant may wait for its end (rule DE5).
            stuck = self._budget.is_over and not largest and (bool(each.instant) or older) and bool(each.buffer.sizes.any())
            blocked, older = blocked or stuck, True
            if (stuck or (limit and most >= limit)) and not each.full:
                each.full = True
                self._report(wire.CheckpointFull(checkpoint=number))
            elif limit and 2 * most >= limit and not each.asked:
                each.asked = True
                self._report(wire.AskCheckpoint())
        if blocked != self._share.blocked:
            self._share.blocked = blocked
            self._budget.update()

    @property
    def _log_bytes_per_byte(self) -> float:
        """Bytes in log files per Arrow byte of this table's rows, at least 1: small rows grow, large ones are compressed."""
        return max(1.0, self._written / self._flushed) if self._flushed else 1.0

    def _next(self) -> FlushChoice | None:
        if self._over:
            return None
        waiting = [
            FlushCandidate(number, each.buffer.sizes, each.closing, each.early)
            for number, each in sorted(self._checkpoints.items())
            if each.flushable
        ]
        return next_flush(waiting, portion=self._budget.soft // 2, full=FULL_BUCKET, pressed=self._share.must_flush)

    async def _flush(self, chosen: FlushChoice) -> None:
        current = self._checkpoints[chosen.checkpoint]
        if not current.begun:
            current.begun = True
            self._world.reached("first_flush_begun")
        portion = current.buffer.take_portion(chosen.codes)
        self._share.being_flushed = int(portion.nbytes.sum())
        try:
            written = await self._in_executor(chosen.checkpoint, portion)
        except SyncFailedError:
            raise  # it ends the process (hazard H14)
        except (TablesError, pa.ArrowException, OSError) as failed:
            self.report_broken(f"a flush of checkpoint {chosen.checkpoint} failed: {failed}", own=may_be_own(failed))
            return
        finally:
            self._share.being_flushed = 0
        if self._over:
            return
        self._world.reached("file_durable")
        current.statuses += written.statuses
        current.beaten += written.beaten
        self._written += sum(status.size for status in written.statuses)
        self._flushed += int(portion.nbytes.sum())
        current.buffer.finish_portion(portion, written.rest)
        self._progress.report_progress(chosen.checkpoint)
        self._settle(chosen.checkpoint)

    async def _in_executor(self, checkpoint: int, portion: Portion) -> FlushedPortion:
        current = self._checkpoints[checkpoint]
        assert current.membership is not None  # noqa: S101 - what is flushable has a membership
        ordinal, block_format = current.membership.index(self._process) or 0, current.membership.block_format
        versions = current.buffer.files[portion.codes].tolist()
        loop = asyncio.get_running_loop()
        work = partial(
            flush,
            self._sink,
            self._attached.definition,
            current.instant,
            portion,
            versions,
            ordinal=ordinal,
            block_format=block_format,
            progress=partial(loop.call_soon_threadsafe, self._progress.report_progress, checkpoint),
        )
        return await loop.run_in_executor(self._executor, work)
