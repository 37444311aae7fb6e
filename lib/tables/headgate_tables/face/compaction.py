"""What a compactor runs."""

from collections.abc import Callable
from typing import Protocol

from headgate_tables.face.operation import OperationResult


class CompactionTask(Protocol):
    """One operation of a plan, at one attempt. Called from one thread."""

    def base_rows(self) -> int:
        """Rows of the base file, for progress alone: 0 without a base file, or when that is missing or damaged."""

    def run(self, progress: Callable[[int], None]) -> OperationResult:
        """Creates the new base file under its fixed name, or returns what an earlier attempt put there (rule W4).

        ``progress`` gets the rows written so far, after every batch; what it raises ends the attempt. Raises MissingFileError and
        CorruptFileError for inputs that are not as they were pinned, TableGoneError and TableDroppedError when this process sees
        nothing of the table, and TablesError.
        """
