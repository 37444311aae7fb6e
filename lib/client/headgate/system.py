"""The outside world that the SDK reads: waiting and randomness, as small Protocols.

Everything else takes a ``System``; only this file calls the machine's own (lint bans it elsewhere), so that a test can swap
them. Timeouts of calls are asyncio's.
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
    """What a connection is given of the outside world."""

    clock: Clock
    randomness: Randomness

    @classmethod
    def real(cls) -> "System":
        """The machine's own."""
        return cls(SystemClock(), random.SystemRandom())
