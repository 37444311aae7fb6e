"""Limits how fast client batches of one table are taken, as its owner last ordered. Only clients wait (rule CH7)."""

import asyncio
import contextlib
import math

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.debt import Debt
from headgate_runtime.world import Clock

_LONGEST_WAIT_S = 3600.0


class RateLimiter:
    """Sets no limit before the first order. The bytes of a batch are a debt that shrinks at the ordered rate, so no batch is
    split, or kept in memory while it waits. In a pause it does not shrink: batches that a client had already sent are still
    taken, and paid off at the rate that follows.
    """

    def __init__(self, clock: Clock) -> None:
        self.refusal: errors_pb2.Error | None = None
        """The answer to every batch while the table is stopped; None while it is not."""
        self._clock = clock
        self._rate = math.inf
        self._debt = Debt(clock.monotonic())
        self._changed = asyncio.Event()

    def set_throttle(self, order: wire.Throttle) -> None:
        """Follows an order of the owner, also for clients that wait now."""
        self._debt.pay(self._rate, self._clock.monotonic())
        self._rate = 0.0 if order.paused else order.bytes_per_second or math.inf
        self.refusal = order.why if order.stopped else None
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def count_bytes(self, nbytes: int) -> None:
        """Counts the Arrow bytes of a batch that was taken."""
        self._debt.take(nbytes, self._rate, self._clock.monotonic())

    @property
    def delay(self) -> float:
        """Seconds until the next batch may be taken or refused; infinite during a pause."""
        return self._debt.delay(self._rate, self._clock.monotonic())

    async def wait_for_turn(self) -> None:
        """Waits until ``delay`` is 0."""
        while (delay := self.delay) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(delay, _LONGEST_WAIT_S)):
                    await self._changed.wait()
