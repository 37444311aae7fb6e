"""What Avro rows are made of, put together for all rows at once.

A row is a series of cells, bytes of which each row uses some (tags of unions, numbers, lengths), and of texts, whose bytes stand
in Arrow's buffers already. Cells side by side are packed in one step, and a kernel of Arrow joins them with the texts row by row.
"""

from __future__ import annotations

import itertools
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, offsets_of, pc

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Cells: TypeAlias = "tuple[Bytes, Mask | None]"
"""uint8[width, rows], or [width, 1] for all rows; and which of them each row uses, bool[width, rows] or bool[rows], None: all."""

_LENGTH_BYTES = 4
MOST_SHORT = (1 << 31) - 1
"""Bytes of an Arrow array with 32-bit offsets, which are cheaper to make."""
_LARGE = pa.large_binary()


class Pieces:
    """The pieces of so many rows, or of items of lists, from left to right."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._runs: list[list[Cells | int]] = [[]]
        self._texts: list[Array] = []
        self._numbers: list[Ints] = []
        self._given: list[Mask | None] = []
        self._lengths: Ints = np.zeros(rows, dtype=np.int64)

    def add_cells(self, cells: Bytes, used: Mask | None) -> None:
        """See ``Cells``."""
        self._runs[-1].append((cells, used))

    def add_numbers(self, numbers: Ints, given: Mask | None) -> None:
        """int64[rows] as Avro's ints and longs; nothing where it is not ``given``, bool[rows]; None: everywhere."""
        self._runs[-1].append(len(self._numbers))
        self._numbers.append(numbers)
        self._given.append(given)

    def add_texts(self, texts: Array, lengths: Ints) -> None:
        """binary[rows] or large_binary[rows], nothing where it is null; and the bytes of each."""
        self._texts.append(texts)
        self._runs.append([])
        self._lengths += lengths

    def joined(self, *, framed: bool) -> tuple[pa.Buffer, Ints]:
        """The rows' bytes one after the other, and where each begins, int64[rows + 1].

        ``framed``: with the length of each row in four bytes in front of it.
        """
        numbers = self._encoded()
        parts: list[Array] = []
        for run, text in itertools.zip_longest(self._runs, self._texts):
            cells = [numbers[each] if isinstance(each, int) else each for each in run]
            parts += [*([self._packed(cells)] if cells else []), *([text] if text is not None else [])]
        if framed:
            prefix = self._lengths.astype(">i4").view(np.uint8)
            parts.insert(0, _texts(np.arange(self.rows + 1, dtype=np.int32) * np.int32(_LENGTH_BYTES), prefix))
        total = int(self._lengths.sum()) + _LENGTH_BYTES * self.rows
        if total > MOST_SHORT or any(part.type == _LARGE for part in parts):
            parts = [pc.cast(part, _LARGE) for part in parts]
        nothing = pa.scalar(b"", parts[0].type)  # not when this is imported: Arrow would look for pandas
        return bytes_of(pc.binary_join_element_wise(*parts, nothing, null_handling="replace", null_replacement=b""))

    def _encoded(self) -> list[Cells]:
        """Seven bits a byte, the lowest first. All columns at once: each step costs as much for ten of them as for one."""
        if not self._numbers:
            return []
        numbers = np.stack(self._numbers)
        rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
        widths = [max(1, -(-top.bit_length() // 7)) for top in rest.max(axis=1, initial=0).tolist()]
        cells = np.empty((max(widths), *rest.shape), dtype=np.uint8)
        used = np.empty(cells.shape, dtype=np.bool_)
        for at in range(len(cells)):
            used[at] = rest != 0
            low = rest.astype(np.uint8) & 0x7F
            rest = rest >> np.uint64(7)
            cells[at] = low | ((rest != 0).view(np.uint8) << 7)
        used[0] = True
        return [
            (cells[:width, at], given if width == 1 else used[:width, at] if given is None else used[:width, at] & given)
            for at, (width, given) in enumerate(zip(widths, self._given, strict=True))
        ]

    def _packed(self, run: list[Cells]) -> Array:
        """binary[rows]: the used cells of each row."""
        width = sum(len(cells) for cells, _ in run)
        packed = np.empty((self.rows, width), dtype=np.uint8)
        whole = all(used is None for _, used in run)
        mask = None if whole else np.ones((self.rows, width), dtype=np.bool_)
        at = 0
        for cells, used in run:
            packed[:, at : at + len(cells)] = cells.T
            if mask is not None and used is not None:
                mask[:, at : at + len(cells)] = used.T if used.ndim == 2 else used[:, None]
            at += len(cells)
        if mask is None:
            self._lengths += width
            return _texts(np.arange(self.rows + 1, dtype=np.int32) * np.int32(width), packed.ravel())
        offsets = np.zeros(self.rows + 1, dtype=np.int32)
        lengths = np.count_nonzero(mask, axis=1)
        self._lengths += lengths
        np.cumsum(lengths, out=offsets[1:])
        return _texts(offsets, packed[mask])


def bytes_of(texts: Array) -> tuple[pa.Buffer, Ints]:
    """The bytes of binary[n] or large_binary[n] without nulls, one after the other; and where each begins, int64[n + 1]."""
    content = texts.buffers()[2]
    return content if content is not None else pa.py_buffer(b""), offsets_of(texts).astype(np.int64, copy=False)


def _texts(offsets: npt.NDArray[np.int32], raw: Bytes) -> Array:
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(raw.data)]
    made: Array = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    return made
