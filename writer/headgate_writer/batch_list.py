"""The rows of a checkpoint in the order of arrival. Each byte is freed with the last row that needs it.

Batches stay unsorted until some of their buckets are flushed; then the rows of these buckets are copied out, and the other rows
into new batches. (A slice for each bucket would cost some microseconds a column, and keep the whole batch alive.)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from headgate_tables.writing import BucketedRows, concatenated

COLUMN_OVERHEAD: Final = 600
"""Bytes that a column of a batch costs besides its values: Arrow and Python objects, and buffers rounded up to 64 bytes
(test_what_single_rows_really_take_is_what_is_counted)."""

_SMALL: Final = 64 << 10
_FAN_IN: Final = 32
"""Small batches that are merged into one. A row is copied once each time that its batch grows by this factor."""
_BUNDLE: Final = 4 << 20
"""Bytes that are sorted at once. Picking rows out of larger batches jumps across memory: a million rows take 0.12 s in batches of
8 MB, 0.30 s in one batch, and 1.6 s in one batch in memory that the process has not used before."""


class BatchList:
    """Batches, oldest rows first. Small ones are merged as they come: a batch of one row costs fifty times its bytes."""

    def __init__(self) -> None:
        self._large: list[BucketedRows] = []
        self._small: list[list[BucketedRows]] = []

    @property
    def overhead(self) -> int:
        """Bytes that the batches take besides their rows."""
        batches = [*self._large, *itertools.chain.from_iterable(self._small)]
        return sum(COLUMN_OVERHEAD * (batch.rows.num_columns + 3) for batch in batches[:1]) * len(batches)

    def add(self, batch: BucketedRows) -> None:
        """Appends a batch."""
        if batch.nbytes >= _SMALL:
            self._large = self.take_all()
            self._large.append(batch)
        else:
            self._add_small(batch, 0)

    def _add_small(self, batch: BucketedRows, tier: int) -> None:
        """Adds a batch to a tier. A batch in tier t was merged from ``_FAN_IN**t`` batches; higher tiers are older."""
        if tier == len(self._small):
            self._small.append([])
        self._small[tier].append(batch)
        if len(self._small[tier]) == _FAN_IN:
            merged = concatenated(self._small[tier])
            merged.nbytes = sum(each.nbytes for each in self._small[tier])
            self._small[tier] = []
            if merged.nbytes >= _SMALL:
                older = [each for batches in reversed(self._small[tier + 1 :]) for each in batches]
                del self._small[tier + 1 :]
                self._large += [*older, merged]
            else:
                self._add_small(merged, tier + 1)

    def take_all(self) -> list[BucketedRows]:
        """Removes and returns all batches, oldest first."""
        batches = [*self._large, *itertools.chain.from_iterable(reversed(self._small))]
        self._large, self._small = [], []
        return batches

    def prepend(self, older: Sequence[BucketedRows]) -> None:
        """Puts batches back before all that have come since."""
        self._large[:0] = older


def bundled(batches: list[BucketedRows]) -> list[BucketedRows]:
    """Returns the same rows in batches of up to ``_BUNDLE`` bytes; a larger batch stays as it is. Empties ``batches``."""
    batches.reverse()
    bundles: list[BucketedRows] = []
    while batches:
        together = [batches.pop()]
        nbytes = together[0].nbytes
        while batches and (nbytes := nbytes + batches[-1].nbytes) <= _BUNDLE:
            together.append(batches.pop())
        bundles.append(concatenated(together))
    return bundles
