"""Runs attempts at large operations as Spark jobs of one task each: the same merge, on a machine of a Spark cluster.

A lost executor costs time, because Spark runs its task again. A lost driver, which is this process, is a lost compactor.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate_compactor.runner import AttemptRunner, RunningAttempt, failed
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.logs import get_logger
from headgate_tables.errors import SyncFailedError
from headgate_tables.system import SystemIds

_log = get_logger()
_BEAT_S: Final = 1.0
"""Between two looks at a job: how long a dropped attempt goes on, and how old the news is that Spark works on it."""

_QUIET: Final = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
"""Unless an operator wants otherwise: a bar between the lines of the log would make them unreadable."""


@dataclass(frozen=True, slots=True)
class SparkTask:
    """One attempt, pickled to an executor, which needs this package and access to the store. ``order``: a ``RunAttempt``."""

    order: bytes
    storage_options: Mapping[str, str]
    store: str

    def __call__(self, _: int) -> bytes:
        """The report. Each run stages its output in a folder of its own: another one of the same task may still be at work."""
        ids = SystemIds()
        runner = AttemptRunner(ids.token(), self.storage_options, ids, self.store)
        try:
            return runner.run(RunningAttempt(wire.RunAttempt.FromString(self.order))).SerializeToString()
        except SyncFailedError:
            os._exit(os.EX_IOERR)  # this process must not write any more (hazard H14); Spark runs the task again in another one


class SparkRunner:
    """``run`` is called from up to ``threads`` threads at a time. ``master``: as Spark takes it; ``conf``: its settings."""

    def __init__(
        self, master: str, conf: Mapping[str, str], storage_options: Mapping[str, str], store: str, threads: int
    ) -> None:
        self._options = dict(storage_options)
        self._store = store
        self._jobs = ThreadPoolExecutor(threads, "spark-job")
        builder = SparkSession.builder.master(master).appName("headgate-compactor")
        for key, value in {**_QUIET, **conf}.items():
            builder = builder.config(key, value)
        self._session: SparkSession = builder.getOrCreate()

    def run(self, running: RunningAttempt) -> wire.WorkRequest:
        """Returns the report. Raises what ends the connection to Spark's JVM: without it this process is of no use."""
        context: SparkContext = self._session.sparkContext
        attempt = running.order.attempt
        group = f"headgate {attempt.table} {attempt.instant} {attempt.operation} {attempt.number}"
        job = self._jobs.submit(self._run_job, context, group, running.order)
        while not self._is_over(job):
            if running.dropped:
                context.cancelJobGroup(group)
            elif _is_worked_on(context, group):
                running.batches += 1
        try:
            return wire.WorkRequest.FromString(job.result())
        except Py4JJavaError as error:
            if running.dropped:
                return wire.WorkRequest(returned=wire.AttemptReturned(attempt=attempt))
            _log.warning("Spark gave an operation up", table=attempt.table, instant=attempt.instant, exc_info=error)
            # It tells nothing of the slice: executors were lost, or a task died several times. Another compactor may be luckier.
            return failed(attempt, f"Spark gave the job up: {_first_line(error)}", wire.FAILURE_KIND_STORE)

    def _run_job(self, context: SparkContext, group: str, order: wire.RunAttempt) -> bytes:
        context.setJobGroup(group, group, interruptOnCancel=True)
        task = SparkTask(order.SerializeToString(), self._options, self._store)
        [report] = context.parallelize([0], 1).map(task).collect()
        return bytes(report)

    def _is_over(self, job: Future[bytes]) -> bool:
        with contextlib.suppress(TimeoutError):
            job.exception(timeout=_BEAT_S)
            return True
        return False

    def close(self) -> None:
        """Ends the session, and what still runs in it."""
        self._session.stop()
        self._jobs.shutdown()


def _is_worked_on(context: SparkContext, group: str) -> bool:
    """Whether an executor has the job's task."""
    tracker = context.statusTracker()
    jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
    stages = filter(None, (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds))
    return any(stage.numActiveTasks for stage in stages)


def _first_line(error: Py4JJavaError) -> str:
    return str(error.java_exception.getMessage() or error).splitlines()[0]
