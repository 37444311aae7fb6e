"""What is known of each writer's reports: how often they added up, did not, or were missing (rules RO10, RO11). Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

EXCLUDED_AT: Final = 2
"""Checkpoints that do not add up, until a writer is excluded. The first costs an abort, as a lost writer does. No reason is
harmless, so none is forgiven; a restarted writer has another process id."""

SILENT_AT: Final = 3
"""Checkpoints in a row that one writer alone held up, until it is excluded: 90 s and pauses with the default
``checkpoint_timeout``. Behind the first abort a checkpoint is so small that a slow writer needs one turn for it."""


class WriterRecords:
    """Of one ownership, by process id (rule RO8): a writer that comes back on another stream keeps its record."""

    def __init__(self) -> None:
        self.agreed: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._silent = ""
        self._silences = 0

    def note_agreement(self, processes: Iterable[str]) -> None:
        """A checkpoint with rows of these writers added up."""
        self.agreed.update(processes)

    def note_fault(self, process: str) -> bool:
        """A checkpoint did not add up, and this writer is at fault. Returns whether it is to be excluded."""
        self._faults[process] += 1
        return self._faults[process] >= EXCLUDED_AT

    def note_late(self, silent: str) -> bool:
        """A checkpoint was aborted for its time. ``silent``: the writer that alone held it up; "": nobody knows that.

        Returns whether that writer is to be excluded.
        """
        if silent != self._silent:
            self._silent, self._silences = silent, 0
        if silent:
            self._silences += 1
        return self._silences >= SILENT_AT

    def note_passed(self, process: str) -> None:
        """An ingest side passed a barrier, though perhaps too late: it starves, and does not hang."""
        if process == self._silent:
            self._silent, self._silences = "", 0
