"""The outside world as a service gets it: time, waiting, randomness and its own name.

Everything else takes a ``World``; only this file calls the system's own (lint bans it elsewhere), so that a test or the
simulator can swap it.
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
        """Milliseconds since the epoch, UTC. May jump back; for what people read, never for a deadline."""

    def monotonic(self) -> float:
        """Seconds from an unknown beginning; never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Waits on the event loop."""


class Ids(Protocol):
    """Fresh names. Two calls never give the same value, in this process or another."""

    def token(self) -> str:
        """128 random bits as 32 hex digits: process ids, request ids."""


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
    """``reached`` is called with the name of each step at which a crash is interesting; tests kill the process there."""

    clock: Clock
    ids: Ids
    host: str
    pid: int
    reached: Callable[[str], None]

    @classmethod
    def real(cls) -> "World":
        """The machine's own clock, randomness, host name and process id."""
        return cls(SystemClock(), SystemIds(), socket.gethostname(), os.getpid(), pass_on)
