"""How long to wait before a process that died is started again."""

from dataclasses import dataclass

_FIRST_S = 0.1
_LONGEST_S = 5.0
_STEADY_S = 10.0


@dataclass(slots=True)
class Backoff:
    """Doubles from 0.1 s to 5 s; a process that lived for 10 s begins anew, so that a rare crash costs no waiting."""

    _next: float = _FIRST_S

    def after(self, lived_s: float) -> float:
        """Seconds to wait now. ``lived_s``: how long the process ran."""
        wait = _FIRST_S if lived_s >= _STEADY_S else self._next
        self._next = min(_LONGEST_S, 2 * wait)
        return wait
