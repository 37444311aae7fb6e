"""A service returns memory after a burst, and only then."""

import asyncio
import os
import subprocess
import sys

import pytest

from headgate_runtime.environment import ENVIRONMENT
from headgate_runtime.unused_memory import CalmAfterGrowth, Heap, return_unused_memory
from support.processes import READY_S

MIB = 1 << 20


def decisions(*samples: tuple[float, int]) -> list[bool]:
    """Of (CPU seconds, resident MiB), from 100 MiB on; a return brings the process back to these."""
    decision = CalmAfterGrowth(100 * MIB)
    found = []
    for cpu_s, resident in samples:
        found.append(decision.sample(cpu_s, resident * MIB))
        if found[-1]:
            decision.returned(100 * MIB)
    return found


def test_memory_is_returned_after_three_calm_seconds() -> None:
    assert decisions((0.9, 300), *[(0.1, 300)] * 3, (0.1, 100)) == [False, False, False, True, False]


def test_a_busy_second_begins_the_wait_anew() -> None:
    assert decisions(*[(0.1, 300), (0.1, 300), (0.5, 300)] * 3) == [False] * 9


def test_a_process_that_has_not_grown_keeps_what_it_has() -> None:
    assert decisions(*[(0.0, 115)] * 10) == [False] * 10
    assert decisions(*[(0.0, 116)] * 4) == [False, False, False, True]


def test_growth_counts_from_the_least_since_the_last_return() -> None:
    assert decisions((0.9, 80), *[(0.1, 95)] * 5) == [False] * 6
    assert decisions((0.9, 80), *[(0.1, 96)] * 4) == [False, False, False, False, True]


def test_what_the_start_left_is_returned_once() -> None:
    decision = CalmAfterGrowth()
    assert [decision.sample(0.0, 100 * MIB) for _ in range(4)] == [False, False, False, True]
    decision.returned(90 * MIB)
    assert not any(decision.sample(0.0, 100 * MIB) for _ in range(10))


def test_what_a_return_leaves_is_not_asked_for_again() -> None:
    decision = CalmAfterGrowth(100 * MIB)
    assert [decision.sample(0.0, 300 * MIB) for _ in range(4)] == [False, False, False, True]
    decision.returned(290 * MIB)
    assert not any(decision.sample(0.0, 300 * MIB) for _ in range(10))


def test_the_burst_itself_is_waited_for_though_it_costs_little_cpu() -> None:
    """What is freed after a return would stay: 1,024 streams end within a second, for 0.4 CPU seconds."""
    assert decisions(*[(0.1, 100)] * 5, *[(0.4, 160), (0.1, 192), (0.1, 192), (0.1, 192), (0.1, 192)])[5:] == [*[False] * 4, True]


class AtItsLimits:
    """A heap of a process that may start no thread."""

    def __init__(self) -> None:
        self.tried = asyncio.Event()
        self.closed = False
        self._loop = asyncio.get_running_loop()

    def unused(self) -> int:
        return 100 * MIB

    def trim(self) -> None:
        self._loop.call_soon_threadsafe(self.tried.set)
        raise RuntimeError("can't start new thread")

    def close(self) -> None:
        self.closed = True


class NoTime:
    def now_ms(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        del seconds
        await asyncio.sleep(0)


async def test_a_process_that_may_start_no_thread_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    heap = AtItsLimits()
    monkeypatch.setattr(Heap, "of_process", lambda: heap)
    task = asyncio.create_task(return_unused_memory(NoTime()))
    async with asyncio.timeout(READY_S):
        await heap.tried.wait()
        for _ in range(100):
            await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heap.closed


_WITHOUT_FILES = """
import os, resource
from headgate_runtime.unused_memory import Heap

heap = Heap.of_process()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
try:
    os.open("/proc/self/statm", os.O_RDONLY)
except OSError as error:
    print(error.strerror, heap.unused() > 0)
"""


def test_a_process_that_may_open_no_more_files_goes_on() -> None:
    """A service ended of it: `./task nemesis` takes descriptors away."""
    done = subprocess.run([sys.executable, "-c", _WITHOUT_FILES], capture_output=True, text=True, check=True)
    assert done.stdout == "Too many open files True\n"


_FREED = """
import ctypes, sys, threading
from headgate_runtime.unused_memory import Heap

heap, libc, MIB = Heap.of_process(), ctypes.CDLL(None), 1 << 20
libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]

def use_and_free():
    heap.trim()
    used = before = heap.unused()
    blocks = [libc.malloc(MIB) for _ in range(40)]
    for block in blocks:
        ctypes.memset(block, 1, MIB)
    if sys.argv[1] == "meanwhile":
        heap.trim()
        used = heap.unused()
    for block in reversed(blocks):
        libc.free(block)
    freed = heap.unused()
    heap.trim()
    print((used - before) // MIB, (freed - before) // MIB, (freed - heap.unused()) // MIB)

use_and_free()
for thread in [threading.Thread(target=use_and_free) for _ in range(3)]:
    thread.start()
    thread.join()
"""


@pytest.mark.parametrize("trimmed", ["never", "meanwhile"])
def test_what_any_thread_freed_counts_as_unused_and_is_returned(trimmed: str) -> None:
    """Threads after the first one allocate from an arena whose free end malloc_trim leaves. A trim while blocks are in use
    returns nothing, and must not keep what is freed later from being counted.
    """
    command = [sys.executable, "-c", _FREED, trimmed]
    done = subprocess.run(command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=True)
    figures = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(figures) == 4
    for in_use, unused, returned in figures:
        assert in_use == pytest.approx(0, abs=2)
        assert unused == pytest.approx(40, abs=2)
        assert returned == pytest.approx(40, abs=2)
