"""The merge kernel for many keys: finds them by their fingerprints, then compares them.

Arrow's own hash tables give the same answers (``hudi.merge``), but are built anew for each batch of base rows and hold each key
twice: here a key costs about 100 bytes while a share of the logs is decided, and a base row 20 ns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from headgate_tables.arrow import Array, index_array, pc
from headgate_tables.hudi.keys.fingerprint import Fingerprints, fingerprints
from headgate_tables.hudi.merge import (
    BaseOutcome,
    Codes,
    Entries,
    Positions,
    Winners,
    merge_base,
    merge_logs,
    settle,
    winners_of,
    winning_entries,
)

Fingerprint = Callable[[Array], Fingerprints]
_FILTER_BITS = 3
"""The filter has 8 to 16 slots for each winner: one in ten base rows that match nothing passes it."""
_STEPS = 16
"""The most steps from the beginning of a fingerprint's stretch, which is one or two long."""


class KeyIndex:
    """The winners among ``entries``, and an index to compare base rows with them."""

    def __init__(self, entries: Entries, of: Fingerprint = fingerprints) -> None:
        """``of``: gives each key its fingerprint; a test may hand in a bad one."""
        self._of = of
        found = of(entries.keys)
        grouped = _group(entries.keys, found)
        if grouped is None:
            # Two keys of one fingerprint: once in some 10**6 slices of a million keys, or made on purpose.
            self.winners: Winners = merge_logs(entries)
            self._sorted: Fingerprints | None = None
            return
        codes, self._sorted = grouped
        winning = winning_entries(codes, len(self._sorted), entries)
        self.winners = winners_of(entries, entries.keys.take(index_array(winning)), winning)
        bits = max(1, (len(self._sorted) - 1).bit_length())
        self._shift = np.uint64(64 - bits)
        self._starts = np.searchsorted(self._sorted, np.arange(1 << bits, dtype=np.uint64) << self._shift)
        self._filter_shift = np.uint64(64 - bits - _FILTER_BITS)
        self._filter = np.zeros(1 << bits + _FILTER_BITS, dtype=bool)
        self._filter[self._sorted >> self._filter_shift] = True

    def merge_base(self, keys: Array, ordering: Array | None) -> BaseOutcome:
        """See ``merge.merge_base``."""
        if self._sorted is None:
            return merge_base(self.winners, keys, ordering)
        at, candidates = self._match(keys, self._sorted)
        return settle(self.winners, len(keys), at, candidates, ordering)

    def _match(self, keys: Array, known: Fingerprints) -> tuple[Positions, Positions]:
        """Rows whose key is a winner's, and the number of that winner."""
        found = self._of(keys)
        at = np.flatnonzero(self._filter[found >> self._filter_shift])
        wanted = found[at]
        candidates = self._place(known, wanted)
        same = known[candidates] == wanted
        at, candidates = at[same], candidates[same]
        equal = pc.equal(keys.take(index_array(at)), self.winners.keys.take(index_array(candidates)))
        mask = equal.to_numpy(zero_copy_only=False)
        return at[mask], candidates[mask]

    def _place(self, known: Fingerprints, wanted: Fingerprints) -> Positions:
        """The place of each in ``known``, if it is there; otherwise any. Binary searches would take four times as long."""
        last = len(known) - 1
        place: Positions = np.minimum(self._starts[wanted >> self._shift], last)
        for _ in range(_STEPS):
            behind = np.flatnonzero(known[place] < wanted)
            behind = behind[place[behind] < last]
            if not len(behind):
                return place
            place[behind] += 1
        found: Positions = np.minimum(np.searchsorted(known, wanted), last)
        return found


def _group(keys: Array, found: Fingerprints) -> tuple[Codes, Fingerprints] | None:
    """A number for each distinct key, and their fingerprints in that order; None when two keys have one fingerprint."""
    order = np.argsort(found, kind="stable")
    ordered = found[order]
    repeats = np.flatnonzero(ordered[1:] == ordered[:-1])
    first = np.ones(len(ordered), dtype=bool)
    first[repeats + 1] = False
    if len(repeats) and not _all_equal(keys, order[repeats], order[repeats + 1]):
        return None
    codes = np.empty(len(ordered), dtype=np.int32)
    codes[order] = np.cumsum(first, dtype=np.int32) - 1
    return codes, ordered[first]


def _all_equal(keys: Array, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> bool:
    return bool(pc.all(pc.equal(keys.take(index_array(left)), keys.take(index_array(right)))).as_py())
