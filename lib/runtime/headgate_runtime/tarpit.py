"""Where refusals wait for their turn: a caller who calls again at every refusal would take the loop from everybody else."""

from typing import Final

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.caller_rates import CallerRates
from headgate_runtime.world import Clock

STRANGERS: Final = "callers without an identity"
"""All of them together, as nothing tells them apart, and a flood may come from a thousand connections."""
NO_METHOD: Final = "callers of methods that are not served"
"""Like the other one no principal's name, which has no blanks (access.file)."""
LONGEST_WAIT_S: Final = 20.0
"""Shorter than the deadline of a program, which would learn of that in place of its refusal."""
_ALL: Final = ""
_CHECKS_SHARE: Final = 4


class Tarpit:
    """``at_once`` refusals are free to a caller, and as many a second; the others wait, evenly spaced, but none longer than
    ``LONGEST_WAIT_S``.

    ``places``: for calls that wait and have no place among those of clients, which bound how many of a principal wait (``door``).
    A quarter of them is for health checks alone, the others for refusals. What comes when they are taken goes on at once.
    """

    def __init__(self, clock: Clock, places: int, at_once: float) -> None:
        checks = places // _CHECKS_SHARE
        refusals = places - checks
        longest_s = min(LONGEST_WAIT_S, refusals / at_once)
        self._rates = CallerRates(clock, at_once, at_once, longest_s)
        self._places = _Places(clock, refusals)
        self._all_checks = CallerRates(clock, at_once, at_once, longest_s)
        self._checks = CallerRates(clock, 1, 1, longest_s=checks)
        self._check_places = _Places(clock, checks)

    async def wait(self, caller: str) -> None:
        """Returns when it is the turn of a refusal of this caller, which has its place among the calls of clients."""
        await self._rates.wait(caller)

    async def wait_if_at_fault(self, caller: str, refusal: errors_pb2.Error) -> None:
        """The same, if the caller is to blame for the refusal."""
        if _is_callers_fault(refusal):
            await self.wait(caller)

    async def wait_for_turn(self, caller: str) -> None:
        """Counts no refusal, and returns when the caller may be refused again."""
        await self._rates.wait_for_turn(caller)

    async def wait_in_a_place(self, caller: str) -> None:
        """Returns when it is the turn of a refusal of this caller, at once when no place is free."""
        self._rates.count(caller)
        await self._places.wait(self._rates.delay(caller))

    async def wait_for_check(self, connection: str) -> None:
        """Returns when a health check may begin: at once, but while more than ``at_once`` a second come from all connections
        together, each may make one a second. A probe comes on a connection of its own.
        """
        self._all_checks.count(_ALL)
        self._checks.count(connection)
        if self._all_checks.delay(_ALL) > 0:
            await self._check_places.wait(self._checks.delay(connection))


class _Places:
    """So many wait at once, each a call in flight; one more does not wait."""

    def __init__(self, clock: Clock, places: int) -> None:
        self._clock = clock
        self._free = places

    async def wait(self, seconds: float) -> None:
        if seconds <= 0 or self._free <= 0:
            return
        self._free -= 1
        try:
            await self._clock.sleep(seconds)
        finally:
            self._free += 1


def _is_callers_fault(refusal: errors_pb2.Error) -> bool:
    """Whether it would be the same on a healthy cluster, so that to wait for it delays nothing."""
    return refusal.code == errors_pb2.CODE_OVERLOADED or refusal.action in (errors_pb2.ACTION_FIX_CALL, errors_pb2.ACTION_GIVE_UP)
