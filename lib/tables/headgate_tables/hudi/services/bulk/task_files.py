"""The files of one task of a load: one for each bucket of a partition, under a name that instant and group fix (rule FI3).

A task that is run twice, at once or later, meets the file of the other run and reports that one. So every run has to get
the same rows; what it can find out about that, it does: it compares how many rows and which keys each file is made of.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import FixCall, StoreUnavailableError
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.face.writing import Changes, LoadTask
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.java_hash import java_string_hash
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.place import Placed
from headgate_tables.hudi.services.compaction.base_writer import GROUP_BYTES, GROUP_ROWS
from headgate_tables.hudi.services.compaction.stored_output import stored_file
from headgate_tables.hudi.sift import sift_batch
from headgate_tables.hudi.staged_names import staged_path
from headgate_tables.storage.store import Outcome, SpooledBytes, Store


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A file to write. ``log_version`` 0: a base file; ``keys``: string[n]; ``first``: number of its first row among those of
    the task; ``made_of``: see there.
    """

    file_id: str
    name: str
    log_version: int
    partition: str
    rows: pa.Table
    keys: Array
    first: int
    made_of: str

    @classmethod
    def of(cls, file_id: str, name: str, log_version: int, changes: Changes, first: int) -> TaskFile:
        """The file of one bucket's changes."""
        keys = one_chunk(changes.keys)
        return cls(file_id, name, log_version, changes.partition, changes.rows, keys, first, made_of(keys))

    @property
    def path(self) -> str:
        """From the table's root."""
        return f"{self.partition}/{self.name}".lstrip("/")


class TaskFiles(ABC):
    """Writes files of one load. ``deletes``: all rows are deletes."""

    made_of_all: ClassVar[bool] = False
    """Whether ``_made_of`` needs all of a file, which is then in memory."""

    def __init__(self, store: Store, definition: Definition, task: LoadTask, *, deletes: bool = False) -> None:
        self._store = store
        self._definition = definition
        self._task = task
        self._stage = LOG_LAYOUT.stage_folder(task.epoch, task.process) if store.stages else ""
        self._deletes = deletes

    @abstractmethod
    def _place(self, rows: pa.Table) -> Placed:
        """Checks, keys and places what the task got."""

    @abstractmethod
    def _new_file(self, changes: Changes, first: int) -> TaskFile:
        """The file of one bucket."""

    @abstractmethod
    def _encode(self, file: TaskFile, to: SpooledBytes) -> None:
        """Writes its bytes: the same ones for the same rows, whatever else this process has written."""

    @abstractmethod
    def _made_of(self, source: pa.NativeFile, path: str) -> str:
        """``made_of`` the keys of a stored file. Raises CorruptFileError for a file that no load has written."""

    def write(self, rows: pa.Table, written: Callable[[int], None] = lambda _: None) -> tuple[list[WriteStatus], int]:
        """One durable file for each bucket of ``rows``, sorted, with one row of each key; and how many rows were beaten.

        ``rows``: all rows of these buckets. ``written`` gets the rows of each finished file.
        Raises FixCall for rows that do not fit and for a second run that gets other rows, RetryLater, OperatorNeeded,
        DeposedError when the stage was revoked, SyncFailedError.
        """
        placed = self._place(rows)
        given = len(placed.keys)
        del rows
        changes = sift_batch(placed, self._definition.ordering)
        del placed
        changes.sort(key=lambda each: (each.partition, each.bucket))  # so that a row has one sequence number in every run
        statuses: list[WriteStatus] = []
        first = 1
        changes.reverse()
        while changes:
            file = self._new_file(changes.pop(), first)
            statuses.append(self._write(file))
            count = file.rows.num_rows
            first += count
            del file
            written(count)
        return statuses, given - (first - 1)

    def _write(self, file: TaskFile) -> WriteStatus:
        staged = staged_path(self._stage, self._task.instant, file.partition, file.file_id, file.log_version)
        made = self._stored(file, staged) or self._create(file, staged)
        rows, deletes = file.rows.num_rows, 0
        if self._deletes:
            rows, deletes = 0, rows
        stat = WriteStat(file.file_id, file.partition, file.name, made.size, rows, deletes, file.log_version)
        return WriteStatus(stat, made)

    def _create(self, file: TaskFile, staged: str) -> DataFile:
        with self._store.spool(staged or file.path, "") as spool:
            self._encode(file, spool.file)
            if spool.create() is Outcome.CREATED:
                return DataFile(file.path, spool.file.size, spool.file.sha256, staged)
        stored = self._stored(file, staged)
        if stored is None:
            raise StoreUnavailableError(f"the store did not say whether {file.path} was created", fix="Run the task again.")
        return stored

    def _stored(self, file: TaskFile, staged: str) -> DataFile | None:
        """The file that another run of the task has made, read once for its checksum; None when there is none."""
        at = staged or file.path

        def read(source: pa.NativeFile) -> None:
            found = self._made_of(source, at)
            if found != file.made_of:
                raise FixCall(
                    f"a second run of a task got other rows for {file.path} than the first ({file.made_of} and {found})",
                    fix="Write what gives other rows each time (random values, say) to files first, and load those.",
                )

        stored = stored_file(self._store, at, read, in_memory=self.made_of_all)
        return DataFile(file.path, stored.size, stored.sha256, staged) if stored is not None else None


def slices_in(order: Array, file: TaskFile) -> Iterator[tuple[int, pa.Table, Array]]:
    """The rows in an order, by their numbers, in slices that fit a row group: where each begins, rows, keys."""
    rows = file.rows.combine_chunks()
    step = max(1, min(GROUP_ROWS, GROUP_BYTES * rows.num_rows // max(1, rows.nbytes)))
    for at in range(0, rows.num_rows, step):
        some = order.slice(at, step)
        yield at, rows.take(some), file.keys.take(some)


def made_of(*keys: Array) -> str:
    """Number of rows, and the sum of their keys' hashes, which does not depend on their order."""
    total = sum(int(java_string_hash(each).view(np.uint32).astype(np.uint64).sum()) for each in keys)
    return json.dumps({"rows": sum(map(len, keys)), "keys": total}, sort_keys=True)


def one_chunk(column: pa.ChunkedArray[pa.Scalar[pa.DataType]] | Array) -> Array:
    """The values in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
