"""What is known of each writer's reports: how often they added up, and how often they did not (rule RO10). Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

EXCLUDED_AT: Final = 2
"""Checkpoints that do not add up, until a writer is excluded. The first costs an abort, as a lost writer does. No reason is
harmless, so none is forgiven; a restarted writer has another process id."""


class WriterRecords:
    """Of one ownership, by process id (rule RO8): a writer that comes back on another stream keeps its record."""

    def __init__(self) -> None:
        self.agreed: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()

    def note_agreement(self, processes: Iterable[str]) -> None:
        """A checkpoint with rows of these writers added up."""
        self.agreed.update(processes)

    def note_fault(self, process: str) -> bool:
        """A checkpoint did not add up, and this writer is at fault. Returns whether it is to be excluded."""
        self._faults[process] += 1
        return self._faults[process] >= EXCLUDED_AT
