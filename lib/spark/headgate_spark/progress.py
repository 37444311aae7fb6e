"""What the finished tasks of a load have written so far, as the driver hears of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.accumulators import AccumulatorParam
from pyspark.errors import PySparkException

from headgate_tables.face.files import WriteStatus


@dataclass(frozen=True, slots=True)
class Written:
    """Finished tasks, and their files, rows (deletes, too) and bytes. A task that ran twice counts once."""

    tasks: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, statuses: Sequence[WriteStatus]) -> Written:
        """What one task has written."""
        stats = [status.stat for status in statuses]
        return cls(1, len(stats), sum(each.rows + each.deletes for each in stats), sum(each.size for each in stats))

    def __add__(self, other: Written) -> Written:
        return Written(self.tasks + other.tasks, self.files + other.files, self.rows + other.rows, self.bytes + other.bytes)


class LoadAccumulator(Protocol):
    """Spark's accumulator of one load, in a task."""

    def add(self, term: Written) -> None:
        """Brings to the driver what a task has written, when the task has ended well."""


class Listener(AccumulatorParam[Written]):  # type: ignore[misc]
    """Adds up, and calls ``progress`` in the driver, in the thread that hears of a task's end. Tasks get it without the call."""

    def __init__(self, progress: Callable[[Written], object] | None = None) -> None:
        self._progress = progress
        self.failed: Exception | None = None

    def zero(self, value: Written) -> Written:  # noqa: ARG002 - Spark's signature
        """Where a task begins."""
        return Written()

    def addInPlace(self, value1: Written, value2: Written) -> Written:
        """The sum. An error of ``progress`` is kept: raised here it would end what brings Spark's updates."""
        total = value1 + value2
        if self._progress is not None and self.failed is None:
            try:
                self._progress(total)
            except Exception as error:  # noqa: BLE001 - whatever it is, its caller gets it at the end
                self.failed = error
        return total

    def __reduce__(self) -> tuple[type[Listener], tuple[()]]:
        return Listener, ()


def accumulator_of(spark: Any, listener: Listener) -> LoadAccumulator | None:
    """None through Spark Connect, which brings nothing of a task before its end."""
    try:
        accumulator: LoadAccumulator = spark.sparkContext.accumulator(Written(), listener)
    except PySparkException:
        return None
    return accumulator
