"""A service returns memory after a burst, and only then."""

import asyncio
import os
import subprocess
import sys
import time

import pytest

from headgate_runtime.environment import ENVIRONMENT
from headgate_runtime.heap import Heap
from headgate_runtime.unused_memory import CalmAfterGrowth, return_unused_memory
from support.processes import READY_S

MIB = 1 << 20


def decisions(*samples: int | None) -> list[bool]:
    """Of unused MiB, None for a busy second, from 100 MiB on; a return brings the process back to these."""
    decision = CalmAfterGrowth(100 * MIB)
    found = []
    for unused in samples:
        found.append(decision.sample(None if unused is None else unused * MIB))
        if found[-1]:
            decision.returned(100 * MIB)
    return found


def test_memory_is_returned_after_three_calm_seconds_in_which_it_grows_no_more() -> None:
    assert decisions(None, *[300] * 4, 100) == [False, False, False, False, True, False]


def test_a_busy_second_begins_the_wait_anew() -> None:
    assert decisions(*[300, 300, None] * 3) == [False] * 9


def test_a_process_that_has_not_grown_keeps_what_it_has() -> None:
    assert decisions(*[115] * 10) == [False] * 10
    assert decisions(*[116] * 4) == [False, False, False, True]


def test_growth_counts_from_the_least_since_the_last_return() -> None:
    assert decisions(80, *[95] * 5) == [False] * 6
    assert decisions(80, *[96] * 4) == [False, False, False, False, True]


def test_what_the_start_left_is_returned_once() -> None:
    decision = CalmAfterGrowth()
    assert [decision.sample(100 * MIB) for _ in range(4)] == [False, False, False, True]
    decision.returned(90 * MIB)
    assert not any(decision.sample(100 * MIB) for _ in range(10))


def test_what_a_return_leaves_is_not_asked_for_again() -> None:
    decision = CalmAfterGrowth(100 * MIB)
    assert [decision.sample(300 * MIB) for _ in range(4)] == [False, False, False, True]
    decision.returned(290 * MIB)
    assert not any(decision.sample(300 * MIB) for _ in range(10))


def test_the_burst_itself_is_waited_for_though_it_costs_little_cpu() -> None:
    """What is freed after a return would stay: 1,024 streams end within a second, for 0.4 CPU seconds."""
    assert decisions(*[100] * 5, 160, 192, 192, 192, 192)[5:] == [*[False] * 4, True]


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


async def test_a_busy_process_is_not_asked_for_its_unused_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Glibc looks for it for up to 2 ms, on the event loop."""
    heap, asked = AtItsLimits(), list[int]()
    monkeypatch.setattr(Heap, "of_process", lambda: heap)
    monkeypatch.setattr(heap, "unused", lambda: asked.append(1) or 0)
    busy = True

    class Worked(NoTime):
        async def sleep(self, seconds: float) -> None:
            ends = time.process_time() + 0.6 * seconds
            while busy and time.process_time() < ends:
                sum(range(10_000))
            await asyncio.sleep(0)

    task = asyncio.create_task(return_unused_memory(Worked()))
    for _ in range(2):
        await asyncio.sleep(0)
    assert not asked
    busy = False
    async with asyncio.timeout(READY_S):
        while not asked:
            await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


_WITHOUT_FILES = """
import os, resource
from headgate_runtime.heap import Heap

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
from headgate_runtime.heap import Heap

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


_KEPT = """
import ctypes
from headgate_runtime.heap import Heap

heap, libc, MIB = Heap.of_process(), ctypes.CDLL(None), 1 << 20
libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.sbrk.argtypes, libc.sbrk.restype = [ctypes.c_ssize_t], ctypes.c_void_p

def end():
    return libc.sbrk(0)

heap.trim()
before = end()
block = libc.malloc(8 * MIB)
grown = end()
libc.free(block)
print((grown - before) // MIB, (end() - before) // MIB)
"""


@pytest.mark.parametrize(
    ("environment", "grown", "kept"),
    [
        ({}, 72, 72),
        ({"MALLOC_TOP_PAD_": "4194304"}, 12, 12),
        ({"MALLOC_TRIM_THRESHOLD_": "1048576", "MALLOC_TOP_PAD_": "0"}, 8, 0),
    ],
)
def test_after_a_trim_the_heap_grows_and_shrinks_by_the_operators_own_settings(
    environment: dict[str, str], grown: int, kept: int
) -> None:
    """In MiB, of a block of 8; a service keeps the values of the environment that it finds."""
    env = {**os.environ, **ENVIRONMENT, **environment}
    done = subprocess.run([sys.executable, "-c", _KEPT], env=env, capture_output=True, text=True, check=True)
    assert [int(number) for number in done.stdout.split()] == pytest.approx([grown, kept], abs=1)


def test_a_value_of_the_environment_that_is_no_number_ends_no_service() -> None:
    heap = Heap.of_process({"MALLOC_TOP_PAD_": "64m", "MALLOC_ARENA_MAX": "0"})
    assert heap is not None
    heap.trim()
    heap.close()
