"""Whether this machine's wall clock may be believed: what others say, and how long this process has run (rules TM1, TM3).

A time that was issued is a floor for good: a table whose owner's clock was a day ahead for a moment has no commits for a day.
So nothing is issued far ahead of what others say. Pure: readings in, a verdict out.
"""

from dataclasses import dataclass

AHEAD_MS = 10_000
"""More than clocks on a network differ by. A clock that was ahead by less and is put right stops a table for seconds only."""
FRESH_S = 60.0
"""How long a reading speaks for its witness; it is carried on by the monotonic clock."""
SETTLING_S = 60.0
"""A jump that no witness explains is believed after this: a machine that was asleep goes on, a moment's error does not last."""
_NOTED_S = 600.0


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a witness's clock said, in ms since the epoch, when our monotonic clock said ``at``."""

    ms: float
    at: float
    independent: bool

    def expected(self, at: float) -> float:
        return self.ms + 1000 * (at - self.at)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``believed``: times may be issued by the wall clock; ``witnessed``: somebody else says the same. ``alarm``: "" for none."""

    believed: bool
    witnessed: bool
    alarm: str


class TrustedTime:
    """The witnesses of one process, by name. Wall times are ms since the epoch, ``at`` is monotonic, in seconds.

    A witness on another machine is independent: when one says the same as the wall clock, that is believed, whatever others
    say. One on this machine may have the same wrong clock, so it can contradict and not confirm. Without any, the clock is
    believed, but not at once behind a jump.
    """

    def __init__(self) -> None:
        self._readings: dict[str, _Reading] = {}
        self._last: tuple[float, float] | None = None
        self._jump: tuple[float, float] | None = None

    def note_reading(self, witness: str, ms: float, at: float, *, independent: bool) -> None:
        """``witness`` names it for people."""
        self._readings[witness] = _Reading(ms, at, independent)

    def judge(self, wall_ms: float, at: float) -> Verdict:
        """``at`` never goes back."""
        fresh = {name: each for name, each in self._readings.items() if at - each.at <= FRESH_S}
        ahead = {name: wall_ms - each.expected(at) for name, each in fresh.items()}
        against = max((name for name in ahead if ahead[name] > AHEAD_MS), key=lambda name: ahead[name], default="")
        agree = [name for name in ahead if abs(ahead[name]) <= AHEAD_MS]
        confirmed = any(fresh[name].independent for name in agree)
        alarm = f"the clock is {ahead[against] / 1000:.0f} s ahead of {against}" if against else ""
        if against and not confirmed:
            return Verdict(believed=False, witnessed=False, alarm=f"{alarm}: no times are issued before it is put right")
        self._note_jump(wall_ms, at)
        if self._jump is not None and not alarm:
            since, by = self._jump
            alarm = f"the clock jumped ahead by {by / 1000:.0f} s"
            if not confirmed and at - since < SETTLING_S:
                return Verdict(believed=False, witnessed=False, alarm=f"{alarm}: no times are issued for {SETTLING_S:.0f} s")
        self._last = (wall_ms, at)
        return Verdict(believed=True, witnessed=bool(agree), alarm=alarm)

    def _note_jump(self, wall_ms: float, at: float) -> None:
        """Against what the clock said when it was believed last. A jump back is the times' generator's to refuse."""
        if self._last is None:
            return
        by = wall_ms - self._last[0] - 1000 * (at - self._last[1])
        waits = self._jump is not None and self._last[1] < self._jump[0]
        if by > AHEAD_MS:
            self._jump = self._jump if waits else (at, by)
        elif waits or by < -AHEAD_MS or (self._jump is not None and at - self._jump[0] > _NOTED_S):
            self._jump = None
