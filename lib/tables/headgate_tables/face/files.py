"""Data files that a writer has made under an instant and its owner commits."""

from dataclasses import dataclass

from headgate_tables.commitlog.records import DataFile


@dataclass(frozen=True, slots=True)
class WriteStat:
    """One data file of a commit. ``log_version`` is 0 for a base file; sizes in bytes; ``rows``, ``deletes``: how many."""

    file_id: str
    partition: str
    name: str
    size: int
    rows: int
    deletes: int
    log_version: int = 0

    @property
    def path(self) -> str:
        """From the table's root."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """One data file of an open transaction: what the commit metadata says of it, and where its bytes are."""

    stat: WriteStat
    file: DataFile
