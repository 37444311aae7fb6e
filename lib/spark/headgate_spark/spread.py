"""Which task writes a file group, and how Spark is brought to send its rows there."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession

TASK: Final = "_headgate_task"
"""The column by which rows are repartitioned."""
_numbers: dict[int, Sequence[int]] = {}
"""What ``numbers_of_tasks`` has found out in this process; it depends on nothing but the number of tasks."""


def task_of(partition: str, bucket: int, tasks: int) -> int:
    """0 to ``tasks - 1``. Buckets of one partition go to different tasks, as far as there are enough of these."""
    return (zlib.crc32(partition.encode()) + bucket) % tasks


def numbers_of_tasks(spark: SparkSession, tasks: int) -> Sequence[int]:
    """For each task a number whose hash sends rows to it: Spark takes the hash of what it repartitions by, modulo ``tasks``, and
    would give one task several groups and another none. Runs a job for a number of tasks that is new in this process.
    """
    if tasks == 1:
        return (0,)
    if tasks not in _numbers:
        _numbers[tasks] = _find_numbers(spark, tasks)
    return _numbers[tasks]


def _find_numbers(spark: SparkSession, tasks: int) -> Sequence[int]:
    numbers: dict[int, int] = {}
    start, size = 0, 8 * tasks + 64
    while len(numbers) < tasks:
        values = spark.range(start, start + size).selectExpr("cast(id as int) as number")
        for row in values.selectExpr("number", f"pmod(hash(number), {tasks}) as task").collect():
            numbers.setdefault(row["task"], row["number"])
        start += size
    return tuple(numbers[task] for task in range(tasks))
