"""Gives a table another number of buckets: its rows go into file groups of their own, in one commit (rule FI6).

A key's bucket is its hash modulo their number, so rows of an old bucket can only be in new ones that are equal to it modulo the
greatest common divisor of both numbers. Each such class of a partition is rewritten by itself. Rows keep their meta columns: they
are no news for readers of changes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import index_array
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import CorruptFileError, StoreUnavailableError
from headgate_tables.face import owner
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.face.results import CommitResult, RescaleResult
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.bulk_loads import GroupMode
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import bucket_of, buckets_of_hashes, record_hashes
from headgate_tables.hudi.keys.record_key import KeySpec, read_keys
from headgate_tables.hudi.log.names import base_name
from headgate_tables.hudi.services.compaction.execution import base_file_sink, merge_slice
from headgate_tables.hudi.services.compaction.sorted_writer import RowSink
from headgate_tables.hudi.services.planning.choose import operation_of
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.view import FileSlice, FileSystemView
from headgate_tables.storage.store import Outcome, Spool

OPEN_FILES: Final = 8
"""Base files that are written at a time. More: a class is read less often, and memory holds a row group more for each."""

Progress = Callable[[int, int], None]
"""Gets how many rows were written so far, and the bytes of the slices that are done with."""


class Transaction(owner.Transaction, Protocol):
    """One that a rescale commits in."""

    def announce_bulk_load(self, mode: GroupMode = ..., partitions: Collection[str] = ..., buckets: int = ...) -> None:
        """See ``BulkLoad``."""


@dataclass(frozen=True, slots=True)
class RescaleUnit:
    """Slices of one partition, and the new buckets that their rows go to: all are ``residue`` modulo ``divisor``."""

    partition: str
    slices: Sequence[FileSlice]
    buckets: Sequence[int]
    divisor: int

    @property
    def residue(self) -> int:
        """What all buckets, old and new, are modulo the divisor."""
        return self.buckets[0] % self.divisor


def units_of(slices: Sequence[FileSlice], before: int, after: int) -> list[RescaleUnit]:
    """Which slices go into which of ``after`` buckets, if their table has ``before``. Pure."""
    divisor = math.gcd(before, after)
    found: dict[tuple[str, int], list[FileSlice]] = {}
    for each in slices:
        found.setdefault((each.partition, bucket_of(each.file_id) % divisor), []).append(each)
    return [
        RescaleUnit(partition, part, range(residue, after, divisor), divisor)
        for (partition, residue), part in sorted(found.items())
    ]


def planned(definition: Definition, view: FileSystemView, buckets: int) -> RescaleResult:
    """What a rescale would do. Raises OptionError for a number that a table cannot have."""
    before = definition.buckets
    replace(definition, buckets=buckets).check()
    slices = list(view.latest_slices())
    size = sum(each.base_size + each.log_bytes for each in slices)
    return RescaleResult("", "", before, buckets, len(slices) if buckets != before else 0, 0, 0, size)


def rescale(table: TableContext, transaction: Transaction, buckets: int, progress: Progress) -> RescaleResult:
    """Rewrites all rows under the transaction's instant, and commits. Raises TransactionError for an open compaction, or another
    transaction; CorruptFileError and MissingFileError for a file that cannot be read; RetryLater.
    """
    before = table.definition.buckets
    transaction.announce_bulk_load("rescale", buckets=buckets)
    target = replace(table.definition, buckets=buckets, rescaled=transaction.instant, groups={})
    rewriting = _Rewriting(table, target, transaction.instant, progress)
    for unit in units_of(list(table.view().latest_slices()), before, buckets):
        with table.log.ending_on_failed_sync():
            transaction.add(rewriting.rewrite_unit(unit))
    done = transaction.commit({"headgate.rescale": f"{before} to {buckets} buckets"})
    return _result(done, before, buckets)


def _result(done: CommitResult, before: int, buckets: int) -> RescaleResult:
    return RescaleResult(done.instant, done.completion, before, buckets, done.replaced, done.files, done.upserted, done.bytes)


class _Rewriting:
    """Of one table, into the file groups of ``target``."""

    def __init__(self, table: TableContext, target: Definition, instant: str, progress: Progress) -> None:
        self._table = table
        self._target = target
        self._instant = instant
        self._report = progress
        self._rows = self._bytes = 0

    def rewrite_unit(self, unit: RescaleUnit) -> list[WriteStatus]:
        """The base files of its buckets; of one without rows none."""
        statuses: list[WriteStatus] = []
        for at in range(0, len(unit.buckets), OPEN_FILES):
            statuses += self._rewrite(unit, unit.buckets[at : at + OPEN_FILES])
        self._bytes += sum(each.base_size + each.log_bytes for each in unit.slices)
        self._progress(0)
        return statuses

    def _progress(self, more: int) -> None:
        self._report(self._rows + more, self._bytes)

    def _rewrite(self, unit: RescaleUnit, buckets: Sequence[int]) -> list[WriteStatus]:
        table = self._table
        with contextlib.ExitStack() as opened:
            files = _NewFiles(table, self._target, self._instant, unit, buckets, opened, lambda: self._progress(files.written))
            for each in unit.slices:
                operation = operation_of(each, "")  # which only says what is read: its output is a name that nobody writes
                merge_slice(
                    table.store,
                    table.definition,
                    table.layout,
                    operation,
                    files,
                    settings=table.settings,
                    progress=lambda _: self._progress(files.written),
                )
            statuses = files.create()
            self._rows += files.written
        return statuses


class _NewFiles:
    """A sink that gives each row to the file of its bucket, and leaves those of other buckets out."""

    def __init__(
        self,
        table: TableContext,
        target: Definition,
        instant: str,
        unit: RescaleUnit,
        buckets: Sequence[int],
        opened: contextlib.ExitStack,
        beat: Callable[[], None],
    ) -> None:
        self._table = table
        self._target = target
        self._instant = instant
        self._unit = unit
        self._wanted = frozenset(buckets)
        self._opened = opened
        self._beat = beat
        self._spec = KeySpec(target.record_key, target.prefixed_keys)
        self._files: dict[int, tuple[WriteStat, str, Spool, RowSink]] = {}
        self.rows = 0

    @property
    def written(self) -> int:
        """Rows of these buckets."""
        return sum(sink.rows for _, _, _, sink in self._files.values())

    def write(self, rows: pa.Table) -> None:
        """See ``RowSink``. Raises CorruptFileError for a row that cannot be in its bucket."""
        self.rows += rows.num_rows
        buckets = buckets_of_hashes(record_hashes(read_keys(rows, self._spec), self._spec), self._target.buckets)
        if (buckets % self._unit.divisor != self._unit.residue).any():
            names = ", ".join(each.file_id for each in self._unit.slices)
            raise CorruptFileError(
                f"{self._unit.partition or 'the table'} has rows of another bucket in {names}",
                fix="Another program wrote with another number of buckets: `headgate bootstrap` copies the table into a new one.",
            )
        order = np.argsort(buckets, kind="stable")
        present, starts = np.unique(buckets[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        for bucket, start, end in zip(present.tolist(), starts.tolist(), ends, strict=True):
            if bucket in self._wanted:
                self._sink(bucket).write(rows if end - start == len(order) else rows.take(index_array(order[start:end])))

    def close(self, footer: dict[str, str]) -> None:
        """Nobody calls it: ``create`` ends the files."""
        raise NotImplementedError

    def create(self) -> list[WriteStatus]:
        """Ends all files; they are durable when this returns."""
        return [self._created(*self._files[bucket]) for bucket in sorted(self._files)]

    def _sink(self, bucket: int) -> RowSink:
        if bucket not in self._files:
            partition, file_id = self._unit.partition, self._target.file_id(self._unit.partition, bucket)
            stat = WriteStat(file_id, partition, base_name(file_id, WRITE_TOKEN, self._instant), 0, 0, 0)
            staged = f"{self._table.stage}/{self._instant}_{file_id}_0" if self._table.stage else ""
            spool = self._opened.enter_context(self._table.store.spool(staged or stat.path, ""))
            sink = base_file_sink(spool.file, stat.name, self._target, self._table.settings, self._beat)
            self._files[bucket] = stat, staged, spool, self._opened.enter_context(sink)
        return self._files[bucket][3]

    def _created(self, stat: WriteStat, staged: str, spool: Spool, sink: RowSink) -> WriteStatus:
        sink.close({})
        if spool.create() is not Outcome.CREATED:
            raise StoreUnavailableError(
                f"the store did not say whether {stat.path} was created", fix="Run the rescale again once the store answers."
            )
        whole = replace(stat, size=spool.file.size, rows=sink.rows)
        return WriteStatus(whole, DataFile(stat.path, spool.file.size, spool.file.sha256, staged))
