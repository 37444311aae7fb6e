"""Orders rows by several columns: one after the other, or along a curve through all of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, ChunkedArray, index_array, pc
from headgate_tables.face.row_order import Curve

_Codes: TypeAlias = npt.NDArray[np.uint64]
_KEY_BITS: Final = 63
_MOST_BITS: Final = 31
"""Of one column: finer than the ranks of as many rows as a file has."""


def order_of(columns: pa.Table, curve: Curve) -> Array:
    """Numbers of the rows, integers[n], in the order of their values; null comes last, equal rows keep their order."""
    if columns.num_columns == 1 or curve == "LINEAR":
        linear: Array = pc.sort_indices(columns, sort_keys=[(name, "ascending") for name in columns.column_names])
        return linear
    bits = min(_MOST_BITS, _KEY_BITS // columns.num_columns)
    codes = [_ranked(column, bits) for column in columns.columns]
    match curve:
        case "ZORDER":
            key = interleaved(codes, bits)
        case "HILBERT":
            key = interleaved(_transposed(codes, bits), bits)
        case _:
            assert_never(curve)
    return index_array(np.argsort(key, kind="stable"))


def _ranked(column: ChunkedArray, bits: int) -> _Codes:
    """The ranks of the values, spread over ``bits`` bits: a curve cuts each column into parts of equally many values."""
    ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.uint64)
    most = int(ranks.max(initial=1))
    spread: _Codes = (ranks - np.uint64(1)) * np.uint64((1 << bits) - 1) // np.uint64(max(1, most - 1))
    return spread


def interleaved(codes: Sequence[_Codes], bits: int) -> _Codes:
    """One number of each row, from the highest bit of each column down to the lowest: its place on the Z curve."""
    key = np.zeros(len(codes[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for each in codes:
            key = (key << np.uint64(1)) | ((each >> np.uint64(bit)) & np.uint64(1))
    return key


def _transposed(codes: Sequence[_Codes], bits: int) -> list[_Codes]:
    """Numbers whose bits, interleaved, are the place on the Hilbert curve (Skilling, Programming the Hilbert curve, 2004)."""
    axes = [each.copy() for each in codes]
    for bit in range(bits - 1, 0, -1):
        _turn(axes, np.uint64(bit))
    for at in range(1, len(axes)):
        axes[at] ^= axes[at - 1]
    flips = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        flips ^= np.where(_is_set(axes[-1], np.uint64(bit)), _below(np.uint64(bit)), np.uint64(0))
    return [each ^ flips for each in axes]


def _turn(axes: list[_Codes], bit: np.uint64) -> None:
    """Undoes the turn of the part of the curve that this bit of the axes selects: inverts or swaps the bits below it."""
    below = _below(bit)
    for at, axis in enumerate(axes):
        inverts = _is_set(axis, bit)
        swapped = np.where(inverts, np.uint64(0), (axes[0] ^ axis) & below)
        axes[0] = axes[0] ^ np.where(inverts, below, swapped)
        if at:
            axes[at] = axis ^ swapped


def _is_set(codes: _Codes, bit: np.uint64) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (codes >> bit) & np.uint64(1) == 1
    return found


def _below(bit: np.uint64) -> np.uint64:
    return (np.uint64(1) << bit) - np.uint64(1)
