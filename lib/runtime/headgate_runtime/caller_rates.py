"""How often a caller does what costs the server work, as being refused does: a flood of it would cost it all its time."""

from typing import Final

from headgate_runtime.debt import Debt
from headgate_runtime.world import Clock

_KEPT: Final = 256
"""Callers that are remembered without a look at who has paid; twice as many as owed at the last look, if those were more."""


class CallerRates:
    """``at_once`` times are free to a caller, then so many ``per_second``. No caller waits longer than ``longest_s`` seconds:
    what comes meanwhile is not counted.
    """

    def __init__(self, clock: Clock, at_once: float, per_second: float, longest_s: float) -> None:
        self._clock = clock
        self._free_s = at_once / per_second
        self._rate = per_second
        self._longest_s = longest_s
        self._debts: dict[str, Debt] = {}
        self._most = _KEPT

    def __len__(self) -> int:
        return len(self._debts)

    def count(self, caller: str) -> None:
        """This caller did it once more."""
        now = self._clock.monotonic()
        if len(self._debts) >= self._most:
            self._debts = {name: debt for name, debt in self._debts.items() if debt.delay(self._rate, now) > 0}
            self._most = max(_KEPT, 2 * len(self._debts))
        if self.delay(caller) < self._longest_s:
            self._debts.setdefault(caller, Debt(now)).take(1, self._rate, now)

    def delay(self, caller: str) -> float:
        """Seconds until it is the caller's turn again; 0: now."""
        if caller not in self._debts:
            return 0.0
        owed_s = self._debts[caller].delay(self._rate, self._clock.monotonic())
        return min(self._longest_s, max(0.0, owed_s - self._free_s))

    async def wait(self, caller: str) -> None:
        """Counts one, and returns when it is its turn."""
        self.count(caller)
        await self.wait_for_turn(caller)

    async def wait_for_turn(self, caller: str) -> None:
        """Counts nothing, and returns when the caller owes nothing."""
        if (delay := self.delay(caller)) > 0:
            await self._clock.sleep(delay)
