"""What glibc's malloc holds for this process, and how to have it returned to the system."""

import ctypes
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headgate_runtime.environment import ENVIRONMENT

_STATM: Final = Path("/proc/self/statm")
_LARGE: Final = 256 << 10
"""Above glibc's FASTBIN_CONSOLIDATION_THRESHOLD, so that its free looks at the end of the arena."""
_M_TRIM_THRESHOLD, _M_TOP_PAD = -1, -2
_MOST: Final = 2**31 - 1
"""mallopt takes an int."""


class _Usage(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"]
    ]
    hblkhd: int
    uordblks: int


class Heap:
    """It keeps a file open, since a process that may open no more has to work on."""

    def __init__(self, libc: ctypes.CDLL, environment: Mapping[str, str]) -> None:
        self._libc = libc
        self._statm = os.open(_STATM, os.O_RDONLY)
        self._thresholds = tuple(min(_number(environment, name), _MOST) for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"))
        # 0 is glibc's own choice.
        self._arenas = _number(environment, "MALLOC_ARENA_MAX") or 8 * (os.cpu_count() or 1)
        libc.mallinfo2.restype = _Usage
        libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
        libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None

    @classmethod
    def of_process(cls, environment: Mapping[str, str] = os.environ) -> "Heap | None":
        """``environment``: with which the process was started. None where the C library has no such functions: it is another than
        glibc, or older than 2.33.
        """
        libc = ctypes.CDLL(None)
        known = hasattr(libc, "mallinfo2") and hasattr(libc, "malloc_trim") and _STATM.exists()
        return cls(libc, environment) if known else None

    def unused(self) -> int:
        """Resident bytes that nobody has allocated from malloc, found in 0.1 to 2 ms. After a trim while streams were open, what
        they free at their end counts; resident bytes alone would stay the same.
        """
        usage: _Usage = self._libc.mallinfo2()
        return self._resident() - usage.uordblks - usage.hblkhd

    def trim(self) -> None:
        """Returns whole free pages to the system, in milliseconds. For one thread at a time. Raises RuntimeError where the
        process may start no thread.

        malloc_trim leaves the free end of every arena but the first, up to 64 MiB. The free of a large block returns that end, of
        the arena of its thread, if the thresholds are low. New threads are given the arenas in turn.
        """
        self._libc.malloc_trim(0)
        self._set_thresholds(0, 0)
        try:
            for _ in range(self._arenas + 1):
                thread = threading.Thread(target=self._free_large)
                thread.start()
                thread.join()
        finally:
            self._set_thresholds(*self._thresholds)

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


def _number(environment: Mapping[str, str], name: str) -> int:
    """Of the operator's own value, if it is a number: a service keeps that (``headgate_runtime.lifecycle``)."""
    value = environment.get(name, "")
    return int(value if value.isdecimal() else ENVIRONMENT[name])
