"""How long to wait before a dead process is started again."""

from dataclasses import dataclass

from headgate_tables.backoff import Backoff

_PAUSES = Backoff(first=0.1, longest=5.0)
_STEADY_S = 10.0


@dataclass(slots=True)
class Restarts:
    """The restarts of one process. A run of 10 s resets the pauses, so that a rare crash costs no waiting."""

    _in_a_row: int = 0

    def pause_after(self, lived_s: float) -> float:
        """Seconds to wait now. ``lived_s``: how long the last process ran."""
        self._in_a_row = 1 if lived_s >= _STEADY_S else self._in_a_row + 1
        return _PAUSES.after(self._in_a_row)
