"""A clock for pure code that asks for the time."""

import asyncio


class HandClock:
    """Set by hand. Who sleeps on it waits forever."""

    def __init__(self) -> None:
        self.now = 100.0

    def now_ms(self) -> int:
        return int(self.now * 1000)

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()
