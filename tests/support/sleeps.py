"""A clock for several loops, whose sleeps end when a test says so."""

import asyncio

from headgate_runtime.world import SystemClock


class Sleeps(SystemClock):
    """``asleep``: each sleep, with its seconds, in the order in which they began. ``ahead_ms``: added to the time of day."""

    def __init__(self) -> None:
        self.asleep: asyncio.Queue[tuple[float, asyncio.Event]] = asyncio.Queue()
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    async def sleep(self, seconds: float) -> None:
        over = asyncio.Event()
        self.asleep.put_nowait((seconds, over))
        await over.wait()

    async def end_sleep(self, seconds: float) -> None:
        """Of the next one, once it has begun; it has to be of this length."""
        found, over = await self.asleep.get()
        assert found == seconds
        over.set()
