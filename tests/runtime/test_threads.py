"""Threads whose work may meet with an error that ends the process."""

import asyncio
import threading

import pytest

from headgate_runtime.threads import FailStopThreads
from support.processes import READY_S


class FatalError(Exception):
    """What ends the process."""


def fail() -> None:
    raise FatalError("the first")


async def test_the_first_fatal_error_is_told_also_of_work_that_nobody_waits_for() -> None:
    with FailStopThreads(1, "t", FatalError) as threads:
        gate = threading.Event()
        threads.submit(gate.wait)
        nobody = asyncio.get_running_loop().run_in_executor(threads, fail)
        nobody.add_done_callback(lambda done: done.cancelled() or done.exception())
        gate.set()
        with pytest.raises(FatalError, match="the first"):
            await asyncio.wait_for(threads.failed(), READY_S)


async def test_work_that_was_under_way_at_a_fatal_error_brings_no_result_and_none_is_begun_after_it() -> None:
    with FailStopThreads(2, "t", FatalError) as threads:
        begun, gate = threading.Event(), threading.Event()

        def under_way() -> str:
            begun.set()
            gate.wait()
            return "went well"

        running = threads.submit(under_way)
        begun.wait()
        assert isinstance(threads.submit(fail).exception(), FatalError)
        gate.set()
        assert isinstance(running.exception(), FatalError)
        after: list[int] = []
        assert isinstance(threads.submit(after.append, 1).exception(), FatalError)
        assert not after


async def test_other_errors_are_only_those_of_their_work() -> None:
    with FailStopThreads(1, "t", FatalError) as threads:
        assert isinstance(threads.submit(int, "x").exception(), ValueError)
        assert threads.submit(int, "1").result() == 1
        threads.end()


async def test_who_ends_the_threads_hears_of_a_fatal_error() -> None:
    threads = FailStopThreads(1, "t", FatalError)
    threads.submit(fail)
    with pytest.raises(FatalError, match="the first"):
        threads.end()
