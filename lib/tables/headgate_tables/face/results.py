"""What calls of a table return: plain records that print well."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate_tables.face.operation import Operation, OperationResult, Plan


@dataclass(frozen=True, slots=True)
class CommitResult:
    """One commit. ``instant``: its requested time, "" when there was nothing to write; ``completion``: from when readers see it.

    ``upserted`` and ``deleted`` count rows that were written; ``superseded`` rows that a newer row of the same key in the
    same call beat. ``bytes`` is the size of the new ``files``. ``replaced``: number of file groups that an overwrite took out.
    """

    instant: str
    completion: str
    upserted: int
    deleted: int
    superseded: int
    files: int
    bytes: int
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """Deletes by a condition. ``partitions``: rows by the path of their partition ("" in a table without), of those that had any.

    ``as_of``: completion time of the newest commit that was searched. ``instant`` and ``completion`` of the deletes' commit are
    "" when nothing matched, or it was only counted. ``bytes`` is the size of the new ``files``.
    """

    rows: int
    partitions: Mapping[str, int]
    as_of: str
    instant: str
    completion: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ExpireResult:
    """Partitions past their time, by path, the oldest first, with when that came, in milliseconds since the epoch.

    ``left``: how many more there are, for a next call. ``undated``: how many have a value that is no date and never expire.
    ``next_ms``: when the next of the others expires, None if none does. ``instant``: of the commit that removed them, "" if they
    were only looked for or had no rows; ``replaced``: number of file groups that it took out.
    """

    expired: Mapping[str, int]
    left: int
    undated: int
    next_ms: int | None
    instant: str = ""
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """One completed instant of the timeline, newest last in ``Table.commits()``."""

    instant: str
    completion: str
    action: str


@dataclass(frozen=True, slots=True)
class InstantInfo:
    """One instant of the timeline; ``completed`` is None while it is pending. Counts of a completed write, None for others."""

    instant: str
    action: str
    state: str
    completed: str | None
    files: int | None = None
    rows: int | None = None
    deletes: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong that ``Table.verify()`` found, in words."""

    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What ``Table.repair()`` did: paths of timeline files, from the table's root."""

    put_back: Sequence[str]
    removed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of ``Table.verify()``."""

    slots: int
    commits: int
    files: int
    findings: Sequence[Finding]

    @property
    def ok(self) -> bool:
        """Whether slots, timeline and files agree: there are no findings."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class CompactResult:
    """One compaction. ``instant`` is "" when there was nothing to compact, ``completion`` when it was only planned.

    ``dropped``: operations that failed and why; their slices stay as they were.
    """

    instant: str
    completion: str
    planned: Sequence[Operation]
    finished: Sequence[OperationResult]
    dropped: Mapping[Operation, str]


@dataclass(frozen=True, slots=True)
class CleanResult:
    """One cleaning. ``instant`` is "" when there was nothing to clean, or it was only planned.

    ``files``: paths that were deleted, or would be; ``earliest``: from this completion time on the table can be read.
    ``kept``: files that are old enough to go, but needed by a reader, a savepoint or a plan.
    """

    instant: str
    files: Sequence[str]
    bytes: int
    earliest: str
    kept: int = 0


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """One archiving of the timeline: ``instants`` that left it, or would; ``left``: how many completed ones stay."""

    instants: Sequence[str]
    left: int
    planned_only: bool


@dataclass(frozen=True, slots=True)
class SavepointInfo:
    """A savepoint. ``saved_by``: who made it. ``saved_ms``: when, ms since the epoch; 0 if its file is gone.

    ``newer_commits``: how many completed writes a restore to it would undo.
    """

    instant: str
    comment: str
    saved_by: str
    saved_ms: int
    newer_commits: int


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """One restore; ``instant`` is "" when it was only planned.

    ``undone``: instants whose rows are gone, oldest first; ``files``: how many of these; ``plans``: how many were cancelled.
    """

    instant: str
    savepoint: str
    undone: Sequence[str]
    files: int
    plans: int


@dataclass(frozen=True, slots=True)
class DropResult:
    """A drop, or with ``time`` "" what it would do. ``table``: its own id. ``epoch``: its last one. ``by``: who dropped it, ""
    when nobody said so.

    ``files``, ``bytes``: data files that were deleted here; a drop that others have begun deleted some before. ``left``: paths of
    files, and of folders, that are not the table's and stay where they are, of ``left_count`` the first. ``until``: the end of
    the table's grace time in ms of the wall clock, up to which no file is deleted; 0: there is none.
    """

    table: str
    epoch: int
    time: str
    by: str
    files: int
    bytes: int
    left: Sequence[str]
    left_count: int
    until: int = 0


@dataclass(frozen=True, slots=True)
class AdoptResult:
    """What another program did and the table has adopted, by instants; all empty when no other program has written.

    ``completed``, ``savepoints``: that the program made. ``removed``, ``archived``: ours that it undid or archived. ``plans``:
    compactions that it left open; ``finished_plans``: ours that it completed. ``rolled_back``: its pending writes, now removed.
    """

    completed: Sequence[str]
    removed: Sequence[str]
    plans: Sequence[str]
    finished_plans: Sequence[str]
    rolled_back: Sequence[str] = ()
    archived: Sequence[str] = ()
    savepoints: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class VersionChange:
    """The version of its format that a table had, and the one that it has now; equal when nothing had to change."""

    before: int
    now: int


@dataclass(frozen=True, slots=True)
class RescaleResult:
    """A change of the number of buckets, from ``before`` to ``buckets``. ``instant`` is "" when nothing had to change, or it was
    only planned.

    ``needed``: whether anything has to change. ``before``: the largest number that any of the partitions had, ``buckets``: what
    they have from then on. ``replaced``: file groups that left the table, or would; ``units``: in which they are rewritten, each
    by itself; ``files``, ``rows``: in the new ones. ``bytes``: of these, or of what would be read. ``compared``: the files of
    all instants before this one were looked for, "" for none.
    """

    instant: str
    completion: str
    needed: bool
    before: int
    buckets: int
    replaced: int
    units: int
    files: int
    rows: int
    bytes: int
    compared: str = ""


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """One step of maintenance. ``plan``: a new one, if any. ``did``: in words, "" for nothing. ``more``: call again soon.

    ``waits``: a compaction is due that costs less when no transaction is open; call again between two.
    """

    plan: Plan | None = None
    did: str = ""
    more: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class SliceLogSize:
    """The most log files and log bytes of any file slice."""

    log_files: int = 0
    log_bytes: int = 0
