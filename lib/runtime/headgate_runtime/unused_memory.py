"""Returns memory that a service no longer uses to the system.

With the variables of ``headgate_runtime.environment`` glibc keeps what is freed, for the next messages. After a burst it would
keep that for good: 1,024 streams that end in the middle of a message leave 68 MiB (`./task bench attacks`).
"""

import asyncio
import ctypes
import os
import resource
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headgate_runtime.environment import ENVIRONMENT
from headgate_runtime.logs import get_logger
from headgate_runtime.world import Clock

_log = get_logger()

SAMPLE_S: Final = 1.0
_BUSY: Final = 0.5
"""CPU seconds a second from which on a process uses again what it frees."""
_CALM_SAMPLES: Final = 3
_GROWTH: Final = 16 << 20
_STEADY: Final = 1 << 20
"""Unused memory that grows faster than so much a sample is still being freed."""
_STATM: Final = Path("/proc/self/statm")
_LARGE: Final = 256 << 10
"""Above glibc's FASTBIN_CONSOLIDATION_THRESHOLD, so that its free looks at the end of the arena."""
_ARENAS: Final = int(ENVIRONMENT["MALLOC_ARENA_MAX"])
_M_TRIM_THRESHOLD, _M_TOP_PAD = -1, -2
_TRIM_THRESHOLD: Final = min(int(ENVIRONMENT["MALLOC_TRIM_THRESHOLD_"]), 2**31 - 1)
"""mallopt takes an int."""
_TOP_PAD: Final = int(ENVIRONMENT["MALLOC_TOP_PAD_"])


@dataclass(slots=True)
class CalmAfterGrowth:
    """Decides when to return memory: when the process has been calm for three samples, and its unused memory has grown by 16 MiB
    since the last time, and grows no more. While it is busy it would take the memory back at once, for a page fault each 4 KiB.

    ``least``: unused bytes after the last return, or the fewest since; 0 before the first one. ``last``: of the last sample.
    """

    least: int = 0
    last: int = 0
    calm: int = 0

    def sample(self, cpu_s: float, unused: int) -> bool:
        """Takes the CPU seconds since the last sample and the unused bytes now. True: return memory, and say ``returned``."""
        self.least = min(self.least, unused)
        steady, self.last = unused < self.last + _STEADY, unused
        self.calm = self.calm + 1 if cpu_s < _BUSY * SAMPLE_S and steady else 0
        return self.calm >= _CALM_SAMPLES and unused >= self.least + _GROWTH

    def returned(self, unused: int) -> None:
        """Takes the unused bytes after a return: what stays cannot be returned."""
        self.least, self.last, self.calm = unused, unused, 0


async def return_unused_memory(clock: Clock) -> None:
    """Runs until it is cancelled; does nothing where the C library is not glibc, of 2.33 or later."""
    heap = Heap.of_process()
    if heap is None:
        return
    decision = CalmAfterGrowth()
    spent = _cpu_s()
    try:
        while True:
            await clock.sleep(SAMPLE_S)
            before, spent = spent, _cpu_s()
            if decision.sample(spent - before, heap.unused()):
                await _trim(heap)
                decision.returned(heap.unused())
    finally:
        heap.close()


async def _trim(heap: "Heap") -> None:
    try:
        await asyncio.to_thread(heap.trim)
    except RuntimeError as error:  # the process may start no thread: it works on at its limit
        _log.warning("unused memory is kept", why=str(error))


class _Usage(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"]
    ]
    hblkhd: int
    uordblks: int


class Heap:
    """What glibc's malloc holds for this process. It keeps a file open, since a process that may open no more has to work on."""

    def __init__(self, libc: ctypes.CDLL) -> None:
        self._libc = libc
        self._statm = os.open(_STATM, os.O_RDONLY)
        libc.mallinfo2.restype = _Usage
        libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
        libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None

    @classmethod
    def of_process(cls) -> "Heap | None":
        """None where the C library has no such functions."""
        libc = ctypes.CDLL(None)
        known = hasattr(libc, "mallinfo2") and hasattr(libc, "malloc_trim") and _STATM.exists()
        return cls(libc) if known else None

    def unused(self) -> int:
        """Resident bytes that nobody has allocated from malloc. After a trim while streams were open, what they free at their end
        counts; resident bytes alone would stay the same.
        """
        usage: _Usage = self._libc.mallinfo2()
        return self._resident() - usage.uordblks - usage.hblkhd

    def trim(self) -> None:
        """Returns whole free pages to the system, in milliseconds. For one thread at a time.

        malloc_trim leaves the free end of every arena but the first, up to 64 MiB. The free of a large block returns that end, of
        the arena of its thread, if the thresholds are low. New threads are given the arenas in turn.
        """
        self._libc.malloc_trim(0)
        self._set_thresholds(0, 0)
        try:
            for _ in range(_ARENAS + 1):
                thread = threading.Thread(target=self._free_large)
                thread.start()
                thread.join()
        finally:
            self._set_thresholds(_TRIM_THRESHOLD, _TOP_PAD)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._statm)

    def _resident(self) -> int:
        return int(os.pread(self._statm, 100, 0).split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def _free_large(self) -> None:
        self._libc.free(self._libc.malloc(_LARGE))

    def _set_thresholds(self, trim: int, pad: int) -> None:
        self._libc.mallopt(_M_TRIM_THRESHOLD, trim)
        self._libc.mallopt(_M_TOP_PAD, pad)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
