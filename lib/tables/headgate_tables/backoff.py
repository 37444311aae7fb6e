"""How long to wait before a failed call is tried again. Pure.

For all packages but the SDK, which imports the contracts alone and spreads its pauses, because clients are many.
"""

from dataclasses import dataclass

_DOUBLINGS = 60
"""Far beyond any limit, and no float overflows."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double from ``first`` to ``longest``, in whatever unit these have."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """The pause after so many failures in a row; 0 after none."""
        return min(self.longest, self.first * 2.0 ** min(failures - 1, _DOUBLINGS)) if failures > 0 else 0.0
