"""Deletes by a condition: the rows that match in one snapshot, read as what their deletes need, in pieces of bounded size."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate_tables.errors import OptionError
from headgate_tables.face.results import DeleteResult
from headgate_tables.hudi.batches import needed_by_deletes, zero_is_none
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.partition_path import PartitionSpec, partition_paths
from headgate_tables.hudi.scan import Scan
from headgate_tables.hudi.transaction import Transaction
from headgate_tables.where import where

PIECE_ROWS: Final = 1 << 20
PIECE_BYTES: Final = 64 << 20
"""Arrow bytes. A piece becomes a file in each slice that it touches. Smaller ones: more files; larger ones: more memory."""


class Matches:
    """A query, fixed when it was made; nothing is read before ``tables``. ``as_of``: the newest commit in it, as a scan's.

    ``condition``: SQL. ``partitions``: rows by the path of their partition, of those that were read.
    """

    def __init__(self, scan: Callable[..., Scan], definition: Definition, condition: str) -> None:
        """``scan``: ``Table.scan``. Raises OptionError, SchemaError for a column that there is not, and what a scan raises."""
        _check_condition(condition)
        self._scan = scan
        self._condition = condition
        self._definition = definition
        self._spec = PartitionSpec(definition.partition_by, definition.hive_style, definition.url_encode)
        needed = needed_by_deletes(definition)
        self._found = scan([name for name in definition.schema.names if name in needed], filter=condition)
        self._counts: Counter[str] = Counter()

    @property
    def as_of(self) -> str:
        return self._found.as_of

    @property
    def partitions(self) -> Mapping[str, int]:
        return dict(sorted(self._counts.items()))

    def tables(self) -> Iterator[pa.Table]:
        """Record key, partition and ordering columns of the rows, in pieces. Reading them again counts from 0."""
        self._counts.clear()
        gathered: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in self._found.to_reader():
            if not batch.num_rows:
                continue
            self._count(batch)
            gathered.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= PIECE_ROWS or size >= PIECE_BYTES:
                yield _emptied(gathered)
                rows = size = 0
        if gathered:
            yield _emptied(gathered)

    def count_unordered(self) -> int:
        """How many of the rows only the table's owner can delete: null orders them, or 0 where Hudi takes it for none (DE1)."""
        ordering = self._definition.ordering
        if ordering is None:
            return 0
        unordered = pc.field(ordering).is_null()
        kind = self._definition.schema.field(ordering).type
        if zero_is_none(kind):
            unordered = unordered | (pc.field(ordering) == pc.scalar(pa.scalar(0, pa.int32()).cast(kind)))
        found = self._scan([ordering], filter=lambda schema: where(self._condition, schema) & unordered)
        return sum(batch.num_rows for batch in found.to_reader())

    def _count(self, batch: pa.RecordBatch) -> None:
        codes, paths, _ = partition_paths(batch, self._spec)
        self._counts.update(dict(zip(paths, np.bincount(codes, minlength=len(paths)).tolist(), strict=True)))


def count(matches: Matches) -> DeleteResult:
    """What would be deleted."""
    for _ in matches.tables():
        pass
    return _result(matches)


def delete(matches: Matches, transaction: Transaction, most_bytes: int) -> DeleteResult:
    """Deletes them, as the only change of the transaction, and commits it.

    ``most_bytes``: of log files that a file slice may get, whose readers hold the keys in memory. Raises OptionError when they
    are more: nothing is deleted then.
    """
    sizes: Counter[tuple[str, str]] = Counter()
    known = 0
    for keys in matches.tables():
        transaction.delete(keys, as_seen=True)
        del keys  # or it would stay in memory beside the next ones
        for status in transaction.statuses[known:]:
            sizes[status.stat.partition, status.stat.file_id] += status.stat.size
        known = len(transaction.statuses)
        _check_sizes(sizes, most_bytes)
    done = transaction.commit()
    return _result(matches, done.instant, done.completion, done.files, done.bytes)


def _check_sizes(sizes: Mapping[tuple[str, str], int], most_bytes: int) -> None:
    (partition, file_id), size = max(sizes.items(), key=lambda each: each[1])
    if size > most_bytes:
        place = f"{partition}/{file_id}" if partition else file_id
        raise OptionError(
            f"the condition selects so many rows that the deletes of file slice {place} have more than {most_bytes:,} bytes "
            "(headgate.slice.max.log.bytes), which readers hold in memory",
            fix="Delete in parts, by narrower conditions, and compact after each; or whole partitions, which reads no rows.",
        )


def _result(matches: Matches, instant: str = "", completion: str = "", files: int = 0, size: int = 0) -> DeleteResult:
    partitions = matches.partitions
    return DeleteResult(sum(partitions.values()), partitions, matches.as_of, instant, completion, files, size)


def _check_condition(condition: object) -> None:
    """A scan takes no filter for all rows, and expressions, which cannot be joined with others; a delete never does."""
    if not isinstance(condition, str):
        raise OptionError(
            f"{condition!r:.80} is no condition in SQL",
            fix="Pass the condition as text, such as \"day < '2020-01-01'\". To remove all rows, truncate the table.",
        )


def _emptied(batches: list[pa.RecordBatch]) -> pa.Table:
    """The batches as one table; empties the list, so that nothing else keeps their memory."""
    table = pa.Table.from_batches(batches)
    batches.clear()
    return table
