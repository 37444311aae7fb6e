"""The outside world that this library reads: the wall clock and randomness, as small Protocols.

Everything else takes a ``Clock`` and ``Ids``; only this file calls the system's own (lint bans it elsewhere),
so that a test or the simulator can swap them.
"""

import os
import socket
import time
import uuid
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time, time that only grows, and waiting."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC. May jump back."""

    def monotonic(self) -> float:
        """Seconds from an unknown beginning; never goes back, and goes on while the machine sleeps."""

    def sleep(self, seconds: float) -> None:
        """Waits before a repeated request."""


class Ids(Protocol):
    """Fresh names. Two calls never give the same value, in this process or another."""

    def token(self) -> str:
        """128 random bits as 32 hex digits: nonces, process ids, names of temporary files."""

    def table_uuid(self) -> uuid.UUID:
        """A random (version 4) UUID for a new table."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class SystemIds:
    """The kernel's random numbers."""

    def token(self) -> str:
        return os.urandom(16).hex()

    def table_uuid(self) -> uuid.UUID:
        return uuid.uuid4()


@dataclass(frozen=True, slots=True)
class System:
    """The outside world of a table handle."""

    clock: Clock
    ids: Ids
    host: str
    pid: int

    @classmethod
    def real(cls) -> "System":
        """The machine's own clock, randomness, host name and process id."""
        return cls(SystemClock(), SystemIds(), socket.gethostname(), os.getpid())
