"""What a compaction plan pins: file slices by the exact names and sizes of their files (rules TM2, W4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate_tables.commitlog.publish import DataFile


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file of a slice, by its name without folder, and its bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One file slice that becomes a base file. ``logs`` in merge order; ``output`` is the new base file's name (rule W4)."""

    partition: str
    file_id: str
    base: PinnedFile | None
    logs: tuple[PinnedFile, ...]
    output: str

    @property
    def path(self) -> str:
        """Where the new base file lies, from the table's root."""
        return self.at(self.output)

    @property
    def input_bytes(self) -> int:
        """Of base and logs."""
        return (self.base.size if self.base else 0) + sum(log.size for log in self.logs)

    def at(self, name: str) -> str:
        """A file of the slice, from the table's root."""
        return f"{self.partition}/{name}" if self.partition else name

    def encode(self) -> list[Any]:
        """As it stands in a PLAN slot."""
        base = [self.base.name, self.base.size] if self.base else None
        return [self.partition, self.file_id, base, [[log.name, log.size] for log in self.logs], self.output]

    @classmethod
    def decode(cls, content: Sequence[Any]) -> "Operation":
        """From a PLAN slot."""
        partition, file_id, base, logs, output = content
        pinned = tuple(PinnedFile(*log) for log in logs)
        return cls(partition, file_id, PinnedFile(*base) if base else None, pinned, output)


@dataclass(frozen=True, slots=True)
class Plan:
    """A compaction that is planned and neither done nor cancelled."""

    instant: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Compacted:
    """A finished operation: ``file`` is in place and durable under its fixed name.

    Counts of rows: ``rows`` in the new file; ``inserts`` of keys that the base did not have, ``updates`` of those that it had,
    ``deletes`` of base rows that are gone; ``log_rows`` and ``log_blocks`` as read.
    """

    operation: Operation
    file: DataFile
    rows: int
    inserts: int
    updates: int
    deletes: int
    log_rows: int
    log_blocks: int
