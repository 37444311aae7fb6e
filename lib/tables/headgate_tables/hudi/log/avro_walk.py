"""Walks over Avro's binary form without decoding it, many records at a time: where does each value end?

The decoder (``avro_binary``) trusts lengths: one that leads out of its bytes makes it panic, and a panic writes to stderr before
anybody can catch it. So it gets only what was walked over.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from headgate_tables.hudi.schema.avro_json import AvroField, AvroSchema, spelled_out

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]

_AT_ONCE = 8192
"""Records; more of them no longer lie in a core's cache."""
_FEWEST_STEPS = 4096
_ROWS_PER_STEP = 4
"""A step over one item of an array in every record costs about as much as reading four rows one by one: who has used up the
steps reads the block in that way, which takes no longer for many of them."""
_WIDTHS = {"boolean": 1, "float": 4, "double": 8}
_LENGTH = struct.Struct(">i")


class OutOfStepError(Exception):
    """The bytes do not follow the schema, or only in a way that the decoder need not know."""


def row_lengths(fields: list[AvroField], run: memoryview, count: int) -> Positions:
    """Bytes of each of ``count`` rows of these physical ``fields``, which have their lengths, four bytes, in front.

    Raises OutOfStepError unless each begins and ends where it should. ``run``: of bytes.
    """
    walk = Walk(np.frombuffer(run, dtype=np.uint8), _FEWEST_STEPS + count // _ROWS_PER_STEP)
    found, end = [], 0
    for first in range(0, count, _AT_ONCE):
        starts, end = _row_starts(run, end, min(_AT_ONCE, count - first))
        ends = np.append(starts[1:] - _LENGTH.size, end)
        at = starts
        for field in fields:
            at = walk.past(field["type"], at)
        if not np.array_equal(at, ends):
            raise OutOfStepError
        found.append(ends - starts)
    if end != len(run):
        raise OutOfStepError
    return np.concatenate(found)


def _row_starts(run: memoryview, at: int, count: int) -> tuple[Positions, int]:
    """Row by row, since each length says where the next one is: 0.1 s for a million. The first one's length is ``at`` there."""
    starts, size = [], len(run)
    for _ in range(count):
        if at + _LENGTH.size > size:
            raise OutOfStepError
        starts.append(at + _LENGTH.size)
        (length,) = _LENGTH.unpack_from(run, at)
        if length < 0:
            raise OutOfStepError
        at += _LENGTH.size + length
    return np.array(starts, dtype=np.int64), at


class Walk:
    """``steps``: over items of arrays, after which it gives up. Past the end there are copies of the last byte: positions only
    grow, so who compares the last ones sees it.
    """

    def __init__(self, raw: Bytes, steps: int = _FEWEST_STEPS) -> None:
        self._raw = raw
        self._steps = steps

    def past(self, shape: AvroSchema, at: Positions) -> Positions:
        """The positions after the values at ``at``, all of this physical type. Raises OutOfStepError."""
        if isinstance(shape, list):
            return self._past_union(shape, at)
        kind = shape if isinstance(shape, str) else shape["type"]
        if kind in ("int", "long"):
            return self._past_number(at, kind)
        if kind in ("string", "bytes"):
            return self.past_text(at)
        if isinstance(kind, str) and kind in _WIDTHS:
            if kind == "boolean" and (self._raw.take(at, mode="clip") > 1).any():
                raise OutOfStepError
            return at + _WIDTHS[kind]
        whole = spelled_out(shape)
        if kind == "fixed":
            return at + whole["size"]
        if kind == "record":
            for field in whole["fields"]:
                at = self.past(field["type"], at)
            return at
        return self._past_array(whole["items"], at) if kind == "array" else self.past(kind, at)

    def past_text(self, at: Positions) -> Positions:
        """After strings or bytes."""
        lengths, at = self.numbers(at)
        if ((lengths < 0) | (lengths > self._raw.size - at)).any():
            raise OutOfStepError
        return at + lengths

    def numbers(self, at: Positions) -> tuple[Positions, Positions]:
        """The ints or longs there, and the positions after them."""
        byte = self._raw.take(at, mode="clip")
        rest = (byte & 0x7F).astype(np.uint64)
        at = at + 1
        more, shift = np.flatnonzero(byte & 0x80), 7
        while more.size:
            if shift > 63:
                raise OutOfStepError
            byte = self._raw.take(at[more], mode="clip")
            rest[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[more] += 1
            more, shift = more[byte >= 0x80], shift + 7
        return (rest >> np.uint64(1)).view(np.int64) ^ -(rest & np.uint64(1)).view(np.int64), at

    def _past_number(self, at: Positions, kind: str) -> Positions:
        if kind == "long":
            return self.numbers(at)[1]
        numbers, at = self.numbers(at)
        if (numbers != numbers.astype(np.int32)).any():  # of which the decoder would take the lower bits
            raise OutOfStepError
        return at

    def _past_union(self, shape: list[AvroSchema], at: Positions) -> Positions:
        """Of null and one type; the decoder takes any tag but that of null for a value."""
        if len(shape) != 2 or "null" not in shape:
            raise OutOfStepError
        null = shape.index("null")
        tags = self._raw.take(at, mode="clip")
        if ((tags != 0) & (tags != 2)).any():
            raise OutOfStepError
        at = at + 1
        given = np.flatnonzero(tags != 2 * null)
        if given.size == at.size:
            return self.past(shape[1 - null], at)
        at[given] = self.past(shape[1 - null], at[given])
        return at

    def _past_array(self, items: AvroSchema, at: Positions) -> Positions:
        """Blocks of items until an empty one; those with their size in front, which nobody writes, are left to others."""
        at = at.copy()
        going = np.arange(at.size)
        while going.size:
            counts, at[going] = self.numbers(at[going])
            if ((counts < 0) | (counts > self._raw.size - at[going])).any():  # no item is without a byte
                raise OutOfStepError
            going, counts = going[counts > 0], counts[counts > 0]
            within, left = going, counts
            while within.size:
                self._steps -= 1
                if self._steps < 0:
                    raise OutOfStepError
                at[within] = self.past(items, at[within])
                within, left = within[left > 1], left[left > 1] - 1
        return at
