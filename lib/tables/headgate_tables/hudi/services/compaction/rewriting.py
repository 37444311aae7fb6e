"""Rewrites one unit of a rescale: a compaction's merge of its slices, into one base file for each new bucket.

A unit that is rewritten twice, at once or later, meets the files of the other run and reports those: their names are fixed by
instant and bucket (rule FI3), and their footer holds what they are made of.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
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
        self._definition, self._target = definition, target
        self._job = job
        self._layout = layout
        self._settings = TableSettings.from_texts(job.settings)

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
            files = _NewFiles(self._store, self._job, self._target, self._settings, unit, buckets, opened, beat)
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


class _NewFiles:
    """A sink that gives each row to the file of its bucket, and leaves those of other buckets out."""

    def __init__(
        self,
        store: Store,
        job: RescaleJob,
        target: Definition,
        settings: TableSettings,
        unit: RescaleUnit,
        buckets: Sequence[int],
        opened: contextlib.ExitStack,
        beat: Beat,
    ) -> None:
        self._store = store
        self._job = job
        self._target = target
        self._settings = settings
        self._unit = unit
        self._made_of = unit.digest
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

    def beat(self) -> None:
        """Says how far it is."""
        self._beat(self.written)

    def write(self, rows: pa.Table) -> None:
        """See ``RowSink``. Raises CorruptFileError for a row that cannot be in its bucket."""
        self.rows += rows.num_rows
        buckets = buckets_of_hashes(
            record_hashes(read_keys(rows, self._spec), self._spec), self._target.buckets_in(self._unit.partition)
        )
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
            stat = WriteStat(file_id, partition, base_name(file_id, WRITE_TOKEN, self._job.instant), 0, 0, 0)
            staged = f"{self._job.stage}/{self._job.instant}_{file_id}_0" if self._job.stage else ""
            spool = self._opened.enter_context(self._store.spool(staged or stat.path, ""))
            sink = base_file_sink(spool.file, stat.name, self._target, self._settings, self.beat)
            self._files[bucket] = stat, staged, spool, self._opened.enter_context(sink)
        return self._files[bucket][3]

    def _created(self, stat: WriteStat, staged: str, spool: Spool, sink: RowSink) -> WriteStatus:
        sink.close({MADE_OF_KEY: self._made_of})
        if spool.create() is Outcome.CREATED:
            size, sha256 = spool.file.size, spool.file.sha256
        else:
            size, sha256 = self._stored(staged or stat.path, sink.rows)
        return WriteStatus(replace(stat, size=size, rows=sink.rows), DataFile(stat.path, size, sha256, staged))

    def _stored(self, path: str, rows: int) -> tuple[int, str]:
        """Size and SHA-256 of the file that another run has made."""

        def read(source: pa.NativeFile) -> None:
            try:
                found = footer_value(source, path, MADE_OF_KEY)
            except (*PARQUET_ERRORS, KeyError, ValueError) as error:
                raise self._taken(path) from error
            if found != (self._made_of, rows):
                raise self._taken(path)

        stored = stored_file(self._store, path, read)
        if stored is None:
            raise StoreUnavailableError(
                f"the store did not say whether {path} was created", fix="Run the rescale again once the store answers."
            )
        return stored.size, stored.sha256

    def _taken(self, path: str) -> CorruptFileError:
        return CorruptFileError(
            f"{path} is taken, and not by a file of this rescale",
            fix="Another program wrote that name, or the file is damaged. Run the rescale again.",
        )
