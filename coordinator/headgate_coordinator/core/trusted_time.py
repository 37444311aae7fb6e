"""Whether to trust this machine's wall clock, by other clocks and the time this process has run (rules TM1, TM3).

An issued time is a floor for good: a table whose owner's clock was a day ahead for a moment has no commits for a day. So no time
is issued far ahead of other clocks. Pure: readings in, the clock's status out.
"""

from dataclasses import dataclass

AHEAD_MS = 10_000
"""More than clocks on a network differ. A clock that was ahead by less and is corrected stops a table for seconds only."""
FRESH_S = 60.0
"""How long a reading counts; the monotonic clock extends it."""
SETTLING_S = 60.0
"""A jump that no witness explains is trusted after this: a machine that slept goes on, a momentary error does not last."""
_NOTED_S = 600.0


@dataclass(frozen=True, slots=True)
class _Reading:
    """A witness's clock in ms since the epoch, when this process's monotonic clock read ``at``."""

    ms: float
    at: float
    independent: bool

    def expected(self, at: float) -> float:
        return self.ms + 1000 * (at - self.at)


@dataclass(frozen=True, slots=True)
class ClockStatus:
    """``believed``: times may be issued by the wall clock; ``witnessed``: a witness agrees with it. ``alarm``: "" for none."""

    believed: bool
    witnessed: bool
    alarm: str

    @property
    def fit_to_delete(self) -> bool:
        """Whether data may be deleted because a time is over: another clock agrees now, and none has jumped lately."""
        return self.witnessed and not self.alarm


class TrustedTime:
    """The witnesses of one process, by name. Wall times are ms since the epoch, ``at`` is monotonic, in seconds.

    A witness on another machine is independent: when one agrees with the wall clock, that is trusted, whatever others say. One
    on this machine may share a wrong clock, so it can contradict but not confirm. Without witnesses the clock is trusted, but
    not at once after a jump.
    """

    def __init__(self) -> None:
        self._readings: dict[str, _Reading] = {}
        self._last: tuple[float, float] | None = None
        self._jump: tuple[float, float] | None = None

    def note_reading(self, witness: str, ms: float, at: float, *, independent: bool) -> None:
        """Notes a reading; ``witness`` is its name for people."""
        self._readings[witness] = _Reading(ms, at, independent)

    def judge(self, wall_ms: float, at: float) -> ClockStatus:
        """Returns the status of the wall clock; ``at`` never goes back."""
        fresh = {name: each for name, each in self._readings.items() if at - each.at <= FRESH_S}
        ahead = {name: wall_ms - each.expected(at) for name, each in fresh.items()}
        against = max((name for name in ahead if ahead[name] > AHEAD_MS), key=lambda name: ahead[name], default="")
        agree = [name for name in ahead if abs(ahead[name]) <= AHEAD_MS]
        confirmed = any(fresh[name].independent for name in agree)
        alarm = f"the clock is {ahead[against] / 1000:.0f} s ahead of {against}" if against else ""
        if against and not confirmed:
            return ClockStatus(believed=False, witnessed=False, alarm=f"{alarm}: no times are issued until it is corrected")
        self._note_jump(wall_ms, at)
        if self._jump is not None and not alarm:
            since, by = self._jump
            alarm = f"the clock jumped ahead by {by / 1000:.0f} s"
            if not confirmed and at - since < SETTLING_S:
                return ClockStatus(believed=False, witnessed=False, alarm=f"{alarm}: no times are issued for {SETTLING_S:.0f} s")
        self._last = (wall_ms, at)
        return ClockStatus(believed=True, witnessed=bool(agree), alarm=alarm)

    def _note_jump(self, wall_ms: float, at: float) -> None:
        """Compares with the last trusted reading. Jumps back are refused by the generator of times."""
        if self._last is None:
            return
        by = wall_ms - self._last[0] - 1000 * (at - self._last[1])
        waits = self._jump is not None and self._last[1] < self._jump[0]
        if by > AHEAD_MS:
            self._jump = self._jump if waits else (at, by)
        elif waits or by < -AHEAD_MS or (self._jump is not None and at - self._jump[0] > _NOTED_S):
            self._jump = None
