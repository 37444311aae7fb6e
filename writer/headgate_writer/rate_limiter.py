"""How fast client batches of one table are taken: what its owner ordered last. Only clients wait for it (rule CH7)."""

import asyncio
import contextlib
import math

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.world import Clock

_LONGEST_WAIT_S = 3600.0


class RateLimiter:
    """As fast as they come, until the first order.

    What was taken is owed and paid off at the ordered rate; the next batch waits until nothing is. So a batch is never cut or
    kept in memory while it waits, and the rate holds over any two batches, however large they are. In a pause nothing is paid
    off: what a client had sent already is still taken, and owed at the rate that follows.
    """

    def __init__(self, clock: Clock) -> None:
        self.refusal: errors_pb2.Error | None = None
        """Why no batch is taken at all; each that comes is answered with it."""
        self._clock = clock
        self._rate = 0
        self._paused = False
        self._owed = 0.0
        self._at = clock.monotonic()
        self._changed = asyncio.Event()

    def set_throttle(self, order: wire.Throttle) -> None:
        """From the owner. Who waits looks again."""
        self._pay()
        self._paused = order.paused
        self._rate = 0 if order.paused else order.bytes_per_second
        self.refusal = order.why if order.stopped else None
        if not (self._rate or self._paused):
            self._owed = 0.0
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def count_bytes(self, nbytes: int) -> None:
        """Arrow bytes of a batch."""
        if self._rate or self._paused:
            self._pay()
            self._owed += nbytes

    @property
    def delay(self) -> float:
        """Seconds until the next batch may be taken, or refused; infinite during a pause."""
        if self._paused:
            return math.inf
        self._pay()
        return self._owed / self._rate if self._rate else 0.0

    async def wait_for_turn(self) -> None:
        """Returns once ``delay`` is over."""
        while (delay := self.delay) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(delay, _LONGEST_WAIT_S)):
                    await self._changed.wait()

    def _pay(self) -> None:
        now = self._clock.monotonic()
        self._owed = max(0.0, self._owed - (now - self._at) * self._rate)
        self._at = now
