"""How often a caller is refused: a refusal costs the server work, and a flood of them would cost it all its time."""

from typing import Final

from headgate_runtime.debt import Debt
from headgate_runtime.world import Clock

LONGEST_REFUSAL_S: Final = 2.0
"""Longer than a program that calls again at once needs to cost little, shorter than its deadline."""
_KEPT: Final = 256
"""Callers that are remembered without a look at who has paid."""


class RefusalRates:
    """``at_once`` refusals of a caller are free, then so many ``per_second``. No caller waits longer than ``longest_s`` seconds:
    what is refused meanwhile is not counted.
    """

    def __init__(self, clock: Clock, at_once: float, per_second: float, longest_s: float) -> None:
        self._clock = clock
        self._free_s = at_once / per_second
        self._rate = per_second
        self._longest_s = longest_s
        self._debts: dict[str, Debt] = {}

    def __len__(self) -> int:
        return len(self._debts)

    def count(self, caller: str) -> None:
        """One more call of this caller was refused."""
        now = self._clock.monotonic()
        if len(self._debts) >= _KEPT:
            self._debts = {name: debt for name, debt in self._debts.items() if debt.delay(self._rate, now) > 0}
        if self.delay(caller) < self._longest_s:
            self._debts.setdefault(caller, Debt(now)).take(1, self._rate, now)

    def delay(self, caller: str) -> float:
        """Seconds until it is the caller's turn to be refused again; 0: now."""
        if caller not in self._debts:
            return 0.0
        owed_s = self._debts[caller].delay(self._rate, self._clock.monotonic())
        return min(self._longest_s, max(0.0, owed_s - self._free_s))

    async def wait(self, caller: str) -> None:
        """Counts a refusal, and returns when it is its turn."""
        self.count(caller)
        if (delay := self.delay(caller)) > 0:
            await self._clock.sleep(delay)
