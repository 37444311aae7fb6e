"""Where refusals wait for their turn: a caller who calls again at every refusal would take the loop from everybody else."""

from typing import Final

from headgate_runtime.caller_rates import CallerRates
from headgate_runtime.world import Clock

STRANGERS: Final = "callers without an identity"
"""All of them together, as nothing tells them apart, and a flood may come from a thousand connections."""
NO_METHOD: Final = "callers of methods that are not served"
"""Like the other one no principal's name, which has no blanks (access.file)."""
_CHECKS: Final = "health checks"


class Tarpit:
    """``at_once`` refusals are free to a caller, and as many a second; the others wait, evenly spaced. ``places``: that wait at
    once, each a call in flight. What comes when they are taken is refused at once.
    """

    def __init__(self, clock: Clock, places: int, at_once: float) -> None:
        self._clock = clock
        self._places = places
        self._waiting = 0
        self._refusals = CallerRates(clock, at_once, at_once, longest_s=places / at_once)
        self._checks = CallerRates(clock, 1, 1, longest_s=places)

    async def wait(self, caller: str) -> None:
        """Returns when it is the turn of a refusal of this caller."""
        self._refusals.count(caller)
        await self._hold(self._refusals.delay(caller))

    async def wait_for_check(self, connection: str) -> None:
        """Returns when a health check may begin: at once, but while more than ``at_once`` a second come from all connections
        together, each may make one a second. A probe comes on a connection of its own.
        """
        self._refusals.count(_CHECKS)
        self._checks.count(connection)
        if self._refusals.delay(_CHECKS) > 0:
            await self._hold(self._checks.delay(connection))

    async def _hold(self, seconds: float) -> None:
        if seconds <= 0 or self._waiting >= self._places:
            return
        self._waiting += 1
        try:
            await self._clock.sleep(seconds)
        finally:
            self._waiting -= 1
