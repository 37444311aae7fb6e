"""Writes a base file row group by row group; ``hudi.base_file`` writes one at once."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from headgate_tables.arrow import ChunkedArray, Field, pc
from headgate_tables.hudi.bloom import DynamicBloomFilter
from headgate_tables.hudi.log.parquet_rows import ParquetLayout, write_batch
from headgate_tables.hudi.schema.meta_columns import FILE_NAME, RECORD_KEY
from headgate_tables.storage.store import SpooledBytes

GROUP_ROWS = 131_072
"""The most rows of a row group. More: as much more memory here and in readers."""
GROUP_BYTES = 32 * 1024 * 1024


class BaseFileWriter:
    """``schema``: meta columns first. ``name``: the file's, which every row gets."""

    def __init__(
        self,
        sink: SpooledBytes,
        schema: pa.Schema,
        name: str,
        avro_schema: str,
        layout: ParquetLayout,
        bloom: DynamicBloomFilter | None,
    ) -> None:
        self._sink = sink
        self._schema = schema
        self._name = pa.array([name], pa.string())
        self._avro = avro_schema
        self._layout = layout
        self._bloom = bloom
        self._writer: pq.ParquetWriter | None = None
        self._types = schema
        self._pending: list[pa.Table] = []
        self._pending_rows = self._pending_bytes = 0
        self._bounds: tuple[str, str] | None = None
        self.rows = 0

    def write(self, rows: pa.Table) -> None:
        """Adds rows with all columns of the schema but the file's name; texts plain or as dictionaries."""
        if not rows.num_rows:
            return
        size = rows.nbytes
        if self._pending and (self._pending_rows + rows.num_rows > GROUP_ROWS or self._pending_bytes + size > GROUP_BYTES):
            self._flush()
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        self._pending_bytes += size
        self.rows += rows.num_rows

    def close(self, footer: dict[str, str]) -> None:
        """Writes the rest, and the footer with these keys beside Hudi's own."""
        self._flush()
        writer = self._writer or self._open(self._schema.empty_table())
        keys = {"parquet.avro.schema": self._avro, "writer.model.name": "avro"}
        if self._bounds is not None:
            keys |= dict(zip(("hoodie_min_record_key", "hoodie_max_record_key"), self._bounds, strict=True))
        if self._bloom is not None:
            keys |= self._bloom.footer()
        writer.add_key_value_metadata(keys | footer)
        writer.close()

    def _flush(self) -> None:
        if not self._pending:
            return
        rows = self._named(_joined(self._pending))
        self._pending = []
        self._pending_rows = self._pending_bytes = 0
        writer = self._writer or self._open(rows)
        self._note_keys(rows[RECORD_KEY])
        writer.write_table(_in_types_of(rows, self._types), row_group_size=rows.num_rows)

    def _open(self, rows: pa.Table) -> pq.ParquetWriter:
        self._types = rows.schema
        self._writer = pq.ParquetWriter(
            self._sink,  # type: ignore[arg-type]  # the stubs do not know that any file object is accepted
            rows.schema,
            store_schema=False,
            write_page_checksum=True,
            write_batch_size=write_batch(rows),
            **self._layout.options(rows),
        )
        return self._writer

    def _named(self, rows: pa.Table) -> pa.Table:
        zeros = pa.Array.from_buffers(pa.int8(), rows.num_rows, [None, pa.py_buffer(bytes(rows.num_rows))])
        names = pa.DictionaryArray.from_arrays(zeros, self._name, safe=False)
        at = self._schema.get_field_index(FILE_NAME)
        return rows.add_column(at, pa.field(FILE_NAME, names.type), names)

    def _note_keys(self, keys: ChunkedArray) -> None:
        found = pc.min_max(keys)
        low, high = found["min"].as_py(), found["max"].as_py()
        self._bounds = (low, high) if self._bounds is None else (min(self._bounds[0], low), max(self._bounds[1], high))
        if self._bloom is not None:
            for chunk in keys.chunks:
                self._bloom.add(chunk)


def _joined(tables: list[pa.Table]) -> pa.Table:
    """One table whose columns have one type each and, if that is a dictionary's, one dictionary."""
    first = tables[0].schema
    if all(table.schema.equals(first) for table in tables):
        return pa.concat_tables(tables).unify_dictionaries()
    shared = pa.schema([_shared([(table.schema.field(at), table.num_rows) for table in tables]) for at in range(len(first))])
    return pa.concat_tables(_in_types_of(table, shared) for table in tables).unify_dictionaries()


def _shared(fields: list[tuple[Field, int]]) -> Field:
    """The field as most rows have it, so that few are converted. ``fields``: each with its number of rows."""
    rows = Counter[Field]()
    for field, count in fields:
        rows[field] += count
    return rows.most_common(1)[0][0]


def _in_types_of(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Texts as dictionaries where ``schema`` has dictionaries, plain where it does not."""
    if rows.schema.equals(schema):
        return rows
    columns = [_as(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.table(columns, schema=schema)


def _as(column: ChunkedArray, kind: pa.DataType) -> ChunkedArray:
    if column.type == kind:
        return column
    made: ChunkedArray = column.dictionary_encode() if pat.is_dictionary(kind) else column.cast(kind)
    return made
