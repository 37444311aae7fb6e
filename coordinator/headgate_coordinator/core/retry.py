"""When slot work that the store refused is tried again. Pure."""

from headgate_coordinator.core.policy import CheckpointPolicy


class Retry:
    """Pauses grow with each refusal and begin anew after a success. ``why``: what was said last, "" while all is well."""

    def __init__(self, policy: CheckpointPolicy) -> None:
        self.at: float | None = None
        self.why = ""
        self.failures = 0
        self._policy = policy

    @property
    def waits(self) -> bool:
        """Nothing is to be tried now."""
        return self.at is not None

    def refused(self, why: str, now: float) -> None:
        """Nothing was done."""
        self.failures, self.why = self.failures + 1, why
        self.at = now + self._policy.pause(self.failures)

    def look(self, now: float) -> None:
        """Whether the pause is over."""
        if self.at is not None and self.at <= now:
            self.at = None

    def succeeded(self) -> None:
        """The store takes what we give it."""
        self.at, self.failures, self.why = None, 0, ""
