"""Limits how fast batches of one principal are taken by this process, over all its streams and tables. Only its clients wait."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from headgate_runtime.access.quotas import Usage
from headgate_runtime.debt import Debt
from headgate_runtime.world import Clock

_LOOK_S: Final = 1.0
"""A client that waits notices a changed quota in this time."""

UsageNow: TypeAlias = Callable[[], Usage]
"""What a principal may use, by the access file as it is now."""


class PrincipalRate:
    """What one principal owes. ``streams``: how many of its streams are open."""

    def __init__(self, clock: Clock) -> None:
        self.streams = 0
        self._clock = clock
        self._rows = Debt(clock.monotonic())
        self._bytes = Debt(clock.monotonic())

    def count(self, rows: int, nbytes: int, usage: Usage) -> None:
        """Counts a batch that was taken; ``nbytes``: of Arrow."""
        now = self._clock.monotonic()
        self._rows.take(rows, usage.rows_per_s, now)
        self._bytes.take(nbytes, usage.bytes_per_s, now)

    def delay(self, usage: Usage) -> float:
        """Seconds until the next batch may be taken."""
        now = self._clock.monotonic()
        return max(self._rows.delay(usage.rows_per_s, now), self._bytes.delay(usage.bytes_per_s, now))

    async def wait_for_turn(self, usage: UsageNow) -> None:
        """Waits until ``delay`` is 0."""
        while (delay := self.delay(usage())) > 0:
            await self._clock.sleep(min(delay, _LOOK_S))


class PrincipalRates:
    """Those of all principals with an open stream, or a debt: closing a stream does not pay."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rates: dict[str, PrincipalRate] = {}
        self._left: dict[str, UsageNow] = {}

    def __len__(self) -> int:
        return len(self._rates)

    @contextlib.contextmanager
    def stream_of(self, principal: str, usage: UsageNow) -> Iterator[PrincipalRate]:
        """For as long as the principal's stream is open."""
        self._left.pop(principal, None)
        rate = self._rates.setdefault(principal, PrincipalRate(self._clock))
        rate.streams += 1
        try:
            yield rate
        finally:
            rate.streams -= 1
            if not rate.streams:
                self._left[principal] = usage
            self._forget_paid()

    def _forget_paid(self) -> None:
        """Those that left: otherwise each principal that ever owed something would stay."""
        for principal in [each for each, usage in self._left.items() if self._rates[each].delay(usage()) == 0]:
            del self._rates[principal], self._left[principal]
