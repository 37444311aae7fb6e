"""Writes the rows of a base file in the order that the table's settings want, whatever order they come in.

They wait in a scratch file, uncompressed and as they are in memory, so that any of them can be taken from there. Memory holds the
columns of the order, eight bytes a row for the order itself, and two row groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.arrow import ChunkedArray, Field, index_array
from headgate_tables.face.row_order import RowOrder
from headgate_tables.hudi.services.compaction import base_writer
from headgate_tables.hudi.services.compaction.curves import order_of
from headgate_tables.storage.scratch import Scratch

ORDER_KEY: Final = "headgate.order"
"""In the footer of a base file whose rows are sorted: ``RowOrder`` as text."""


class MergeSink(Protocol):
    """Gets merged rows."""

    rows: int

    def write(self, rows: pa.Table) -> None:
        """Adds rows with all columns of the schema but the file's name; texts plain or as dictionaries."""


class RowSink(MergeSink, Protocol):
    """Gets the rows of a base file."""

    def close(self, footer: dict[str, str]) -> None:
        """Writes the rest, and the footer with these keys beside Hudi's own."""


class SortedWriter:
    """``schema``: of the rows, whose columns ``order`` names. ``beat`` is called now and then; what it raises ends the work."""

    def __init__(self, sink: RowSink, schema: pa.Schema, order: RowOrder, scratch: Scratch, beat: Callable[[], None]) -> None:
        self._sink = sink
        self._schema = schema
        self._order = order
        self._scratch = scratch
        self._beat = beat
        self._writer: pa.RecordBatchFileWriter | None = None
        self._keys: list[pa.Table] = []
        self._pending: list[pa.Table] = []
        self._pending_rows = self._pending_bytes = 0
        self._bytes = 0
        self.rows = 0

    def write(self, rows: pa.Table) -> None:
        """See ``RowSink``."""
        if not rows.num_rows:
            return
        plain = pa.table([_plain(column) for column in rows.columns], schema=self._schema)
        self._pending.append(plain)
        self._pending_rows += plain.num_rows
        self._pending_bytes += plain.nbytes
        self.rows += plain.num_rows
        if self._pending_rows >= base_writer.GROUP_ROWS or self._pending_bytes >= base_writer.GROUP_BYTES:
            self._spill()

    def close(self, footer: dict[str, str]) -> None:
        """See ``RowSink``."""
        self._spill()
        if self._writer is not None:
            with self._scratch.writing():
                self._writer.close()
            for rows in self._sorted():
                self._sink.write(rows)
                self._beat()
        self._sink.close({**footer, ORDER_KEY: str(self._order)})

    def _spill(self) -> None:
        """What is pending becomes one batch of the scratch file."""
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending).combine_chunks()
        self._pending = []
        self._pending_rows = self._pending_bytes = 0
        self._keys.append(rows.select(self._order.columns))
        self._bytes += rows.nbytes
        with self._scratch.writing() as file:
            if self._writer is None:
                self._writer = pa.ipc.new_file(file, self._schema)
            self._writer.write_table(rows)

    def _sorted(self) -> Iterator[pa.Table]:
        order = order_of(pa.concat_tables(self._keys), self._order.curve).to_numpy().astype(np.int64)
        self._keys = []
        reader = pa.ipc.open_file(self._scratch.read())
        batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
        step = max(1, min(base_writer.GROUP_ROWS, base_writer.GROUP_BYTES * self.rows // max(1, self._bytes)))
        for at in range(0, len(order), step):
            yield _gathered(batches, starts, order[at : at + step])


def _plain(column: ChunkedArray) -> ChunkedArray:
    return column.cast(column.type.value_type) if pat.is_dictionary(column.type) else column


def _gathered(batches: list[pa.RecordBatch], starts: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> pa.Table:
    """The ``wanted`` rows, which are counted through all batches, in that order: taken batch by batch, then put in order."""
    holders = np.searchsorted(starts, wanted, side="right") - 1
    by_batch = np.argsort(holders, kind="stable")
    numbers = wanted[by_batch]
    ends = np.searchsorted(holders[by_batch], np.arange(len(batches)), side="right")
    pieces: list[pa.RecordBatch] = []
    begin = 0
    for batch, start, end in zip(batches, starts, ends, strict=False):
        if end > begin:
            pieces.append(batch.take(index_array(numbers[begin:end] - start)))
        begin = end
    places = np.empty_like(by_batch)
    places[by_batch] = np.arange(len(by_batch))
    return pa.Table.from_batches(pieces).combine_chunks().take(index_array(places))


def is_sortable(field: Field) -> bool:
    """Whether rows can be put in order by the column: its values have one, and are no lists or structs of others."""
    kind = field.type
    return not (pat.is_nested(kind) or pat.is_binary(kind) or pat.is_fixed_size_binary(kind))
