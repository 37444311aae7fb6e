"""A clock on which loops that sleep go on when a test says so."""

import asyncio

from support.hand_clock import HandClock


class TickingClock(HandClock):
    """For one loop: ``tick`` lets it go on and returns when it sleeps again."""

    def __init__(self) -> None:
        super().__init__()
        self._sleeps = asyncio.Event()
        self._over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self._sleeps.set()
        await self._over.wait()
        self._over.clear()

    async def tick(self) -> None:
        """One pass of the loop."""
        await self._sleeps.wait()
        self._sleeps.clear()
        self._over.set()
        await self._sleeps.wait()
