"""A Parquet file read in batches of bounded bytes, its repeating texts as the dictionaries that they are stored as."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.hudi.log.reader import PARQUET_ERRORS, open_parquet
from headgate_tables.hudi.parquet_checks import check_columns, check_counts, damaged
from headgate_tables.hudi.schema.conform import conform

BATCH_ROWS = 131_072
"""At most. More: fewer calls per row and as much more memory."""
BATCH_BYTES = 32 * 1024 * 1024
"""Of Arrow data in a batch, about: rows of a kilobyte come 32 thousand at a time, so that memory does not hang on their width."""
_FIRST_ROWS = 2048
_PAGE_BYTES = 256 * 1024
_DICTIONARY_BYTES = 3
"""A text column that takes less per value in the file is a dictionary's indices there."""
_INDEX = pa.int32()


class ParquetBatches:
    """An open file. Raises CorruptFileError, here and while it is read.

    ``source``: kept open by the caller; ``remote``: asked for a whole row group's columns at once, not page by page.
    """

    def __init__(self, source: pa.NativeFile, path: str, *, remote: bool) -> None:
        self._source = source
        self._path = path
        self._buffer = 0 if remote else _PAGE_BYTES
        self._width = 1.0
        try:
            self._file = open_parquet(source, buffer_size=self._buffer)
            self.stored: pa.Schema = self._file.schema_arrow
            self._sizes = check_counts(self._file, path)
        except PARQUET_ERRORS as error:
            raise damaged(path, error) from error

    @property
    def rows(self) -> int:
        """In all row groups."""
        return sum(self._sizes)

    def check_columns(self, schema_json: str | None = None) -> None:
        """A file of ours has the columns that its own footer, or ``schema_json``, says. Raises CorruptFileError."""
        said = (
            (self._file.metadata.metadata or {}).get(b"parquet.avro.schema", b"").decode() if schema_json is None else schema_json
        )
        check_columns(self.stored.names, said, self._path)

    def stored_bytes(self, name: str) -> int:
        """Of a column before compression."""
        return sum(size for _, size in self._chunks([name]).values())

    def batches(self, target: pa.Schema, *, dictionaries: bool = True) -> Iterator[pa.Table]:
        """All rows as ``target`` has them; a column that the file lacks is null.

        ``dictionaries``: texts that are stored so come as dictionary arrays instead.
        """
        names = [name for name in target.names if name in self.stored.names]
        repeating = self._repeating(target) if dictionaries else ()
        file = open_parquet(self._source, buffer_size=self._buffer, dictionaries=repeating) if repeating else self._file
        shown = pa.schema([_as_dictionary(field) if field.name in repeating else field for field in target])
        # One at a time: asked for several, Arrow keeps the bytes of all.
        for group, left in enumerate(self._sizes):
            for batch in self._group(file, group, names):
                left -= batch.num_rows
                yield conform(pa.Table.from_batches([batch]), shown, self._path)
            if left:
                raise damaged(self._path, f"{left} of its rows are not where its footer says")

    def stored_batches(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """All rows of these columns in stored types."""
        for group, left in enumerate(self._sizes):
            for batch in self._group(self._file, group, names):
                left -= batch.num_rows
                yield pa.Table.from_batches([batch])
            if left:
                raise damaged(self._path, f"{left} of its rows are not where its footer says")

    def _group(self, file: Any, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        rows = min(BATCH_ROWS, max(256, int(BATCH_BYTES / self._row_bytes(file, group, names))))
        batches = file.iter_batches(rows, row_groups=[group], columns=list(names), use_threads=False)
        while (batch := self._next(batches)) is not None:
            yield batch

    def _row_bytes(self, file: Any, group: int, names: Sequence[str]) -> float:
        """By what the footer says, and by a look at the first rows: a value stored once may stand in every row."""
        metadata = self._file.metadata.row_group(group)
        chunks = [metadata.column(i) for i in range(metadata.num_columns)]
        stored = sum(c.total_uncompressed_size for c in chunks if c.path_in_schema.partition(".")[0] in names)
        if group == 0 and self._sizes[group] > 8 * _FIRST_ROWS:
            first = self._next(file.iter_batches(_FIRST_ROWS, row_groups=[group], columns=list(names), use_threads=False))
            self._width = max(self._width, first.nbytes / max(1, first.num_rows) if first is not None else 1.0)
        return max(self._width, stored / max(1, self._sizes[group]))

    def _next(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        try:
            return next(batches, None)
        except PARQUET_ERRORS as error:
            raise damaged(self._path, error) from error

    def _repeating(self, target: pa.Schema) -> Collection[str]:
        texts = [
            f.name
            for f in target
            if _is_text(f.type) and f.name in self.stored.names and self.stored.field(f.name).type == f.type
        ]
        return {name for name, (values, size) in self._chunks(texts).items() if values and size <= _DICTIONARY_BYTES * values}

    def _chunks(self, names: Collection[str]) -> dict[str, tuple[int, int]]:
        """Values and bytes before compression of flat columns."""
        found = dict.fromkeys(names, (0, 0))
        for group in range(len(self._sizes)):
            metadata = self._file.metadata.row_group(group)
            for column in (metadata.column(i) for i in range(metadata.num_columns)):
                name = column.path_in_schema
                if name in found:
                    values, size = found[name]
                    found[name] = (values + column.num_values, size + column.total_uncompressed_size)
        return found


def _is_text(kind: pa.DataType) -> bool:
    return pat.is_string(kind) or pat.is_binary(kind)


def _as_dictionary(field: pa.Field[Any]) -> pa.Field[Any]:
    return pa.field(field.name, pa.dictionary(_INDEX, field.type), nullable=field.nullable)
