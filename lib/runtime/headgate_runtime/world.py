"""The outside world of a service: time, waiting, randomness, its host and process id.

All other code takes a ``World``, so that tests and the simulator can replace it; only this file calls the system (lint bans such
calls elsewhere).
"""

import asyncio
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time, time that only grows, and waiting."""

    def now_ms(self) -> int:
        """Returns milliseconds since the epoch, UTC. May jump back: for times that people read, never for a deadline."""

    def monotonic(self) -> float:
        """Returns seconds from an unknown start; never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Waits on the event loop."""


class Ids(Protocol):
    """Fresh names. Two calls never give the same value, in this process or another."""

    def token(self) -> str:
        """Returns 128 random bits as 32 hex digits, for ids of processes and requests."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SystemIds:
    """The kernel's random numbers."""

    def token(self) -> str:
        return os.urandom(16).hex()


def pass_on(step: str) -> None:
    """The ``reached`` of production: does nothing."""


@dataclass(frozen=True, slots=True)
class World:
    """``reached`` is called with the name of each step at which tests may kill the process."""

    clock: Clock
    ids: Ids
    host: str
    pid: int
    reached: Callable[[str], None]

    @classmethod
    def real(cls) -> "World":
        """The machine's own clock, randomness, host name and process id."""
        return cls(SystemClock(), SystemIds(), socket.gethostname(), os.getpid(), pass_on)
