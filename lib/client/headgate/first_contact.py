"""How long a connection tries to reach a cluster to which there was no way yet."""

import logging
import math

from headgate.failures import Failure
from headgate.unreachable import NOBODY_LISTENS

_log = logging.getLogger("headgate")
_SHORTEST = 1.0
"""Seconds: a cluster that nobody waits for may just be starting, too. A call that meets none ends within 2."""
_SHOWN_EVERY = 5.0


class FirstContact:
    """``wait``: seconds, shown in the log. ``made``: once any coordinator has answered, however."""

    def __init__(self, wait: float) -> None:
        self.made = False
        self._wait = wait
        self._shown = -_SHOWN_EVERY
        self._failure: Failure | None = None

    def patience(self, failure: Failure, waited: float) -> float:
        """For how many more seconds a call goes on after this failure, which ``waited`` seconds came before.

        Raises the failure's error when there was no way for too long.
        """
        self.made = self.made or not failure.unreachable
        if self.made:
            return math.inf
        # Of a name with several addresses, such as localhost, gRPC tells about one, in turn: the others may have nobody.
        known = self._failure or failure
        self._failure = min(known, failure, key=lambda each: each.error.message.count(NOBODY_LISTENS))
        patience = max(self._wait, _SHORTEST) - waited
        if patience <= 0:
            raise self._failure.error from None
        self._show(self._failure, waited)
        return patience

    def most_telling(self, last: Failure) -> Failure:
        """``last``; before the first contact the failure that ``patience`` would raise."""
        return last if self.made or self._failure is None else self._failure

    def _show(self, failure: Failure, waited: float) -> None:
        if self._wait > waited >= self._shown + _SHOWN_EVERY:
            self._shown = waited
            _log.warning("waiting up to %.0f s for a cluster. %s", self._wait - waited, failure.error)
