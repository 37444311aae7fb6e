"""Which channels an owner forgets, because nobody has used them for long (rule CH5). Pure."""

from collections.abc import Iterable
from math import isinf
from typing import Final

LOOKS: Final = 30
"""Looks for idle channels in the time of one retention: one a day by default. More: each visits all channels that the table
remembers. Fewer: idle channels are remembered for longer than they should be.
"""


class ChannelRetention:
    """Since when channels have been idle, counted from the beginning of this ownership: only wall clocks know of times before.

    ``recorded``: the table's channels at its beginning, ``now``. ``retention``: inf: none is forgotten. ``look_at``: when the
    next look is due, None: never. Times are monotonic seconds.
    """

    def __init__(self, recorded: Iterable[str], retention: float, now: float) -> None:
        self._retention = retention
        self._since = dict.fromkeys(recorded, now)
        self.look_at = None if isinf(retention) else now + retention / LOOKS

    def note_open(self, name: str) -> None:
        """Somebody opens the channel: it has not been idle until now."""
        self._since.pop(name, None)

    def find_idle(self, resting: Iterable[str], now: float) -> list[str]:
        """Looks, and returns the channels that have been idle for the retention. ``resting``: recorded ones without a hold, opens
        and rows under way. One that is new among them, or was opened since the last look, is idle from now on.
        """
        self._since = {name: self._since.get(name, now) for name in resting}
        self.look_at = now + self._retention / LOOKS
        return [name for name, since in self._since.items() if now - since >= self._retention]
