"""When slot work that the store refused is retried. Pure."""

from headgate_coordinator.core.policy import CheckpointPolicy


class Retry:
    """Pauses grow with each refusal and start over after a success. ``why``: the last refusal; "": there is none."""

    def __init__(self, policy: CheckpointPolicy) -> None:
        self.retry_at: float | None = None
        self.why = ""
        self.failures = 0
        self._policy = policy

    @property
    def waits(self) -> bool:
        """Whether a pause lasts."""
        return self.retry_at is not None

    def note_refusal(self, why: str, now: float) -> None:
        """Begins a pause: the store refused, and nothing was done."""
        self.failures, self.why = self.failures + 1, why
        self.retry_at = now + self._policy.retry_pause(self.failures)

    def end_pause(self, now: float) -> None:
        """Ends the pause when its time is over."""
        if self.retry_at is not None and self.retry_at <= now:
            self.retry_at = None

    def note_success(self) -> None:
        """The store works again: forgets refusals."""
        self.retry_at, self.failures, self.why = None, 0, ""
