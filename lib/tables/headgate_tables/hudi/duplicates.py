"""Keeps one row per record of a batch: nobody could ever see the others, so they are not written."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array
from headgate_tables.hudi.merge import latest_rows

Ints = npt.NDArray[np.int64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""For Fibonacci hashing: the high bits of the product with it depend on all bits of the mark."""


def one_row_per_key(keys: Array, ordering: Array | None, groups: Ints, hashes: npt.NDArray[np.uint32]) -> Ints | None:
    """Positions of the rows that stand for their record, ascending; None when every record stands once.

    A record is (group, key), ``groups``: int64[n] below 2**31, ``hashes``: equal for equal keys. The larger ordering
    value wins, a tie goes to the later row; without ``ordering`` the later row wins. Keys are compared only among rows whose
    group and hash may occur twice; all others are known to be alone.
    """
    suspects = _suspects((groups << 32) | hashes.astype(np.int64))
    if not len(suspects):
        return None
    codes = _codes(keys.take(suspects))
    identity = codes if groups.max() == groups.min() else _codes(pa.array((groups[suspects] << 32) | codes))
    winners = latest_rows(identity, ordering.take(suspects) if ordering is not None else None)
    if len(winners) == len(suspects):
        return None
    keep = np.ones(len(groups), dtype=bool)
    keep[suspects] = False
    keep[suspects[winners]] = True
    return np.flatnonzero(keep)


def _suspects(marks: Ints) -> Ints:
    """Positions of all rows whose mark occurs more than once, and of a few others; ascending.

    Each row writes its position into the slot of its mark in a table; a row that finds another position there shares its slot.
    """
    bits = max(8, (8 * len(marks)).bit_length())
    slots = ((marks.astype(np.uint64) * _ODD) >> np.uint64(64 - bits)).astype(np.int64)
    positions = np.arange(len(marks), dtype=np.int32)
    last = np.empty(1 << bits, dtype=np.int32)
    last[slots] = positions
    overwritten = slots[last[slots] != positions]
    if not len(overwritten):
        return np.empty(0, dtype=np.int64)
    shared = np.zeros(1 << bits, dtype=bool)
    shared[overwritten] = True
    found: Ints = np.flatnonzero(shared[slots])
    return found


def _codes(values: Array) -> Ints:
    """int64[n]: equal numbers for equal values, from 0 on."""
    numbers: Ints = values.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
