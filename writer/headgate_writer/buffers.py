"""Memory of the rows in buckets: how much there is, what is flushed next, when clients are not read.

Pure, except for the waits of ``MemoryBudget``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate_tables.writing import BucketedRows
from headgate_writer.batch_list import BatchList
from headgate_writer.routing import RoutedRows

Bytes = npt.NDArray[np.int64]


class MemoryBudget:
    """Counts the Arrow bytes of all tables of the process: rows on their way, and rows in buckets.

    ``soft``: from here on the largest buckets are flushed before their checkpoint ends. Lower: more and smaller log files.
    ``hard``: from here on clients are not read; it should be twice ``soft``. A flush takes up to ``soft`` more for a moment: a
    copy of its rows, and their files.

    Other writers' rows need room in buckets only: buckets become free by themselves, while what is on its way here may wait
    for a writer that waits for us (test_two_writers_that_are_full_of_rows_for_each_other_go_on).
    """

    def __init__(self, soft: int, hard: int) -> None:
        self.soft = soft
        self.hard = hard
        self._on_the_way = 0
        self._shares: list[BudgetShare] = []
        self._has_room = asyncio.Event()
        self._has_bucket_room = asyncio.Event()
        self._update()

    @property
    def used(self) -> int:
        """Bytes in memory now."""
        return self._on_the_way + self._waiting

    @property
    def has_room(self) -> bool:
        """Whether clients are read."""
        return self._has_room.is_set()

    @property
    def has_bucket_room(self) -> bool:
        """Whether other writers may send rows."""
        return self._has_bucket_room.is_set()

    async def wait_for_room(self) -> None:
        """Waits until clients may be read."""
        await self._has_room.wait()

    async def wait_for_bucket_room(self) -> None:
        """Waits until other writers may send rows."""
        await self._has_bucket_room.wait()

    def reserve(self, nbytes: int) -> None:
        """Counts bytes on their way from a client or to another writer. Never refuses: call ``wait_for_room`` before."""
        self._on_the_way += nbytes
        self._update()

    def free(self, nbytes: int) -> None:
        """Gives back bytes that ``reserve`` has counted."""
        self._on_the_way -= nbytes
        self._update()

    def add_share(self, wake: Callable[[], None]) -> BudgetShare:
        """Returns a new share, for the buckets of one table. Calls ``wake`` when that table has to flush."""
        share = BudgetShare(self, wake)
        self._shares.append(share)
        return share

    def remove_share(self, share: BudgetShare) -> None:
        """Gives the bytes of the share back. A second call does nothing."""
        if share in self._shares:
            share.set_bytes(0, 0)
            self._shares.remove(share)

    def share_to_flush(self) -> BudgetShare | None:
        """Returns the share that has to flush now: that with the largest bucket, if ``is_over``; else None."""
        if not self.is_over:
            return None
        most = max(self._shares, key=lambda share: share.largest)
        return most if most.largest else None

    @property
    def is_over(self) -> bool:
        """Whether ``soft`` bytes or more wait that are not being flushed."""
        return sum(share.nbytes - share.being_flushed for share in self._shares) >= self.soft

    def update(self) -> None:
        """Call it after a change of a share: wakes the tasks that wait for room, and the table that has to flush."""
        self._update()
        if (chosen := self.share_to_flush()) is not None:
            chosen.wake()

    @property
    def _waiting(self) -> int:
        return sum(share.nbytes for share in self._shares)

    def _update(self) -> None:
        _set(self._has_room, self.used < self.hard)
        # Well above soft, or nobody would flush while everybody waits; below hard, which clients' rows reach as well. A blocked
        # share frees nothing before its checkpoint's barriers are here, and those come behind rows that are on their way.
        blocked = any(share.blocked for share in self._shares)
        _set(self._has_bucket_room, blocked or self._waiting < (self.soft + self.hard) // 2)


def _set(event: asyncio.Event, value: bool) -> None:
    if value:
        event.set()
    else:
        event.clear()


class BudgetShare:
    """One table's bytes. ``nbytes``: in buckets; ``being_flushed``: part of these; ``largest``: the largest bucket to flush.

    ``blocked``: memory is full of rows that no further file may be written for before their checkpoint ends.
    """

    def __init__(self, budget: MemoryBudget, wake: Callable[[], None]) -> None:
        self._budget = budget
        self.wake = wake
        self.nbytes = self.being_flushed = self.largest = 0
        self.blocked = False

    @property
    def must_flush(self) -> bool:
        """Whether this table has to flush now."""
        return self._budget.share_to_flush() is self

    def set_bytes(self, nbytes: int, largest: int) -> None:
        """Sets what is in the buckets now."""
        self.nbytes, self.largest = nbytes, largest
        self._budget.update()


class CheckpointBuffer:
    """The rows of one checkpoint at this bucket side. Buckets are numbered as they appear."""

    def __init__(self) -> None:
        self.groups: list[tuple[str, int]] = []
        self._codes: dict[tuple[str, int], int] = {}
        self._waiting: Bytes = np.zeros(0, np.int64)
        self._total: Bytes = np.zeros(0, np.int64)
        self._files: Bytes = np.zeros(0, np.int64)
        self._batches = BatchList()

    @property
    def sizes(self) -> Bytes:
        """int64[groups]: bytes of each bucket that wait; their sum is exactly what was added and not taken out."""
        return self._waiting[: len(self.groups)]

    @property
    def totals(self) -> Bytes:
        """int64[groups]: bytes of each bucket that were ever added."""
        return self._total[: len(self.groups)]

    @property
    def files(self) -> Bytes:
        """int64[groups]: how often each bucket was taken out; each time is one log file."""
        return self._files[: len(self.groups)]

    def early(self, limit: int) -> Bytes:
        """int64[groups]: as ``sizes``, but 0 for a bucket whose next file is the last of ``limit``: that of the checkpoint's
        end.
        """
        return np.where(self.files < limit - 1, self.sizes, 0) if limit else self.sizes

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, and of the batches that hold them."""
        return int(self.sizes.sum()) + self._batches.overhead

    def add(self, rows: RoutedRows) -> None:
        """``rows`` has at least one row."""
        numbers = self._numbers(rows.groups)
        codes = numbers[rows.group]
        share = np.bincount(rows.group, weights=rows.sizes, minlength=len(rows.groups)).astype(np.int64)
        np.add.at(self._waiting, numbers, share)
        np.add.at(self._total, numbers, share)
        batch = BucketedRows(rows.rows, rows.keys, rows.deletes, codes)
        batch.nbytes = rows.nbytes
        self._batches.add(batch)

    def take_portion(self, codes: npt.NDArray[np.int64]) -> Portion:
        """Takes every row out, those of these buckets to be flushed, the others to be handed back to ``finish_portion``.

        The bytes still count until ``finish_portion``.
        """
        self._files[codes] += 1
        return Portion(self._batches.take_all(), codes, self._waiting[codes], self.groups)

    def finish_portion(self, portion: Portion, rest: Sequence[BucketedRows]) -> None:
        """Forgets the rows that were flushed, and takes ``rest``, the portion's other rows, back."""
        self._waiting[portion.codes] -= portion.nbytes
        self._batches.prepend(rest)

    def _numbers(self, groups: Sequence[tuple[str, int]]) -> npt.NDArray[np.int32]:
        numbers = np.empty(len(groups), np.int32)
        for at, group in enumerate(groups):
            number = self._codes.get(group)
            if number is None:
                number = self._codes[group] = len(self.groups)
                self.groups.append(group)
            numbers[at] = number
        if (more := len(self.groups) - len(self._waiting)) > 0:
            grown = np.zeros(max(more, len(self._waiting)), np.int64)
            self._waiting = np.concatenate([self._waiting, grown])
            self._total = np.concatenate([self._total, grown])
            self._files = np.concatenate([self._files, grown])
        return numbers


@dataclass(frozen=True, slots=True, eq=False)
class Portion:
    """``codes``: the wanted buckets, numbers into ``groups``; ``nbytes``: int64[codes], what they hold in the portion."""

    batches: list[BucketedRows]
    codes: npt.NDArray[np.int64]
    nbytes: Bytes
    groups: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class FlushCandidate:
    """What one checkpoint could flush. ``closing``: all of its rows have arrived, and its end waits for the flush.

    ``early``: of ``sizes`` what may be flushed before that; each flush is one more log file of a slice.
    """

    checkpoint: int
    sizes: Bytes
    closing: bool
    early: Bytes


@dataclass(frozen=True, slots=True, eq=False)
class FlushChoice:
    """The buckets of one checkpoint, by number, that are flushed together."""

    checkpoint: int
    codes: npt.NDArray[np.int64]


def next_flush(checkpoints: Sequence[FlushCandidate], *, portion: int, full: int, pressed: bool) -> FlushChoice | None:
    """Chooses what to flush now; None if nothing. ``checkpoints`` have an instant and are in order.

    First buckets of a closing checkpoint, then buckets of at least ``full`` bytes, then, when ``pressed``, the largest ones.
    Not much more than ``portion`` bytes at once, which bounds the memory that a flush takes.
    """
    for waiting in checkpoints:
        if waiting.closing and waiting.sizes.any():
            return FlushChoice(waiting.checkpoint, _within(np.flatnonzero(waiting.sizes), waiting.sizes, portion))
    for waiting in checkpoints:
        if (waiting.early >= full).any():
            return FlushChoice(waiting.checkpoint, _within(np.flatnonzero(waiting.early >= full), waiting.early, portion))
    if pressed:
        most = max(checkpoints, key=lambda waiting: int(waiting.early.max(initial=0)), default=None)
        if most is not None and most.early.any():
            largest_first = np.argsort(-most.early, kind="stable")[: np.count_nonzero(most.early)]
            return FlushChoice(most.checkpoint, _within(largest_first, most.early, portion))
    return None


def _within(codes: npt.NDArray[np.int64], sizes: Bytes, portion: int) -> npt.NDArray[np.int64]:
    """As many of the buckets, from the first on, as fit; at least one."""
    return codes[: max(1, int(np.searchsorted(np.cumsum(sizes[codes]), portion, side="right")))]
