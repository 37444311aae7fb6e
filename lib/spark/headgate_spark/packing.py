"""Rows on their way from task to task, as pieces in Arrow's own form.

Spark moves rows one by one, and makes them of Arrow batches and Arrow batches of them, which costs more than all that a load
does with them. A piece is one value to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_spark.spread import TASK
from headgate_tables.arrow import Array

PIECE: Final = "_headgate_rows"
PACKED: Final = f"{TASK} int, {PIECE} binary"
_COLUMNS: Final[list[tuple[str, pa.DataType]]] = [(TASK, pa.int32()), (PIECE, pa.binary())]
_SCHEMA: Final = pa.schema(_COLUMNS)
PIECE_BYTES: Final = 1 << 20
"""Of one piece at most, unless one row has more. Not compressed, as Spark compresses what it shuffles."""
PIECES_AT_ONCE: Final = 16
"""So many at most are in memory of Spark's Java at a time, for each task."""
_WAITING_BYTES: Final = 32 << 20
_SHARE_BYTES: Final = 64 << 10
_MOST_WAITING_BYTES: Final = 256 << 20

Numbers = npt.NDArray[np.int32]


class Packer:
    """Collects the rows of one task until they are worth pieces: 32 MiB, or 64 KiB for each of the ``tasks`` that get them, and
    256 MiB at most.
    """

    def __init__(self, tasks: int) -> None:
        self._most = min(max(_WAITING_BYTES, tasks * _SHARE_BYTES), _MOST_WAITING_BYTES)
        self._waiting: defaultdict[int, list[pa.Table]] = defaultdict(list)
        self._bytes = 0

    def add(self, rows: pa.Table, numbers: Numbers) -> Iterator[pa.RecordBatch]:
        """``numbers``: int32[n], of the task of each row. Yields pieces when there are enough rows: batches of ``PACKED``."""
        order = np.argsort(numbers, kind="stable")
        rows = rows.take(order)
        present, starts = np.unique(numbers[order], return_index=True)
        for number, start, end in zip(present.tolist(), starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            self._waiting[number].append(rows.slice(start, end - start))
        self._bytes += rows.nbytes
        if self._bytes >= self._most:
            yield from self.end()

    def end(self) -> Iterator[pa.RecordBatch]:
        """Yields pieces of all rows that wait."""
        waiting, self._waiting, self._bytes = self._waiting, defaultdict(list), 0
        cut = ((number, rows) for number, parts in waiting.items() for rows in _cut(pa.concat_tables(parts)))
        while some := list(islice(cut, PIECES_AT_ONCE)):
            numbers = pa.array([number for number, _ in some], pa.int32())
            yield pa.RecordBatch.from_arrays([numbers, _packed([rows for _, rows in some])], schema=_SCHEMA)


def _cut(rows: pa.Table) -> Iterator[pa.Table]:
    step = max(1, rows.num_rows * PIECE_BYTES // max(1, rows.nbytes))
    for at in range(0, rows.num_rows, step):
        yield rows.slice(at, step).combine_chunks()


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of all pieces."""
    for batch in batches:
        for piece in batch.column(PIECE):
            with pa.ipc.open_stream(piece.as_buffer()) as stream:
                yield from stream


def _packed(pieces: Sequence[pa.Table]) -> Array:
    """Binary[n]. All are written into one buffer, which is that of the array."""
    sink, ends = pa.BufferOutputStream(), [0]
    for rows in pieces:
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        ends.append(sink.tell())
    _, offsets = pa.array(ends, pa.int32()).buffers()
    packed: Array = pa.Array.from_buffers(pa.binary(), len(pieces), [None, offsets, sink.getvalue()])
    return packed
