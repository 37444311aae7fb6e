"""The timeline files of a commit of rows, and what its caller learns of it. Pure."""

from collections.abc import Iterable, Sequence

from headgate_tables.commitlog.records import DerivedFile
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.results import CommitResult
from headgate_tables.hudi.partition_file import encode_partition_file, partition_file
from headgate_tables.hudi.timeline.instant import Instant, State


def commit_files(
    pending: Sequence[DerivedFile], new_partitions: Iterable[str], done: Instant, metadata: bytes
) -> list[DerivedFile]:
    """Partition files first, the completed instant last: with it the commit becomes visible."""
    made = [(partition_file(partition), encode_partition_file(partition, done.time)) for partition in sorted(new_partitions)]
    return [*pending, *made, (done.path, metadata)]


def pending_deltacommit(instant: str) -> list[DerivedFile]:
    """Its requested and inflight files."""
    return [(Instant(instant, "deltacommit", state).path, b"") for state in (State.REQUESTED, State.INFLIGHT)]


def summary(instant: str, completion: str, statuses: Sequence[WriteStatus], superseded: int, replaced: int) -> CommitResult:
    """``completion``: "" when nothing was decided."""
    stats = [status.stat for status in statuses]
    return CommitResult(
        instant=instant if completion else "",
        completion=completion,
        upserted=sum(stat.rows for stat in stats),
        deleted=sum(stat.deletes for stat in stats),
        superseded=superseded,
        files=len(stats),
        bytes=sum(stat.size for stat in stats),
        replaced=replaced,
    )
