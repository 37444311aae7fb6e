"""Walks over Avro's binary form, many values at a time: where does each end? No length and no count is trusted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate_tables.hudi.schema.avro_json import AvroSchema, spelled_out

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]

_WIDTHS = {"boolean": 1, "float": 4, "double": 8}


class OutOfStepError(Exception):
    """The bytes do not follow the schema, or only in a way that nobody writes: reading row by row finds out."""


class Walk:
    """``steps``: over items of arrays, after which it gives up. Past the end there are copies of the last byte: positions only
    grow, so who compares the last ones sees it. Its methods raise OutOfStepError.
    """

    def __init__(self, raw: Bytes, steps: int) -> None:
        self._raw = raw
        self._steps = steps

    def past(self, shape: AvroSchema, at: Positions) -> Positions:
        """The positions after the values at ``at``, all of this physical type."""
        if isinstance(shape, list):
            return self._past_union(shape, at)
        kind = shape if isinstance(shape, str) else shape["type"]
        if kind in ("int", "long"):
            return self.whole_numbers(kind, at)[1]
        if kind in ("string", "bytes"):
            return self.texts(at)[1]
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
        return self.items(whole["items"], at)[2] if kind == "array" else self.past(kind, at)

    def texts(self, at: Positions) -> tuple[Positions, Positions]:
        """Where the strings or bytes there begin, and where they end."""
        lengths, at = self.numbers(at)
        if ((lengths < 0) | (lengths > self._raw.size - at)).any():
            raise OutOfStepError
        return at, at + lengths

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

    def whole_numbers(self, kind: str, at: Positions) -> tuple[Positions, Positions]:
        """As ``numbers``, which have to fit the kind, "int" or "long"."""
        numbers, at = self.numbers(at)
        if kind == "int" and (numbers != numbers.astype(np.int32)).any():
            raise OutOfStepError
        return numbers, at

    def given(self, shape: list[AvroSchema], at: Positions) -> tuple[AvroSchema, Positions]:
        """Of unions of null and one type, whose tag is one byte: that type, and the numbers of those at ``at`` that have it."""
        if len(shape) != 2 or "null" not in shape:
            raise OutOfStepError
        null = shape.index("null")
        tags = self._raw.take(at, mode="clip")
        if ((tags != 0) & (tags != 2)).any():
            raise OutOfStepError
        return shape[1 - null], np.flatnonzero(tags != 2 * null)

    def items(self, shape: AvroSchema, at: Positions) -> tuple[Positions, Positions, Positions]:
        """Of all items of arrays: the number of their array at ``at``, and where they begin. And the positions after the arrays.

        Blocks with their size in front, which nobody writes, are left to others.
        """
        at = at.copy()
        going = np.arange(at.size)
        arrays, starts = [going[:0]], [at[:0]]
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
                arrays.append(within)
                starts.append(at[within])
                at[within] = self.past(shape, starts[-1])
                within, left = within[left > 1], left[left > 1] - 1
        return np.concatenate(arrays), np.concatenate(starts), at

    def _past_union(self, shape: list[AvroSchema], at: Positions) -> Positions:
        branch, given = self.given(shape, at)
        at = at + 1
        if given.size == at.size:
            return self.past(branch, at)
        at[given] = self.past(branch, at[given])
        return at
