"""The rows of a checkpoint in the order of arrival. Each byte is freed with the last row that needs it.

Batches stay as they came, unsorted, until some of their buckets are flushed: then these rows are copied out, and the others
into batches of their own. (A slice for each bucket would cost some microseconds a column and keep the whole batch alive.)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from headgate_tables.writing import BucketedRows, concatenated

COLUMN_OVERHEAD: Final = 600
"""Bytes that a column of a batch costs whatever it holds: its Arrow and Python objects, and buffers rounded up to 64 bytes
(test_what_single_rows_really_take_is_what_is_counted)."""

_SMALL: Final = 64 << 10
_FAN_IN: Final = 32
"""So many small batches become one; a row is copied once for each tenfold and a half that they grow."""
_BUNDLE: Final = 4 << 20
"""Bytes that are sorted at once. Rows of far larger batches are picked from all over the memory: 0.12 s for a million rows
in batches of 8 MB, 0.30 s as one, 1.6 s where that is memory that the process had not used before."""


class BatchList:
    """Oldest rows first. Small batches are put together as they come: a batch of one row costs fifty times its bytes."""

    def __init__(self) -> None:
        self._large: list[BucketedRows] = []
        self._small: list[list[BucketedRows]] = []

    @property
    def overhead(self) -> int:
        """Bytes beyond those of the rows."""
        batches = [*self._large, *itertools.chain.from_iterable(self._small)]
        return sum(COLUMN_OVERHEAD * (batch.rows.num_columns + 3) for batch in batches[:1]) * len(batches)

    def add(self, batch: BucketedRows) -> None:
        """Behind all others."""
        if batch.nbytes >= _SMALL:
            self._large = self.take_all()
            self._large.append(batch)
        else:
            self._add_small(batch, 0)

    def _add_small(self, batch: BucketedRows, tier: int) -> None:
        """Tier t holds what ``_FAN_IN**t`` batches became; a higher tier is older."""
        if tier == len(self._small):
            self._small.append([])
        self._small[tier].append(batch)
        if len(self._small[tier]) == _FAN_IN:
            merged = concatenated(self._small[tier])
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
    """The same rows in batches of up to ``_BUNDLE`` bytes, or one of those that came; ``batches`` is emptied on the way."""
    batches.reverse()
    bundles: list[BucketedRows] = []
    while batches:
        together = [batches.pop()]
        nbytes = together[0].nbytes
        while batches and (nbytes := nbytes + batches[-1].nbytes) <= _BUNDLE:
            together.append(batches.pop())
        bundles.append(concatenated(together))
    return bundles
