"""Aborted generations in a row: how many, why, and how long answers to opens are held back. Pure."""

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.policy import CheckpointPolicy


class Aborts:
    """From the second abort in a row on, opens are answered later, longer each time: each abort makes clients send all rows
    again.

    ``opens_at``: no open is answered before this time; None: they are answered. ``forgotten_at``: when the alarm ends if the
    table goes on resting; None: it does not rest, or there is no alarm.
    """

    def __init__(self, policy: CheckpointPolicy) -> None:
        self.opens_at: float | None = None
        self.forgotten_at: float | None = None
        self._policy = policy
        self._undecided = 0
        self._since = 0.0
        self._why = ""
        self._fruitless = 0

    def note_abort(self, why: str, now: float) -> None:
        """Counts an aborted generation."""
        self._since = self._since if self._undecided else now
        self._undecided, self._why = self._undecided + 1, why
        self._fruitless += 1
        self.forgotten_at = None
        pause = self._policy.retry_pause(self._fruitless - 1)
        self.opens_at = now + pause if pause else None

    def note_decision(self, *, writes: bool) -> None:
        """A checkpoint was decided. One without rows ends the alarm, but not the pause: it says nothing about the next with
        rows.
        """
        self._undecided = 0
        if writes:
            self._fruitless = 0

    def note_rest(self, *, resting: bool, now: float) -> None:
        """Ends the alarm once nothing has waited for a checkpoint for ``checkpoint_timeout``. An idle table gets no checkpoint
        whose decision would end it, and clients that were rewound have come back by then.
        """
        if not (resting and self._undecided):
            self.forgotten_at = None
        elif self.forgotten_at is None:
            self.forgotten_at = now + self._policy.checkpoint_timeout
        elif self.forgotten_at <= now:
            self._undecided, self.forgotten_at = 0, None

    def end_pause(self, now: float) -> bool:
        """Returns whether the pause ended just now: opens are answered again."""
        if self.opens_at is None or self.opens_at > now:
            return False
        self.opens_at = None
        return True

    def alarms(self, now: float) -> list[StandingAlarm]:
        """Alarms for operators."""
        if not self._undecided:
            return []
        lasts, aborts = f"{now - self._since:.0f} s", f"{self._undecided} were aborted"
        text = f"no checkpoint was decided for {lasts}: {aborts}, the last because {self._why}"
        return [StandingAlarm(AlarmKind.CHECKPOINTS_ABORTED, text)]
