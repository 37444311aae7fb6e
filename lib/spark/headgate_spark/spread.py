"""Which task writes a file group, and how Spark is brought to send its rows there."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession

TASK: Final = "_headgate_task"
"""The column by which rows are repartitioned."""


def task_of(partition: str, bucket: int, tasks: int) -> int:
    """0 to ``tasks - 1``. Buckets of one partition go to different tasks, as far as there are enough of these."""
    return (zlib.crc32(partition.encode()) + bucket) % tasks


def numbers_of_tasks(tasks: int) -> Sequence[int]:
    """For each task a number whose hash sends rows to it: Spark takes the hash of what it repartitions by, modulo ``tasks``, and
    would give one task several groups and another none.
    """
    numbers: dict[int, int] = {}
    start, size = 0, 8 * tasks + 64
    while len(numbers) < tasks:
        receivers, firsts = np.unique(_hashes(np.arange(start, start + size, dtype=np.uint32)) % tasks, return_index=True)
        numbers = dict(zip(receivers.tolist(), (firsts + start).tolist(), strict=True)) | numbers
        start += size
    return tuple(numbers[task] for task in range(tasks))


def positions(session: SparkSession, count: int) -> DataFrame:
    """The column ``id``, 0 to ``count - 1``, a task for each. As SQL: the first ``SparkSession.range`` costs half a second of
    CPU, for an encoder of longs that is made by reflection.
    """
    return session.sql(f"SELECT id FROM range(0, {count}, 1, {max(1, count)})")  # noqa: S608 - two integers


def _hashes(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """What Spark SQL's ``hash`` gives for ints: Murmur3 (x86, 32 bits) of four bytes with the seed 42. Spark names the buckets of
    its own tables by it, so it stays as it is (org.apache.spark.unsafe.hash.Murmur3_x86_32).
    """
    word = np.uint32
    mixed = _rotated(numbers * word(0xCC9E2D51), 15) * word(0x1B873593)
    mixed = _rotated(mixed ^ word(42), 13) * word(5) + word(0xE6546B64)
    mixed = mixed ^ word(4)  # the number of bytes
    mixed = (mixed ^ mixed >> word(16)) * word(0x85EBCA6B)
    mixed = (mixed ^ mixed >> word(13)) * word(0xC2B2AE35)
    return (mixed ^ mixed >> word(16)).view(np.int32)


def _rotated(numbers: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return numbers << np.uint32(bits) | numbers >> np.uint32(32 - bits)
