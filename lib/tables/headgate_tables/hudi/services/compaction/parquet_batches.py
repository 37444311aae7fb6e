"""A Parquet file in batches of bounded bytes, its repeating texts as dictionaries.

The first rows show how large rows are, and which texts repeat. The footer says that too, but Arrow crashes the process over
some damaged footers when it is asked for a column's chunk
(test_no_flipped_bit_of_an_input_gets_into_the_output_unseen).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from headgate_tables.arrow import Field, pc
from headgate_tables.hudi.log.reader import PARQUET_ERRORS, open_parquet
from headgate_tables.hudi.parquet_checks import check_columns, check_counts, damaged
from headgate_tables.hudi.schema.conform import conform
from headgate_tables.hudi.schema.meta_columns import RECORD_KEY

BATCH_ROWS = 131_072
"""The most rows of a batch. More: fewer calls per row and as much more memory."""
BATCH_BYTES = 32 * 1024 * 1024
"""Arrow bytes of a batch, about: rows of a kilobyte come 32 thousand at a time, so memory does not depend on their width."""
_LEAST_ROWS = 64
_FIRST_ROWS = 2048
_WORTH_A_LOOK = 8 * _FIRST_ROWS
"""Files with fewer rows are read without a look at their first rows, which costs as much as some thousand rows."""
_WORTH_A_LOOK_FOR_ALL = 2 * _FIRST_ROWS
"""The same when one look serves all files of a slice."""
_ROWS_PER_VALUE = 16
"""A text repeats when the first rows hold at least so many rows for each of its values."""
_PAGE_BYTES = 256 * 1024
_INDEX = pa.int32()


class RepeatingTexts:
    """Which texts repeat in the files of one slice: found in the first file that is worth a look, and assumed for the others.

    Where that is wrong, a dictionary is as long as its rows: slower, but correct.
    """

    def __init__(self) -> None:
        self.names: Collection[str] | None = None

    def see(self, first: pa.RecordBatch) -> None:
        """Learns from some rows with all columns of a file."""
        texts = [field.name for field in first.schema if _is_text(field.type) and field.name != RECORD_KEY]
        distinct = {name: pc.count_distinct(first[name], mode="all").as_py() for name in texts}
        self.names = [name for name in texts if distinct[name] * _ROWS_PER_VALUE <= first.num_rows]


class ParquetBatches:
    """An open file. Raises CorruptFileError, here and while it is read.

    ``source``: kept open by the caller; ``remote``: fetches a row group's columns at once instead of page by page.
    """

    def __init__(self, source: pa.NativeFile, path: str, texts: RepeatingTexts, *, remote: bool) -> None:
        self._source = source
        self._path = path
        self._texts = texts
        self._buffer = 0 if remote else _PAGE_BYTES
        try:
            self._file = open_parquet(source, buffer_size=self._buffer)
            self.stored: pa.Schema = self._file.schema_arrow
            self._sizes = check_counts(self._file, path)
        except PARQUET_ERRORS as error:
            raise damaged(path, error) from error

    @property
    def rows(self) -> int:
        """Rows of all row groups."""
        return sum(self._sizes)

    def check_columns(self, schema_json: str | None = None) -> None:
        """Checks that a file of ours has the columns of its footer's schema, or of ``schema_json``. Raises CorruptFileError.

        A footer without a schema is not ours: Spark's first task has our write token too
        (test_a_fresh_spark_gives_its_base_file_our_write_token).
        """
        if schema_json is None:
            own = (self._file.metadata.metadata or {}).get(b"parquet.avro.schema")
            if own is None:
                return
            schema_json = own.decode(errors="replace")
        check_columns(self.stored.names, schema_json, self._path)

    def batches(self, target: pa.Schema, *, dictionaries: bool = True) -> Iterator[pa.Table]:
        """All rows as ``target`` has them; a column that the file lacks is null.

        ``dictionaries``: texts that repeat come as dictionary arrays instead, record keys never.
        """
        names = [name for name in target.names if name in self.stored.names]
        repeating = [name for name in names if name in self._repeating and _is_same_text(target, self.stored, name)]
        file, shown = self._file, target
        if dictionaries and repeating:
            file = self._reopened(repeating)
            shown = pa.schema([_as_dictionary(field) if field.name in repeating else field for field in target])
        for batch in self._read(file, names):
            yield conform(batch, shown, self._path)

    def stored_batches(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """All rows of these columns in stored types."""
        return self._read(self._file, names)

    def _read(self, file: pq.ParquetFile, names: Sequence[str]) -> Iterator[pa.Table]:
        rows = min(BATCH_ROWS, max(_LEAST_ROWS, int(BATCH_BYTES / self._width(names))))
        # One group at a time: Arrow keeps the bytes of all groups of a call.
        for group, size in enumerate(self._sizes):
            left = size
            batches = file.iter_batches(rows, row_groups=[group], columns=list(names), use_threads=False)
            while (batch := self._next(batches)) is not None:
                left -= batch.num_rows
                yield pa.Table.from_batches([batch])
            if left:
                raise damaged(self._path, f"{left} of its rows are not where its footer says")

    def _next(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        try:
            return next(batches, None)
        except PARQUET_ERRORS as error:
            raise damaged(self._path, error) from error

    def _reopened(self, dictionaries: Collection[str]) -> pq.ParquetFile:
        try:
            return open_parquet(self._source, buffer_size=self._buffer, dictionaries=dictionaries)
        except PARQUET_ERRORS as error:
            raise damaged(self._path, error) from error

    def _width(self, names: Sequence[str]) -> float:
        """Arrow bytes of a row: as in the first rows; for all columns, or without first rows, as the footer says."""
        widths = [1.0]
        if self._first_rows is None or len(names) == len(self.stored):
            widths.append(self._stored_width)
        if self._first_rows is not None:
            seen = self._first_rows.select([name for name in names if name in self._first_rows.schema.names])
            widths.append(seen.nbytes / seen.num_rows)
        return max(widths)

    @cached_property
    def _stored_width(self) -> float:
        groups = range(len(self._sizes))
        stored: int = sum(self._file.metadata.row_group(group).total_byte_size for group in groups)
        return max(1.0, stored / max(1, self.rows))

    @cached_property
    def _first_rows(self) -> pa.RecordBatch | None:
        """None for a file too small to be worth it."""
        return self._look() if self.rows >= _WORTH_A_LOOK else None

    def _look(self) -> pa.RecordBatch | None:
        if not self._sizes[0]:
            return None
        rows = max(_LEAST_ROWS, min(_FIRST_ROWS, int(BATCH_BYTES / self._stored_width)))
        return self._next(self._file.iter_batches(rows, row_groups=[0], use_threads=False))

    @property
    def _repeating(self) -> Collection[str]:
        if self._texts.names is None and self.rows >= _WORTH_A_LOOK_FOR_ALL and (first := self._first_rows or self._look()):
            self._texts.see(first)
        return self._texts.names or ()


def _is_text(kind: pa.DataType) -> bool:
    return pat.is_string(kind) or pat.is_binary(kind)


def _is_same_text(first: pa.Schema, second: pa.Schema, name: str) -> bool:
    return _is_text(first.field(name).type) and first.field(name).type == second.field(name).type


def _as_dictionary(field: Field) -> Field:
    return pa.field(field.name, pa.dictionary(_INDEX, field.type), nullable=field.nullable)
