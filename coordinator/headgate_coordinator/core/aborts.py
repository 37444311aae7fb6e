"""Generations that were given up one after the other: how often, why, and how long clients keep what they have. Pure."""

from headgate_coordinator.core.policy import CheckpointPolicy


class Aborts:
    """After the second one in a row opens are answered later, longer each time: everything is sent again for each.

    ``opens_at``: until then no open is answered; None: they are.
    """

    def __init__(self, policy: CheckpointPolicy) -> None:
        self.opens_at: float | None = None
        self._policy = policy
        self._undecided = 0
        self._since = 0.0
        self._why = ""
        self._fruitless = 0

    def note_abort(self, why: str, now: float) -> None:
        """One more."""
        self._since = self._since if self._undecided else now
        self._undecided, self._why = self._undecided + 1, why
        self._fruitless += 1
        pause = self._policy.retry_pause(self._fruitless - 1)
        self.opens_at = now + pause if pause else None

    def note_decision(self, *, writes: bool) -> None:
        """A checkpoint was. One that wrote nothing ends the alarm, but says nothing of the next one with rows."""
        self._undecided = 0
        if writes:
            self._fruitless = 0

    def end_pause(self, now: float) -> bool:
        """Whether opens are answered again from now on."""
        if self.opens_at is None or self.opens_at > now:
            return False
        self.opens_at = None
        return True

    def alarms(self, now: float) -> list[str]:
        """What an operator should know."""
        if not self._undecided:
            return []
        lasts = now - self._since
        return [f"no checkpoint was decided for {lasts:.0f} s: {self._undecided} were given up, the last one because {self._why}"]
