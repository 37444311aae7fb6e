"""When slot work that the store refused is tried again. Pure."""

from headgate_coordinator.core.policy import CheckpointPolicy


class Retry:
    """Pauses grow with each refusal and begin anew after a success. ``why``: what was said last, "" while all is well."""

    def __init__(self, policy: CheckpointPolicy) -> None:
        self.retry_at: float | None = None
        self.why = ""
        self.failures = 0
        self._policy = policy

    @property
    def waits(self) -> bool:
        """Nothing is to be tried now."""
        return self.retry_at is not None

    def note_refusal(self, why: str, now: float) -> None:
        """Nothing was done."""
        self.failures, self.why = self.failures + 1, why
        self.retry_at = now + self._policy.retry_pause(self.failures)

    def end_pause(self, now: float) -> None:
        """Whether the pause is over."""
        if self.retry_at is not None and self.retry_at <= now:
            self.retry_at = None

    def note_success(self) -> None:
        """The store takes what we give it."""
        self.retry_at, self.failures, self.why = None, 0, ""
