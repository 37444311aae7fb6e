"""Another number of buckets for a table: a Spark job whose tasks rewrite file groups under an instant of the driver.

Each unit of a rescale is a task of its own, the largest first. Spark may run a task twice: names are fixed, and the loser reports
the winner's files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate_spark.carried import carrying
from headgate_spark.progress import Listener, LoadAccumulator, Written, accumulator_of
from headgate_spark.spread import TASK, numbers_of_tasks
from headgate_spark.tasks import REPORT, Report, collected
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.owner import Table
from headgate_tables.face.rescaling import RescaleJob, RescaleUnit
from headgate_tables.face.results import RescaleResult
from headgate_tables.opening import open_folder, open_table
from headgate_tables.system import System
from headgate_tables.writing import rescale_unit

_UNIT = "unit"


def rescale(
    spark: SparkSession,
    table: str | Table,
    buckets: int,
    *,
    partitions: str = "",
    storage_options: Mapping[str, str] | None = None,
    progress: Callable[[Written], object] | None = None,
    planned: RescaleResult | None = None,
) -> RescaleResult:
    """Spreads the rows over another number of buckets a partition, in one commit; durable and visible when this returns.

    ``table``: a URL that drivers and executors reach, or an open handle. ``partitions``: only those whose paths this matches, in
    which each ``*`` stands for any characters but a slash, and those that come; "" for all. ``storage_options``: for the
    executors, and for a URL.
    A task merges a few slices as a compaction does, in little memory however large they are. ``progress`` is called from another
    thread with the sums of all finished tasks, whenever one has ended; not through Spark Connect. ``planned``: what
    ``Table.rescale`` has planned a moment ago, to look only at newer commits for files that are gone from the store.

    Readers see the rows once, before and after. A driver that dies leaves nothing visible and blocks nobody: run it again.
    Raises OptionError for a number that a table cannot have, TransactionError while a compaction is open, TablesError; that of a
    task arrives as what it was.
    """
    if isinstance(table, str):
        with open_table(table, storage_options=storage_options) as opened:
            return rescale(
                spark,
                opened,
                buckets,
                partitions=partitions,
                storage_options=storage_options,
                progress=progress,
                planned=planned,
            )
    listener = Listener(progress) if progress is not None else None
    tasks = UnitTasks(spark, table.url, storage_options, table.check_owner, listener)
    return table.rescale(buckets, partitions=partitions, run=tasks, planned=planned)


@dataclass(frozen=True, slots=True)
class UnitTasks:
    """A ``RunUnits``. ``check_owner``: see ``jobs_while_owned``."""

    spark: SparkSession
    url: str
    storage_options: Mapping[str, str] | None
    check_owner: Callable[[], None]
    listener: Listener | None

    def __call__(self, job: RescaleJob, units: Sequence[RescaleUnit]) -> Iterable[Sequence[WriteStatus]]:
        """Runs the job. Raises the TablesError of a task as such, as ``jobs_while_owned``, and what the listener's ``progress``
        raised.
        """
        if not units:
            return []
        numbers = numbers_of_tasks(len(units))
        largest_first = sorted(units, key=lambda unit: unit.input_bytes, reverse=True)
        rows = [(number, unit.encode()) for number, unit in zip(numbers, largest_first, strict=True)]
        given = self.spark.createDataFrame(rows, f"{TASK} int, {_UNIT} string").repartition(len(units), TASK)
        accumulator = accumulator_of(self.spark, self.listener) if self.listener is not None else None
        rewriting = Rewriting(self.url, self.storage_options, job, accumulator)
        report = collected(given.mapInArrow(rewriting.write, REPORT), self.check_owner)
        if self.listener is not None and self.listener.failed is not None:
            raise self.listener.failed
        return [report.statuses]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Rewrites the units of a task, in an executor."""

    url: str
    storage_options: Mapping[str, str] | None
    job: RescaleJob
    accumulator: LoadAccumulator | None

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Units in, one ``REPORT`` a unit out."""
        with carrying():
            for batch in batches:
                for unit in batch.column(_UNIT).to_pylist():
                    folder = open_folder(self.url, self.storage_options, System.real().ids)
                    statuses = rescale_unit(folder, self.job, RescaleUnit.decode(str(unit)))
                    if self.accumulator is not None:
                        self.accumulator.add(Written.of(statuses))
                    yield Report(statuses, 0).encode()
