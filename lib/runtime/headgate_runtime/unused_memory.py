"""Returns memory that a service no longer uses to the system.

With the variables of ``headgate_runtime.environment`` glibc keeps what is freed, for the next messages. After a burst it would
keep that for good: 1,024 streams that end in the middle of a message leave 68 MiB (`./task bench attacks`).
"""

import asyncio
import ctypes
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headgate_runtime.world import Clock

SAMPLE_S: Final = 1.0
_BUSY: Final = 0.5
"""CPU seconds a second from which on a process uses again what it frees."""
_CALM_SAMPLES: Final = 3
_GROWTH: Final = 16 << 20
_STATM: Final = Path("/proc/self/statm")


@dataclass(slots=True)
class CalmAfterGrowth:
    """Decides when to return memory: when the process has been calm for three samples, and has grown by 16 MiB since the last
    time. While it is busy it would take the memory back at once, for a page fault each 4 KiB.

    ``least``: resident bytes after the last return, or the fewest since; 0 before the first one.
    """

    least: int = 0
    calm: int = 0

    def sample(self, cpu_s: float, resident: int) -> bool:
        """Takes the CPU seconds since the last sample and the resident bytes now. True: return memory, and say ``returned``."""
        self.least = min(self.least, resident)
        self.calm = self.calm + 1 if cpu_s < _BUSY * SAMPLE_S else 0
        return self.calm >= _CALM_SAMPLES and resident >= self.least + _GROWTH

    def returned(self, resident: int) -> None:
        """Takes the resident bytes after a return: what stays is in use."""
        self.least, self.calm = resident, 0


async def return_unused_memory(clock: Clock) -> None:
    """Runs until it is cancelled; does nothing where the C library is not glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None or not _STATM.exists():
        return
    decision = CalmAfterGrowth()
    spent = _cpu_s()
    while True:
        await clock.sleep(SAMPLE_S)
        before, spent = spent, _cpu_s()
        if decision.sample(spent - before, _resident()):
            await asyncio.to_thread(trim, 0)
            decision.returned(_resident())


def _resident() -> int:
    return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
