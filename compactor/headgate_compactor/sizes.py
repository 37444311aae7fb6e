"""Which attempts run here, and which on Spark, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from headgate_compactor.runner import RunningAttempt
from headgate_compactor.settings import CompactorSettings
from headgate_proto.cluster.v1 import compaction_pb2 as wire

if TYPE_CHECKING:
    from headgate_compactor.on_spark import SparkRunner

Run: TypeAlias = Callable[[RunningAttempt], wire.WorkRequest]


def by_size(here: Run, on_spark: Run, above: int) -> Run:
    """Attempts at operations of more than ``above`` bytes of base and log files go to ``on_spark``."""

    def run(running: RunningAttempt) -> wire.WorkRequest:
        return (on_spark if input_bytes(running.order.operation) > above else here)(running)

    return run


def input_bytes(operation: wire.CompactionOperation) -> int:
    """Bytes of the base file and the logs."""
    return operation.base.size + sum(log.size for log in operation.logs)


def spark_runner(settings: CompactorSettings) -> SparkRunner | None:
    """None without ``spark_master``. Raises ImportError without PySpark, which is as large as all else together."""
    if not settings.spark_master:
        return None
    from headgate_compactor.on_spark import SparkRunner

    return SparkRunner(settings.spark_master, settings.spark_conf, settings.storage_options, settings.store, settings.operations)
