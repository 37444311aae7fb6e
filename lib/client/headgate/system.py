"""Waiting and randomness as small Protocols, so that a test can replace them.

Only this file uses the machine's own (lint bans them elsewhere); all other code takes a ``System``. Timeouts of calls are
asyncio's.
"""

import asyncio
import random
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Waiting between attempts."""

    async def sleep(self, seconds: float) -> None:
        """Returns after about that long."""


class Randomness(Protocol):
    """Spreads clients over writers and attempts over time; nothing secret comes from it."""

    def random(self) -> float:
        """At least 0, below 1."""


class SystemClock:
    """The event loop's clock."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class System:
    """The clock and the randomness of one connection."""

    clock: Clock
    randomness: Randomness

    @classmethod
    def real(cls) -> "System":
        """The machine's own."""
        return cls(SystemClock(), random.SystemRandom())
