"""What was taken and is not paid off yet, at a rate. Pure: the time is passed in."""

import math


class Debt:
    """What is taken becomes a debt, which shrinks at the rate; the next may be taken when it is gone.

    So nothing has to be split or kept while it waits, and the rate holds over any two amounts, however large.
    """

    def __init__(self, now: float) -> None:
        self._owed = 0.0
        self._at = now

    def take(self, amount: float, rate: float, now: float) -> None:
        """``rate``: units a second; infinite: nothing is owed. ``now``: seconds, never smaller than before."""
        self._pay(rate, now)
        if rate < math.inf:
            self._owed += amount

    def delay(self, rate: float, now: float) -> float:
        """Seconds until nothing is owed, if the rate stays."""
        self._pay(rate, now)
        return self._owed / rate

    def _pay(self, rate: float, now: float) -> None:
        passed, self._at = now - self._at, now
        self._owed = 0.0 if math.isinf(rate) else max(0.0, self._owed - passed * rate)
