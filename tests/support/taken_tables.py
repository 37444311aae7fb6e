"""Tables that another process takes over while Spark works on them, and tasks that would work for a long time."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_spark.rescaling import Rewriting
from headgate_spark.tasks import Writing
from headgate_tables import hudi
from headgate_tables.errors import DeposedError
from support.waiting import wait_until

_LONG_S = 120.0


def _folder(url: str) -> Path:
    """Where the tasks of a table say that they are at work, each in a file of its process id."""
    return Path(url.removeprefix("file://") + ".at-work")


def tasks_at_work(url: str) -> list[int]:
    """Processes of tasks that have written their files, and would go on."""
    folder = _folder(url)
    return [int(each.name) for each in folder.iterdir()] if folder.exists() else []


def wait_until_nobody_works(url: str) -> None:
    """Until these processes are gone."""
    wait_until("the tasks are gone", lambda: not any(map(_runs, tasks_at_work(url))))


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


class GoesOn:
    """Every task goes on for long when its files are written. Mixed, as those of ``spark_faults``, into what a task does."""

    url: str

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reports = list(super().write(batches))  # type: ignore[misc]
        folder = _folder(self.url)
        folder.mkdir(exist_ok=True)
        (folder / str(os.getpid())).touch()
        time.sleep(_LONG_S)
        yield from reports
        raise AssertionError("nobody ended it")


class LoadGoesOn(GoesOn, Writing): ...


class RescaleGoesOn(GoesOn, Rewriting): ...


@contextlib.contextmanager
def once_tasks_work(url: str, call: Callable[[], object]) -> Iterator[None]:
    """Calls it in a thread of its own when a task has written its files; raises what that raises, at the end."""

    def run() -> None:
        wait_until("a task works", lambda: tasks_at_work(url))
        call()

    with ThreadPoolExecutor(1) as thread:
        called = thread.submit(run)
        yield
        called.result()


def assert_cancelled_when_taken(spark: Any, url: str, call: Callable[[], object]) -> None:
    """Of a call whose tasks go on for long: it raises when another program owns the table, and nothing of it runs any more."""
    with once_tasks_work(url, lambda: take_over(url)), pytest.raises(DeposedError) as error:
        call()
    assert "the Spark job ended, and nothing of it is visible" in error.value.message
    assert "Open the table again" in error.value.fix
    wait_until_no_job_runs(spark)
    wait_until_nobody_works(url)
    assert list(spark.sparkContext.getJobTags()) == []


def take_over(url: str) -> None:
    """As another program does."""
    with hudi.open_table(url, take_over=True) as other:
        other.own()


def wait_until_no_job_runs(spark: Any) -> None:
    """Spark's tracker hears of a job's end a moment later."""
    wait_until("no job runs", lambda: not spark.sparkContext.statusTracker().getActiveJobsIds())
