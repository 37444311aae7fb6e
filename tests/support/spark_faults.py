"""Tasks of a bulk load that fail, die or run twice, and a driver that is killed at a named step. Spark's workers import this."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
from pyspark import TaskContext

from headgate_spark import bootstrap, bulk_insert, delete, loading, rescale, rescaling, upsert
from headgate_spark.planning import Load
from headgate_spark.rescaling import Rewriting
from headgate_spark.tasks import Writing

BOOTSTRAP: Final = "bootstrap"
RESCALE: Final = "rescale"
LOST: Final = "executors lost"
"""The only step that a driver outlives; two executors run beside it."""
STEPS = ("announced", "a task wrote its files", "files reported", "slot won")


def _is_first() -> bool:
    return bool(TaskContext.get().attemptNumber() == 0)


class Fails:
    """Every task fails when its files are written, the first time. Mixed, as those below, into what a task does: ``Writing`` of a
    load, ``Rewriting`` of a rescale.
    """

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for report in super().write(batches):  # type: ignore[misc]
            if _is_first():
                raise RuntimeError("a task that was made to fail")
            yield report


class Dies:
    """Every task's process is killed when its files are written, the first time."""

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for report in super().write(batches):  # type: ignore[misc]
            if _is_first():
                os.kill(os.getpid(), signal.SIGKILL)
            yield report


class Twins:
    """Every task has a twin that writes at the same moment; the report of one of them is lost."""

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = list(batches)
        context = TaskContext.get()
        write = super().write  # type: ignore[misc]

        def run(rows: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
            TaskContext._setTaskContext(context)  # it is a thread's own
            return list(write(iter(rows)))

        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(run, [given, given[::-1]])
        assert one == other
        yield from other


class Kills:
    """The first task that has written its files kills the driver, then itself."""

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for report in super().write(batches):  # type: ignore[misc]
            os.kill(int(os.environ["HEADGATE_DRIVER"]), signal.SIGKILL)
            yield report


class LosesExecutors:
    """The Java of two tasks' executors is killed when the files of the task are written, the first time. Spark repeats a stage no
    more than three times, and does so here, since shuffle files are lost with an executor.
    """

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for report in super().write(batches):  # type: ignore[misc]
            task = TaskContext.get().partitionId()
            mark = Path(os.environ["HEADGATE_KILLED"], str(task))  # in a stage that is repeated attempts begin with 0 again
            if task < 2 and not mark.exists():
                mark.touch()
                daemon = os.getppid()
                executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
                os.kill(executor, signal.SIGKILL)
                time.sleep(60)  # no report arrives: Spark's Python ends with the Java that started it
            yield report


class FailsOnce(Fails, Writing): ...


class LosesItsExecutor(LosesExecutors, Writing): ...


class RescaleLosesItsExecutor(LosesExecutors, Rewriting): ...


class DiesOnce(Dies, Writing): ...


class RunsTwice(Twins, Writing): ...


class KillsTheDriver(Kills, Writing): ...


class RescaleFailsOnce(Fails, Rewriting): ...


class RescaleDiesOnce(Dies, Rewriting): ...


class RescaleRunsTwice(Twins, Rewriting): ...


class RescaleKillsTheDriver(Kills, Rewriting): ...


def _kill_before(owner: Any, name: str) -> None:
    def killed(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, killed)


def _arm(step: str) -> None:
    from headgate_tables.commitlog.unpublished import Unpublished
    from headgate_tables.hudi.transaction import Transaction

    match step:
        case "announced":
            _kill_before(loading, "_run")
            _kill_before(rescaling.UnitTasks, "__call__")
        case "a task wrote its files":
            setattr(loading, "Writing", KillsTheDriver)  # noqa: B010 - it is imported there, not exported
            setattr(rescaling, "Rewriting", RescaleKillsTheDriver)  # noqa: B010
        case "files reported":
            _kill_before(Transaction, "add")
        case "slot won":
            _kill_before(Unpublished, "publish_own")
        case _ if step == LOST:
            setattr(loading, "Writing", LosesItsExecutor)  # noqa: B010
            setattr(rescaling, "Rewriting", RescaleLosesItsExecutor)  # noqa: B010
        case _:
            raise ValueError(step)


def drive(step: str, url: str, source: str, load: Load | Literal["bootstrap", "rescale"] = "into_empty") -> None:
    """A driver that loads the Parquet file and is killed at the step, or loses its executors and goes on. ``source`` of a
    rescale: the number of buckets.
    """
    from pyspark.sql import SparkSession

    os.environ["HEADGATE_DRIVER"] = str(os.getpid())  # workers inherit what Spark's Java is started with
    master = "local-cluster[2,1,512]" if step == LOST else "local[2]"
    builder = (
        SparkSession.builder.master(master)
        .config("spark.executor.memory", "512m")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
    )
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    builder = builder.config("spark.sql.codegen.wholeStage", "false").config("spark.sql.session.timeZone", "UTC")
    spark = builder.getOrCreate()
    _arm(step)
    if load == RESCALE:
        rescale(spark, url, int(source))
        return
    rows = spark.read.parquet(source)
    if load == "upsert":
        upsert(rows, url, tasks=2, batch=("query", 7))
    elif load == "delete":
        delete(rows, url, tasks=2, batch=("query", 7))
    elif load == BOOTSTRAP:
        bootstrap(rows, url, record_key="id", partition_by="part", ordering="ts", buckets=2, tasks=2, step_rows=250)
    else:
        bulk_insert(rows, url, mode=load, tasks=2)


if __name__ == "__main__":
    from support import spark_faults  # what tasks get is imported there, too

    spark_faults.drive(*sys.argv[1:])  # type: ignore[arg-type]
