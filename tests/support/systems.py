"""A clock that tests set, and stores that fail when told to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.store import Buffers, Outcome
from headgate_tables.system import System, SystemIds

NOON = 1_800_000_000_000
"""2027-01-15 08:00:00 UTC, in milliseconds."""


@dataclass
class SetClock:
    """Stands still unless moved; ``slept`` records the pauses asked for, which cost no time."""

    now: int = NOON
    slept: list[float] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def system(clock: SetClock | None = None) -> System:
    """Real randomness, a clock of the test's."""
    return System(clock or SetClock(), SystemIds(), "testhost", 1)


class FaultyStore(LocalStore):
    """A real local store; ``before_create(path)`` and ``after_create(path, outcome)`` may raise or answer otherwise."""

    def __init__(self, root: Path, *, anchor: str = "") -> None:
        super().__init__(str(root), SystemIds(), anchor=anchor)
        self.before_create: Callable[[str], Outcome | None] = lambda path: None
        self.after_create: Callable[[str, Outcome], Outcome] = lambda path, outcome: outcome

    def create(self, path: str, content: Buffers, *, durable: bool) -> Outcome:
        answer = self.before_create(path)
        return answer if answer is not None else self.after_create(path, super().create(path, content, durable=durable))

    def create_all(self, files: Sequence[tuple[str, Buffers]], *, durable: bool) -> list[Outcome]:
        return [self.create(path, content, durable=durable) for path, content in files]


def answers(*outcomes: Any) -> Callable[[str], Outcome | None]:
    """For ``before_create``: one answer per call to a slot's path, then None (do it)."""
    left = list(outcomes)
    return lambda path: left.pop(0) if "/slot/" in path and left else None
