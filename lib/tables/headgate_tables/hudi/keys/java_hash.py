"""``String.hashCode`` of Java over whole Arrow columns: h = 31 * h + UTF-16 code unit, from 0, wrapping at 32 bits.

31 is odd, so it has an inverse modulo 2**32, and the hash of a key is a difference of two running sums over the
text of all keys: with G(k) = sum of unit[i] * 31**-(i + 1) for i < k, the key in [a, b) has 31**b * (G(b) - G(a)).
That needs no loop over keys and no equal lengths. The sums run in blocks, so that the table of powers stays in cache.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, pc
from headgate_tables.errors import SchemaError, UnsupportedTypeError

Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
Units: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]

_BLOCK = 1 << 16  # units in a running sum, rows in a column-wise pass
_MANY = 1 << 12  # rows from which one numpy call per character is cheaper than the running sums
_31 = np.uint32(31)


def java_string_hash(values: Array) -> Int32s:
    """Java's ``String.hashCode`` of each value; 0 for null (as ``Objects.hashCode`` has it).

    ``values``: string or large_string, or a dictionary of them; slices work. Returns int32 of the same length.
    Raises UnsupportedTypeError for another type and SchemaError for bytes that are not UTF-8. Hudi: BucketIdentifier.
    """
    if isinstance(values, pa.DictionaryArray):
        of_dictionary = java_string_hash(values.dictionary)
        codes: Int64s = values.indices.fill_null(0).cast(pa.int64()).to_numpy()
        hashes = of_dictionary[codes] if len(of_dictionary) else np.zeros(len(values), np.int32)
    else:
        text, offsets = utf8_parts(values)
        if len(text) == 0 or text.max() < 0x80:
            hashes = _hash(text, offsets).view(np.int32)
        elif values.null_count:
            return java_string_hash(values.fill_null(""))  # bytes under a null need not be UTF-8
        else:
            hashes = _hash(*_utf16(values, text, offsets)).view(np.int32)
    if values.null_count:
        hashes[pc.is_null(values).to_numpy(zero_copy_only=False)] = 0
    return hashes


def utf8_parts(values: Array) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """The bytes of all values, uint8, and the n + 1 offsets of the values in them, int64, from 0. No copy of the bytes."""
    if pa.types.is_string(values.type):
        width: np.dtype[np.int32] | np.dtype[np.int64] = np.dtype(np.int32)
    elif pa.types.is_large_string(values.type):
        width = np.dtype(np.int64)
    else:
        raise UnsupportedTypeError(f"cannot hash {values.type} as text", fix="Cast the column to string.")
    _, offset_buffer, text_buffer = values.buffers()
    if len(values) == 0 or offset_buffer is None:
        return np.empty(0, np.uint8), np.zeros(len(values) + 1, np.int64)
    # Not the whole buffer: it may be longer, and not by a multiple of an offset's size.
    offsets = np.frombuffer(memoryview(offset_buffer), width, len(values) + 1, values.offset * width.itemsize).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    text = np.empty(0, np.uint8) if text_buffer is None else np.frombuffer(memoryview(text_buffer), np.uint8)[first:last]
    return text, offsets - first if first else offsets


def _utf16(values: Array, text: npt.NDArray[np.uint8], offsets: Int64s) -> tuple[npt.NDArray[np.uint16], Int64s]:
    """The text as UTF-16, and the offsets in it: a character is one unit, or two where UTF-8 takes four bytes."""
    try:
        units = np.frombuffer(str(text.data, "utf-8").encode("utf-16-le"), "<u2")
    except UnicodeDecodeError as e:
        row = int(np.searchsorted(offsets, e.start, side="right")) - 1
        raise SchemaError(f"the text in row {row} is not UTF-8", fix="Cast the column from its real encoding.") from e
    starts = np.zeros(len(offsets), np.int64)
    np.cumsum(pc.utf8_length(values).to_numpy(), out=starts[1:])
    starts += np.searchsorted(np.flatnonzero(text >= 0xF0), offsets)
    return units, starts


def _hash(units: Units, offsets: Int64s) -> npt.NDArray[np.uint32]:
    lengths = np.diff(offsets)
    if len(lengths) >= _MANY and lengths.min() == lengths.max() > 0:
        return _column_by_column(units.reshape(len(lengths), -1))
    return _by_running_sums(units, offsets)


def _column_by_column(units: Units) -> npt.NDArray[np.uint32]:
    """Hashes of keys of one length, as a matrix: twice as fast as the running sums."""
    hashes = np.zeros(len(units), np.uint32)
    for start in range(0, len(units), _BLOCK):
        h, block = hashes[start : start + _BLOCK], units[start : start + _BLOCK]
        for position in range(block.shape[1]):
            h *= _31
            h += block[:, position]
    return hashes


def _by_running_sums(units: Units, offsets: Int64s) -> npt.NDArray[np.uint32]:
    powers, inverses = _powers()
    n = len(offsets) - 1
    hashes = np.empty(n, np.uint32)
    sums = np.zeros(min(_BLOCK, len(units)) + 1, np.uint32)
    row = 0
    while row < n:
        start = int(offsets[row])
        end_row = int(np.searchsorted(offsets, start + _BLOCK, side="right")) - 1
        if end_row == row:
            hashes[row] = _one_long(units[start : int(offsets[row + 1])])
            row += 1
            continue
        bounds = offsets[row : end_row + 1] - start
        size = int(bounds[-1])
        np.multiply(units[start : start + size], inverses[:size], out=sums[1 : size + 1])
        np.cumsum(sums[1 : size + 1], out=sums[1 : size + 1], dtype=np.uint32)
        at_bounds = sums[bounds]
        hashes[row:end_row] = (at_bounds[1:] - at_bounds[:-1]) * powers[bounds[1:]]
        row = end_row
    return hashes


def _one_long(units: Units) -> int:
    """The hash of a key longer than a block: the hashes of its pieces, folded."""
    piece_ends = np.append(np.arange(0, len(units), _BLOCK, dtype=np.int64), len(units))
    pieces = _by_running_sums(units, piece_ends)
    h = 0
    for piece, length in zip(pieces.tolist(), np.diff(piece_ends).tolist(), strict=True):
        h = (h * pow(31, length, 1 << 32) + piece) & 0xFFFFFFFF
    return h


@cache
def _powers() -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """31**k for k in 0.._BLOCK and 31**-(k + 1) for k in 0.._BLOCK - 1, modulo 2**32."""
    up = np.full(_BLOCK + 1, 31, np.uint32)
    up[0] = 1
    down = np.full(_BLOCK, pow(31, -1, 1 << 32), np.uint32)
    return np.cumprod(up, dtype=np.uint32), np.cumprod(down, dtype=np.uint32)
