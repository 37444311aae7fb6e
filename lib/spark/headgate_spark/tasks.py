"""What tasks of a load do. They get nothing from the driver but these objects, pickled."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from headgate_spark.carried import carried_by, carrying
from headgate_spark.owned_jobs import jobs_while_owned
from headgate_spark.packing import Numbers, Packer, unpacked
from headgate_spark.planning import Load
from headgate_spark.progress import LoadAccumulator, Written
from headgate_spark.source_files import SourceRows
from headgate_spark.spread import TASK, task_of
from headgate_spark.text_limit import check_text
from headgate_tables.face.definition import Definition
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.face.log import DataFile
from headgate_tables.face.writing import BulkFiles, LoadTask
from headgate_tables.opening import open_folder
from headgate_tables.storage.store import Store
from headgate_tables.system import System
from headgate_tables.writing import bulk_files, log_files, place, place_deletes

REPORT: Final = (
    "file_id string, partition string, name string, version long, size long, rows long, deletes long, "
    "sha256 string, stage string, beaten long"
)
"""One row for each file; ``beaten``: of the whole task, in its first row."""
_COLUMNS: Final = tuple(column.split() for column in REPORT.split(", "))
_TYPES: Final[dict[str, pa.DataType]] = {"string": pa.string(), "long": pa.int64()}


@dataclass(frozen=True, slots=True)
class Placing:
    """Gives each row the number that sends it to its task. ``numbers``: see ``numbers_of_tasks``; ``deletes``: of all rows."""

    definition: Definition
    numbers: Sequence[int]
    deletes: bool = False

    def place(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with the column ``TASK``, int32."""
        with carrying():
            for batch in batches:
                if batch.num_rows:
                    yield batch.append_column(TASK, pa.array(self.placed(batch)[1], pa.int32()))

    def placed(self, batch: pa.RecordBatch) -> tuple[pa.Table, Numbers]:
        """The rows as the table has them, and int32[n], of the task of each. Raises FixCall errors."""
        rows = pa.Table.from_batches([batch])
        placed = place_deletes(rows, self.definition) if self.deletes else place(rows, None, self.definition)
        tasks = len(self.numbers)
        numbers = [self.numbers[task_of(partition, bucket, tasks)] for partition, bucket in placed.groups]
        found: Numbers = np.array(numbers, np.int32)[placed.group]
        return placed.rows, found


@dataclass(frozen=True, slots=True)
class Packing:
    """Reads row groups, and packs their rows for the tasks that write them. ``shares``: a list of ``Group`` for each task,
    pickled, so that a task unpickles its own alone.
    """

    source: SourceRows
    placing: Placing
    shares: Sequence[bytes]

    def pack(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Positions in ``shares`` in, batches of ``PACKED`` out."""
        with carrying():
            packer = Packer(len(self.placing.numbers))
            wanted = (int(number) for batch in numbers for number in batch.column(0).to_numpy())
            for number in wanted:
                for batch in self.source.read(pickle.loads(self.shares[number])):  # noqa: S301 - comes as this object does
                    yield from packer.add(*self.placing.placed(batch))
            yield from packer.end()


@dataclass(frozen=True, slots=True)
class Writing:
    """Writes the files of a task's groups. ``process``: names the folder where they wait on a local disk; ``settings``: texts by
    key; ``accumulator``: gets what the task has written; ``packed``: rows come in pieces.
    """

    url: str
    storage_options: Mapping[str, str] | None
    definition: Definition
    instant: str
    epoch: int
    process: str
    settings: Mapping[str, str]
    load: Load
    accumulator: LoadAccumulator | None = None
    packed: bool = False

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All rows of the task's groups in, one ``REPORT`` out."""
        with carrying():
            given = unpacked(batches) if self.packed else (batch.drop_columns([TASK]) for batch in batches)
            pieces = [batch for batch in given if batch.num_rows]
            if not pieces:
                self._count(())
                return
            check_text(pieces)
            files = self._files(open_folder(self.url, self.storage_options, System.real().ids))
            report = Report(*files.write(_joined(pieces)))
            self._count(report.statuses)
            yield report.encode()

    def _files(self, folder: Store) -> BulkFiles:
        task = LoadTask(self.instant, self.epoch, self.process, TaskContext.get().partitionId())
        if self.load in ("upsert", "delete"):
            return log_files(folder, self.definition, task, deletes=self.load == "delete")
        return bulk_files(folder, self.definition, task, settings=self.settings, overwriting=self.load != "into_empty")

    def _count(self, statuses: Sequence[WriteStatus]) -> None:
        if self.accumulator is not None:
            self.accumulator.add(Written.of(statuses))


def _joined(pieces: list[pa.RecordBatch]) -> pa.Table:
    """Empties the list: the rows are as much memory as a task may take."""
    table = pa.Table.from_batches(pieces)
    pieces.clear()
    return table


@dataclass(frozen=True, slots=True)
class Report:
    """The files of one task or of all, and how many rows a newer row of the same key beat."""

    statuses: Sequence[WriteStatus]
    beaten: int

    def encode(self) -> pa.RecordBatch:
        """With the columns of ``REPORT``."""
        rows = [
            {
                "file_id": status.stat.file_id,
                "partition": status.stat.partition,
                "name": status.stat.name,
                "version": status.stat.log_version,
                "size": status.stat.size,
                "rows": status.stat.rows,
                "deletes": status.stat.deletes,
                "sha256": status.file.sha256,
                "stage": status.file.stage,
                "beaten": 0 if at else self.beaten,
            }
            for at, status in enumerate(self.statuses)
        ]
        return pa.RecordBatch.from_pylist(rows, pa.schema([(name, _TYPES[kind]) for name, kind in _COLUMNS]))

    @classmethod
    def of(cls, rows: Sequence[Any]) -> Report:
        """From the rows of all tasks, by partition and file group."""
        statuses = []
        for row in sorted(rows, key=lambda row: (row["partition"], row["file_id"])):
            counts = (row["size"], row["rows"], row["deletes"], row["version"])
            stat = WriteStat(row["file_id"], row["partition"], row["name"], *counts)
            statuses.append(WriteStatus(stat, DataFile(stat.path, stat.size, row["sha256"], row["stage"])))
        return cls(statuses, sum(row["beaten"] for row in rows))


def collected(written: DataFrame, check_owner: Callable[[], None]) -> Report:
    """Runs a job whose rows are those of ``REPORT``. ``check_owner``: see ``jobs_while_owned``.

    Raises the TablesError of a task as such, and DeposedError when the table has got another owner.
    """
    try:
        with jobs_while_owned(written.sparkSession, check_owner):
            found: list[Any] = written.collect()
    except Exception as failed:
        if (error := carried_by(failed)) is not None:
            raise error from failed
        raise
    return Report.of(found)
