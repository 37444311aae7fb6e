"""What was taken and is not paid off yet, at a rate. Pure: the time is passed in."""

import math


class Debt:
    """What is taken becomes a debt, which shrinks at the rate; the next may be taken when it is gone.

    So nothing has to be split or kept while it waits, and the rate holds over any two amounts, however large. A rate is in units
    a second; infinite: nothing is owed; 0: nothing is paid off, and nothing may be taken. Times are seconds, never smaller than
    before.
    """

    def __init__(self, now: float) -> None:
        self._owed = 0.0
        self._at = now

    def take(self, amount: float, rate: float, now: float) -> None:
        """Adds what was taken; also at rate 0, where what had already been sent is still taken."""
        self.pay(rate, now)
        if rate < math.inf:
            self._owed += amount

    def delay(self, rate: float, now: float) -> float:
        """Seconds until nothing is owed, if the rate stays; infinite at rate 0."""
        self.pay(rate, now)
        return self._owed / rate if rate else math.inf

    def pay(self, rate: float, now: float) -> None:
        """Pays off the time since the last call. Call it before the rate changes."""
        passed, self._at = now - self._at, now
        self._owed = 0.0 if math.isinf(rate) else max(0.0, self._owed - passed * rate)
