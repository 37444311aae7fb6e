"""Tasks of a compaction on Spark that fail, die, sleep or wait for each other. Spark's workers import this."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pyspark import TaskContext

from headgate_compactor.on_spark import SparkTask
from headgate_proto.cluster.v1 import compaction_pb2 as wire


def _is_first() -> bool:
    return bool(TaskContext.get().attemptNumber() == 0)


class FailsOnce(SparkTask):
    def __call__(self, number: int) -> bytes:
        if _is_first():
            raise RuntimeError("a task that was made to fail")
        return SparkTask.__call__(self, number)


class DiesOnce(SparkTask):
    def __call__(self, number: int) -> bytes:
        if _is_first():
            os.kill(os.getpid(), signal.SIGKILL)
        return SparkTask.__call__(self, number)


class DiesBehindItsFile(SparkTask):
    def __call__(self, number: int) -> bytes:
        report = SparkTask.__call__(self, number)
        if _is_first():
            os.kill(os.getpid(), signal.SIGKILL)
        return report


class Dies(SparkTask):
    def __call__(self, number: int) -> bytes:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("it lives")


class Sleeps(SparkTask):
    def __call__(self, number: int) -> bytes:
        time.sleep(60)
        raise AssertionError("nobody ended it")


class Meets(SparkTask):
    """Goes on when another one is there."""

    def __call__(self, number: int) -> bytes:
        table = wire.RunAttempt.FromString(self.order).url.removeprefix("file://")
        folder = Path(f"{table}.met")
        folder.mkdir(exist_ok=True)
        (folder / str(os.getpid())).touch()
        deadline = time.monotonic() + 30
        while len(list(folder.iterdir())) < 2:
            assert time.monotonic() < deadline, "alone"
            time.sleep(0.05)
        return SparkTask.__call__(self, number)
