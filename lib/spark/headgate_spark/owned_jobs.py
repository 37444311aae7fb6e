"""Ends the Spark job of a driver that has lost its table meanwhile: what its tasks write could never be committed.

An owner takes a loan back, another coordinator takes the table over, somebody drops it: each wins a slot of the commit log, so a
look at the log finds all of them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate_tables.errors import DeposedError, RetryLater, TablesError
from headgate_tables.system import System

_LOOK_S: Final = 5.0
"""Between two looks at the log, of two requests: how long a job goes on for nothing. Also between two orders to cancel it."""


@contextlib.contextmanager
def jobs_while_owned(spark: SparkSession, check_owner: Callable[[], None]) -> Iterator[None]:
    """Around jobs that this thread runs for a table. ``check_owner``: that of ``Table``; another thread calls it, so the block
    leaves the table alone.

    Raises DeposedError when the table has got another owner, after the jobs were cancelled or failed; so with any error of
    ``check_owner`` but RetryLater. Does nothing through Spark Connect: the commit finds out then.
    """
    context = _context_of(spark)
    if context is None:
        yield
        return
    # A group of jobs is the caller's, for one of a streaming query, which cancels by it; tags add up.
    tag = f"headgate-{System.real().ids.token()}"
    over = threading.Event()
    with ThreadPoolExecutor(1, "headgate-owner") as threads:
        context.addJobTag(tag)
        watching = threads.submit(_watch, over, check_owner, lambda: context.cancelJobsWithTag(tag))
        try:
            yield
        except Exception as failed:
            over.set()
            # A task may fail before the next look finds the new owner, which takes its files away.
            if (lost := watching.result() or _lost(check_owner)) is not None:
                raise lost from failed
            raise
        finally:
            over.set()
            context.removeJobTag(tag)
        if (lost := watching.result()) is not None:
            raise lost


def _context_of(spark: SparkSession) -> SparkContext | None:
    try:
        context: SparkContext = spark.sparkContext
    except PySparkException:
        return None
    return context


def _watch(over: threading.Event, check_owner: Callable[[], None], cancel: Callable[[], None]) -> TablesError | None:
    """Returns why the jobs were cancelled; None when they ended before that. Cancels again and again: the block may begin
    its next job behind the first order.
    """
    while not over.wait(_LOOK_S):
        if (lost := _lost(check_owner)) is not None:
            cancel()
            while not over.wait(_LOOK_S):
                cancel()
            return lost
    return None


def _lost(check_owner: Callable[[], None]) -> TablesError | None:
    try:
        check_owner()
    except RetryLater:
        return None  # a store that does not answer says nothing about the owner
    except DeposedError as error:
        return DeposedError(f"{error.message}; the Spark job ended, and nothing of it is visible", fix=error.fix)
    except TablesError as error:
        return error
    return None
