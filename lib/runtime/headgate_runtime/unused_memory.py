"""Returns memory that a service no longer uses to the system.

With the variables of ``headgate_runtime.environment`` glibc keeps what is freed, for the next messages. After a burst it would
keep that for good: 1,024 streams that end in the middle of a message leave 68 MiB (`./task bench attacks`).
"""

import asyncio
import resource
from dataclasses import dataclass
from typing import Final

from headgate_runtime.heap import Heap
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


@dataclass(slots=True)
class CalmAfterGrowth:
    """Decides when to return memory: when the process has been calm for three samples, and its unused memory has grown by 16 MiB
    since the last time, and grows no more. While it is busy it would take the memory back at once, for a page fault each 4 KiB.

    ``least``: unused bytes after the last return, or the fewest in a calm sample since; 0 before the first one. ``last``: of the
    last calm sample.
    """

    least: int = 0
    last: int = 0
    calm: int = 0

    def sample(self, unused: int | None) -> bool:
        """Takes the unused bytes now, None while the process is busy. True: return memory, and say ``returned``."""
        if unused is None:
            self.calm = 0
            return False
        self.least = min(self.least, unused)
        steady, self.last = unused < self.last + _STEADY, unused
        self.calm = self.calm + 1 if steady else 0
        return self.calm >= _CALM_SAMPLES and unused >= self.least + _GROWTH

    def returned(self, unused: int) -> None:
        """Takes the unused bytes after a return: what stays cannot be returned."""
        self.least, self.last, self.calm = unused, unused, 0


async def return_unused_memory(clock: Clock) -> None:
    """Runs until it is cancelled; does nothing where there is no ``Heap``."""
    heap = Heap.of_process()
    if heap is None:
        return
    decision = CalmAfterGrowth()
    spent = _cpu_s()
    try:
        while True:
            await clock.sleep(SAMPLE_S)
            before, spent = spent, _cpu_s()
            busy = spent - before >= _BUSY * SAMPLE_S
            if decision.sample(None if busy else heap.unused()):
                await _trim(heap)
                decision.returned(heap.unused())
    finally:
        heap.close()


async def _trim(heap: Heap) -> None:
    try:
        await asyncio.to_thread(heap.trim)
    except RuntimeError as error:  # the process may start no thread: it works on at its limit
        _log.warning("unused memory is kept", why=str(error))


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
