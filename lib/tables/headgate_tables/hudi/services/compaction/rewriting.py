"""Rewrites one unit of a rescale: a compaction's merge of its slices, into one base file for each new bucket.

A unit that is rewritten twice, at once or later, meets the files of the other run and reports those: their names are fixed by
instant and bucket (rule FI3), and their footer holds what they are made of.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import index_array
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import CorruptFileError, StoreUnavailableError
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.face.rescaling import RescaleJob, RescaleUnit
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.definition import Definition, Layout
from headgate_tables.hudi.keys.bucket import buckets_of_hashes, record_hashes
from headgate_tables.hudi.keys.record_key import KeySpec, read_keys
from headgate_tables.hudi.log.names import base_name
from headgate_tables.hudi.log.reader import PARQUET_ERRORS
from headgate_tables.hudi.services.compaction.execution import base_file_sink, merge_slice
from headgate_tables.hudi.services.compaction.sorted_writer import RowSink
from headgate_tables.hudi.services.compaction.stored_output import footer_value, stored_file
from headgate_tables.hudi.staged_names import staged_path
from headgate_tables.storage.store import Outcome, Spool, Store

OPEN_FILES: Final = 8
"""Base files that are written at a time. More: a unit is read less often, and memory holds a row group more for each."""
MADE_OF_KEY: Final = "headgate.rescale"
"""In a footer: the digest of the unit."""


Beat = Callable[[int], None]
"""Gets the rows that were written so far; what it raises ends the work."""


class UnitRewriter:
    """For all units of one rescale. ``definition``, ``target``: those of the job."""

    def __init__(self, store: Store, job: RescaleJob, definition: Definition, target: Definition, layout: Layout) -> None:
        self._store = store
        self._definition = definition
        self._layout = layout
        self._settings = TableSettings.from_texts(job.settings)
        self._output = _Output(store, job.instant, job.stage, target, self._settings)

    def rewrite(self, unit: RescaleUnit, beat: Beat = lambda _: None) -> list[WriteStatus]:
        """Durable base files of its buckets; of one without rows none. ``beat`` gets the rows of this unit.

        Raises MissingFileError and CorruptFileError for inputs that are not as they were pinned, or that hold rows of other
        buckets; RetryLater, DeposedError when the stage was revoked, SyncFailedError.
        """
        statuses: list[WriteStatus] = []
        for at in range(0, len(unit.buckets), OPEN_FILES):
            before = sum(each.stat.rows for each in statuses)
            statuses += self._rewrite(unit, unit.buckets[at : at + OPEN_FILES], _beat_above(before, beat))
        return statuses

    def _rewrite(self, unit: RescaleUnit, buckets: Sequence[int], beat: Beat) -> list[WriteStatus]:
        with contextlib.ExitStack() as opened:
            files = _NewFiles(self._output, unit, buckets, opened, beat)
            for each in unit.slices:
                merge_slice(
                    self._store,
                    self._definition,
                    self._layout,
                    each,
                    files,
                    settings=self._settings,
                    progress=lambda _: files.beat(),
                )
            return files.create()


def _beat_above(before: int, beat: Beat) -> Beat:
    """One that counts on from ``before`` rows."""
    return lambda rows: beat(before + rows)


@dataclass(frozen=True, slots=True)
class _Output:
    """What all base files of a rescale have in common. ``stage``: see ``RescaleJob``."""

    store: Store
    instant: str
    stage: str
    target: Definition
    settings: TableSettings

    def begin(self, partition: str, bucket: int, opened: contextlib.ExitStack, beat: Callable[[], None]) -> _NewFile:
        """The file of one bucket, which ``opened`` closes."""
        file_id = self.target.file_id(partition, bucket)
        stat = WriteStat(file_id, partition, base_name(file_id, WRITE_TOKEN, self.instant), 0, 0, 0)
        staged = staged_path(self.stage, self.instant, partition, file_id, 0)
        spool = opened.enter_context(self.store.spool(staged or stat.path, ""))
        sink = opened.enter_context(base_file_sink(spool.file, stat.name, self.target, self.settings, beat))
        return _NewFile(self.store, stat, staged, spool, sink)


@dataclass(frozen=True, slots=True)
class _NewFile:
    """A base file that gets its rows. ``staged``: where it waits, "" when it is created in place."""

    store: Store
    stat: WriteStat
    staged: str
    spool: Spool
    sink: RowSink

    def create(self, made_of: str) -> WriteStatus:
        """Ends it; it is durable when this returns. ``made_of``: the digest of its unit."""
        self.sink.close({MADE_OF_KEY: made_of})
        if self.spool.create() is Outcome.CREATED:
            size, sha256 = self.spool.file.size, self.spool.file.sha256
        else:
            size, sha256 = self._stored(self.staged or self.stat.path, made_of)
        stat = replace(self.stat, size=size, rows=self.sink.rows)
        return WriteStatus(stat, DataFile(stat.path, size, sha256, self.staged))

    def _stored(self, path: str, made_of: str) -> tuple[int, str]:
        """Size and SHA-256 of the file that another run has made."""

        def read(source: pa.NativeFile) -> None:
            try:
                found = footer_value(source, path, MADE_OF_KEY)
            except (*PARQUET_ERRORS, KeyError, ValueError) as error:
                raise _taken(path) from error
            if found != (made_of, self.sink.rows):
                raise _taken(path)

        stored = stored_file(self.store, path, read)
        if stored is None:
            raise StoreUnavailableError(
                f"the store did not say whether {path} was created", fix="Run the rescale again once the store answers."
            )
        return stored.size, stored.sha256


def _taken(path: str) -> CorruptFileError:
    return CorruptFileError(
        f"{path} is taken, and not by a file of this rescale",
        fix="Another program wrote that name, or the file is damaged. Run the rescale again.",
    )


class _NewFiles:
    """A ``MergeSink`` that gives each row to the file of its bucket, and leaves those of other buckets out."""

    def __init__(
        self, output: _Output, unit: RescaleUnit, buckets: Sequence[int], opened: contextlib.ExitStack, beat: Beat
    ) -> None:
        self._output = output
        self._unit = unit
        self._wanted = frozenset(buckets)
        self._opened = opened
        self._beat = beat
        self._spec = KeySpec(output.target.record_key, output.target.prefixed_keys)
        self._buckets = output.target.buckets_in(unit.partition)
        self._files: dict[int, _NewFile] = {}
        self.rows = 0

    def beat(self) -> None:
        """Says how many rows of these buckets are written."""
        self._beat(sum(each.sink.rows for each in self._files.values()))

    def write(self, rows: pa.Table) -> None:
        """See ``MergeSink``. Raises CorruptFileError for a row that cannot be in its bucket."""
        self.rows += rows.num_rows
        buckets = buckets_of_hashes(record_hashes(read_keys(rows, self._spec), self._spec), self._buckets)
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

    def _sink(self, bucket: int) -> RowSink:
        if bucket not in self._files:
            self._files[bucket] = self._output.begin(self._unit.partition, bucket, self._opened, self.beat)
        return self._files[bucket].sink

    def create(self) -> list[WriteStatus]:
        """Ends all files; they are durable when this returns."""
        made_of = self._unit.digest
        return [self._files[bucket].create(made_of) for bucket in sorted(self._files)]
