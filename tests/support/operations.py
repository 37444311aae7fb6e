"""Operations of a compaction plan without files."""

from headgate_tables.commitlog.records import DataFile
from headgate_tables.face.operation import Operation, OperationResult, PinnedFile


def operation(number: int, size: int = 100, partition: str = "p") -> Operation:
    """``size``: bytes of its base file; it has one empty log."""
    base = PinnedFile(f"base-{number}.parquet", size)
    return Operation(partition, f"group-{number}", base, (PinnedFile(f".log-{number}", 0),), f"out-{number}.parquet")


def compacted(done: Operation, rows: int = 1) -> OperationResult:
    """As the compactor reports it."""
    return OperationResult(done, DataFile(done.path, 10, "sha", ""), rows, rows, 0, 0, rows, 1)
