"""Reads one base file: batch by batch, only the row groups and columns that are wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headgate_tables.arrow import pc
from headgate_tables.errors import MissingFileError
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.log.names import parse_base_name
from headgate_tables.hudi.log.reader import PARQUET_ERRORS, open_parquet, whole_if_small
from headgate_tables.hudi.parquet_checks import check_columns, check_counts, damaged
from headgate_tables.hudi.schema.conform import conform
from headgate_tables.storage.store import Store

BATCH_ROWS = 131_072
"""Base rows decoded at a time. More: fewer passes over the logs' keys and as much more memory."""
_BUFFER_BYTES = 256 * 1024
"""For each column on a local disk, so that memory holds a batch and not a row group. On an object store: too many requests."""


class BaseFile:
    """An open base file. Raises MissingFileError or CorruptFileError, here and while it is read."""

    def __init__(self, store: Store, path: str) -> None:
        self._path = path
        try:
            self._source, at_once = whole_if_small(store.open_input(path))
            self._file = open_parquet(self._source, buffer_size=0 if at_once else _BUFFER_BYTES)
            self._names: list[str] = self._file.schema_arrow.names
            self._sizes = check_counts(self._file, path)
            # Spark's first task has our write token too; its files carry no such schema
            # (test_a_fresh_spark_gives_its_base_file_our_write_token).
            schema = (self._file.metadata.metadata or {}).get(b"parquet.avro.schema")
            if schema is not None and _is_ours(path):
                check_columns(self._names, schema.decode(), path)
        except FileNotFoundError as error:
            raise gone(path) from error
        except PARQUET_ERRORS as error:
            raise damaged(path, error) from error

    def row_groups(self, expression: pc.Expression | None = None) -> tuple[list[int], list[int]]:
        """Row groups that may hold rows of the filter, according to their statistics, and the others."""
        everything = list(range(len(self._sizes)))
        if expression is None:
            return everything, []
        import pyarrow.dataset as ds  # imports pandas, if that is installed: only scans with a filter pay for it

        fragment: Any = ds.ParquetFileFormat().make_fragment(self._source)  # type: ignore[arg-type]
        try:
            matching = {group.id for group in fragment.subset(filter=expression).row_groups}
        except pa.ArrowException:
            return everything, []  # the file is older than a column of the filter or its type, so its statistics say nothing
        return sorted(matching), [group for group in everything if group not in matching]

    def read(self, groups: Sequence[int], target: pa.Schema, as_text: Collection[str] = ()) -> Iterator[pa.Table]:
        """Batches of these row groups as ``target`` has them; a column that the file lacks is null. ``as_text``: see conform."""
        present = [name for name in target.names if name in self._names]
        # One at a time: Arrow keeps the bytes of all groups of a call (test_streaming_one_base_file_… would grow).
        for group in groups:
            left = self._sizes[group]
            for batch in self._batches(group, present):
                left -= batch.num_rows
                yield conform(pa.Table.from_batches([batch]), target, self._path, as_text)
            if left:
                raise damaged(self._path, f"{left} of its rows are not where its footer says")

    def _batches(self, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        batches: Iterator[pa.RecordBatch] = self._file.iter_batches(
            BATCH_ROWS, row_groups=[group], columns=list(columns), use_threads=False
        )
        while True:
            try:
                batch = next(batches, None)
            except PARQUET_ERRORS as error:
                raise damaged(self._path, error) from error
            if batch is None:
                return
            yield batch


def gone(path: str) -> MissingFileError:
    """The error for a file of the table that is not there."""
    return MissingFileError(
        f"{path} is part of the table, but not there",
        fix="Restore it from a copy. If a cleaner removed it meanwhile, read again.",
    )


def _is_ours(path: str) -> bool:
    name = parse_base_name(path.rpartition("/")[2])
    return name is not None and name.token == WRITE_TOKEN
