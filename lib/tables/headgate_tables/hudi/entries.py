"""What the merge reads of a log block: keys, ordering values, and which of its rows are deletes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array, ChunkedArray, pc
from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.log.reader import DeleteBlock
from headgate_tables.hudi.merge import Entries, Mask
from headgate_tables.hudi.parquet_checks import damaged
from headgate_tables.hudi.properties import PROPERTIES_PATH
from headgate_tables.hudi.schema.conform import conform
from headgate_tables.hudi.schema.meta_columns import IS_DELETED, OPERATION, RECORD_KEY

_DELETE_OPERATION = "D"


class EntryReader:
    """Reads the entries of one table. ``ordering``: its ordering column, or None; ``schema``: with meta columns.

    Raises CorruptFileError when the schema lacks that column.
    """

    def __init__(self, schema: pa.Schema, ordering: str | None) -> None:
        if ordering and ordering not in schema.names:
            raise CorruptFileError(
                f"{PROPERTIES_PATH} orders the table by {ordering!r}, which is none of its columns",
                fix="Restore the file from a copy, or correct the name in it.",
            )
        self.ordering = ordering
        self.kind: pa.DataType | None = schema.field(ordering).type if ordering else None
        self.key_names = [RECORD_KEY, *([ordering] if ordering else [])]
        """Columns that decide between rows of base files."""
        self._target: pa.Schema | None = pa.schema([pa.field(ordering, schema.field(ordering).type)]) if ordering else None

    def names(self, available: Collection[str], where: str) -> list[str]:
        """Columns of a block that the merge needs, including those that can mark a row as a delete (Hudi: _hoodie_is_deleted)."""
        if not {*self.key_names} <= {*available}:
            raise damaged(where, f"it lacks a column of {', '.join(self.key_names)}")
        return [*self.key_names, *(n for n in (IS_DELETED, OPERATION) if n in available and n not in self.key_names)]

    def of_rows(self, rows: pa.Table, path: str) -> Entries:
        """``rows``: the columns ``names`` in stored types."""
        ordering = None
        if self.ordering and self._target:
            ordering = one_array(conform(rows.select([self.ordering]), self._target, path).column(0))
        none = np.zeros(rows.num_rows, dtype=bool)
        return Entries(one_array(rows[RECORD_KEY]).cast(pa.string()), ordering, _row_deletes(rows), none)

    def of_deletes(self, block: DeleteBlock) -> Entries:
        """A delete without an ordering value holds against everything before it."""
        rows = block.rows
        deletes = np.ones(len(rows.keys), dtype=bool)
        if self.kind is None or self._target is None or rows.ordering is None:
            return Entries(rows.keys, nulls(len(deletes), self.kind) if self.kind is not None else None, deletes, deletes)
        given = pa.table({self._target.names[0]: as_ordering(rows.ordering, self.kind)})
        ordering = one_array(conform(given, self._target, block.path).column(0))
        return Entries(rows.keys, ordering, deletes, ordering.is_null().to_numpy(zero_copy_only=False))

    def concatenate(self, entries: Sequence[Entries]) -> Entries:
        """One ``Entries`` of all of them, in this order."""
        if not entries:
            nothing = np.zeros(0, dtype=bool)
            return Entries(pa.array([], pa.string()), nulls(0, self.kind) if self.kind is not None else None, nothing, nothing)
        ordering = pa.concat_arrays([e.ordering for e in entries if e.ordering is not None]) if self.kind is not None else None
        return Entries(
            pa.concat_arrays([entry.keys for entry in entries]),
            ordering,
            np.concatenate([entry.deletes for entry in entries]),
            np.concatenate([entry.unconditional for entry in entries]),
        )


def as_ordering(values: Array, kind: pa.DataType) -> Array:
    """A delete's ordering values in the ordering column's type; the wrapper's type may be wider, or a plain number."""
    if values.type == kind:
        return values
    if pa.types.is_temporal(kind) and pa.types.is_integer(values.type):
        return values.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)
    return values.cast(kind)


def one_array(column: ChunkedArray) -> Array:
    """The column in one chunk; empty for a column without chunks."""
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else nulls(0, column.type)


def nulls(length: int, kind: pa.DataType) -> Array:
    """So many nulls of this type."""
    made: Array = pa.nulls(length, kind)  # type: ignore[call-overload]
    return made


def _row_deletes(rows: pa.Table) -> Mask:
    deletes: Mask = np.zeros(rows.num_rows, dtype=bool)
    if IS_DELETED in rows.column_names:
        deletes |= pc.fill_null(one_array(rows[IS_DELETED]), False).to_numpy(zero_copy_only=False)
    if OPERATION in rows.column_names:
        deletes |= pc.fill_null(pc.equal(one_array(rows[OPERATION]), _DELETE_OPERATION), False).to_numpy(zero_copy_only=False)
    return deletes
