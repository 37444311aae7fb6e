"""What the owner of a table does with it: on one thread, one call at a time. Every call raises TablesError."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from headgate_tables.commitlog.records import Channels, GraceRecord
from headgate_tables.face.altering import Alteration, AlterResult
from headgate_tables.face.operation import Operation, OperationResult, Plan
from headgate_tables.face.reader import TableReader
from headgate_tables.face.rescaling import RescaleCalls
from headgate_tables.face.results import (
    AdoptResult,
    ArchiveResult,
    CleanResult,
    CommitInfo,
    CommitResult,
    CompactResult,
    DeleteResult,
    DropResult,
    ExpireResult,
    MaintenanceResult,
    RepairResult,
    RestoreResult,
    SliceLogSize,
    VersionChange,
)
from headgate_tables.face.settings import TableSettings
from headgate_tables.face.transaction import Transaction
from headgate_tables.face.writing import LoadMode


class StuckSlice(Protocol):
    """A file slice that cannot be compacted, or that an operator has set aside."""

    @property
    def key(self) -> tuple[str, str]:
        """Partition and file id."""

    @property
    def partition(self) -> str:
        """Path of the partition."""

    @property
    def bucket(self) -> int | None:
        """None for a file group that gets no rows from here."""

    @property
    def name(self) -> str:
        """Its name for people."""

    @property
    def why(self) -> str:
        """The last failure."""

    @property
    def tries(self) -> int:
        """Number of plans that went on without it."""

    @property
    def again(self) -> int:
        """Wall clock in milliseconds before which it is not planned."""

    @property
    def aside(self) -> bool:
        """Whether an operator has set it aside: it is not planned at all, and its rows are refused."""

    @property
    def is_accepted(self) -> bool:
        """Whether an operator has accepted the loss of its files, and it is compacted without them next."""


class Ownership(Protocol):
    """The fence and what is committed under it. A call that writes fences first, and raises DeposedError when the table has got
    another owner since.
    """

    @property
    def epoch(self) -> int:
        """Number of the newest ownership that this handle knows of, its own if it owns the table; 0 when there was none."""

    @property
    def stages(self) -> bool:
        """Whether the table lies in a folder of this machine."""

    @property
    def channels(self) -> Channels:
        """Channel records by name (rules CH4, CH5)."""

    @property
    def restored(self) -> str:
        """The newest restore's instant, "" before any (rule CH8)."""

    def own(self, *, after_epoch: int = 0) -> int:
        """Fences unless this handle owns the table, and returns the epoch. ``after_epoch``: a new one is above it."""

    def check_owner(self) -> None:
        """Checks in the commit log that this handle still owns the table; writes nothing."""

    def check_there(self) -> None:
        """Raises TableGoneError when the table's folder was moved or removed, or holds another table."""

    def transaction(self, *, tidy: bool = True) -> Transaction:
        """Begins a transaction; two may be open at once, and commit in the order of their beginning. ``tidy``: before it."""

    def win_offsets(self, channels: Channels, forget: Sequence[str] = ()) -> None:
        """Makes channel records durable without rows (rules RO5, CH4); ``forget``: names of records to remove."""

    @property
    def left_commit(self) -> CommitInfo | None:
        """The newest completed write that the owners before left; None when there was none."""

    def tidy(self, *, beside: bool = False) -> None:
        """Sweeps what dead instants left and folds the log, each if it is due. To be called between checkpoints.

        ``beside``: what has to be listed on an object store is listed on another thread; a later call ends the work.
        """

    def hand_over(self) -> None:
        """To be called before another process is to own the table: spares its owner what a new owner waits for, slots that are
        not folded and the listing of the table.
        """

    def close(self) -> None:
        """Ends writing through the handle; open transactions lapse."""


class Upkeep(Protocol):
    """The upkeep of an owned table, for which no operator is needed."""

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Open compactions by instant."""

    @property
    def stuck(self) -> Sequence[StuckSlice]:
        """Slices that cannot be compacted, or are set aside, by name."""

    def maintain(self) -> MaintenanceResult:
        """One step of what is due: plan a compaction, clean, archive. To be called between checkpoints; no step takes long."""

    def look_for_unsorted(self) -> Callable[[], list[tuple[str, str]]]:
        """Returns a look, for any thread, at which slices without logs are not in the order of the settings, by partition and
        file id. Raises OptionError if these want none.
        """

    def plan_compaction(self, *, forced: bool = False, also: Collection[tuple[str, str]] = ()) -> Plan | None:
        """Plans what is due, or every slice with logs when ``forced``, and those of ``also``; None when there is nothing."""

    def finish_plan(
        self, instant: str, finished: Sequence[OperationResult], dropped: Mapping[Operation, str] | None = None
    ) -> str:
        """Completes a plan; ``dropped``: operations that failed for good, and why. Returns the completion time, "" for none."""

    def cancel_plan(self, instant: str) -> None:
        """Cancels a plan for good (rule W5). Does nothing when it is not open."""

    def largest_slice(self) -> SliceLogSize | None:
        """The most log files and log bytes of any slice that is not stuck. Before ``maintain`` has listed the table: an upper
        bound from what the owner before left (``hand_over``), None if it left nothing.
        """

    def log_size_of(self, stuck: StuckSlice) -> SliceLogSize | None:
        """Log files and log bytes of one slice; None before ``maintain`` has listed the table."""


class OperatorCalls(RescaleCalls, Protocol):
    """What operators order, from an owner or for a table without a cluster."""

    def compact(
        self, *, plan_only: bool = False, progress: Callable[[Operation, int], None] | None = None, sort: bool = False
    ) -> CompactResult:
        """Merges the logs of every slice into new base files, here. ``progress`` gets an operation and its rows so far.
        ``sort``: also rewrites slices without logs that lie in another order than the settings want. Raises OptionError if these
        want none.
        """

    def clean(self, *, plan_only: bool = False) -> CleanResult:
        """Removes file slices that no reader needs any more."""

    def archive(self, *, plan_only: bool = False) -> ArchiveResult:
        """Moves the oldest instants from the active timeline to its history."""

    def savepoint(self, comment: str = "", user: str = "headgate") -> str:
        """Saves the newest commit and returns its instant."""

    def remove_savepoint(self, instant: str) -> None:
        """Removes a savepoint."""

    def restore(self, instant: str, *, plan_only: bool = False) -> RestoreResult:
        """Takes the table back to a savepoint: all later commits are gone for good (rule CH8)."""

    def check_bulk_load(self, mode: LoadMode) -> None:
        """Raises TransactionError when the table, as it is now, does not fit the mode; takes nothing over."""

    def check_partitions(self, partitions: Collection[str]) -> None:
        """Raises OptionError for one that the table never had."""

    def delete_partitions(self, partitions: Collection[str]) -> CommitResult:
        """Removes all rows of partitions, named by their paths, in one commit. Raises OptionError for an unknown one."""

    def truncate(self) -> CommitResult:
        """Removes all rows in one commit."""

    def expire_partitions(self, *, dry_run: bool = False, ttl: str = "", by: str = "") -> ExpireResult:
        """Removes partitions that are past their time, in one commit; ``dry_run``: only names them."""

    def delete_where(self, where: str, *, dry_run: bool = False) -> DeleteResult:
        """Deletes the rows that a condition in SQL selects, in one commit; ``dry_run``: only counts them."""

    def configure(self, changes: Mapping[str, str | float | None]) -> TableSettings:
        """Sets the values in ``changes``, by key; None restores a default, a number or a bool stands for its text."""

    def alter(self, alteration: Alteration, *, plan_only: bool = False) -> AlterResult:
        """Adds columns, widens types, lets columns be null. Raises SchemaError, and TransactionError while one is open."""

    def evolution(self, columns: pa.Schema) -> Alteration:
        """The alteration after which the table holds a batch's ``columns``. Raises SchemaError if its setting forbids it."""

    def change_version(self, table_version: int) -> VersionChange:
        """Brings the table to another version of its format, in which all rows stay as they are."""

    def set_aside(self, name: str, why: str = "") -> None:
        """Keeps the file slice from being compacted, and has its rows refused."""

    def readmit(self, name: str, *, accept_loss: bool = False) -> None:
        """Undoes ``set_aside``, and makes the slice due for compaction; ``accept_loss``: without its files that are gone."""

    def adopt(self, *, buckets: int | None = None, roll_back: bool = False, remove_metadata_table: bool = False) -> AdoptResult:
        """Takes over a table that another program made, or has written to since, so that this library can write it."""

    def accept_future_times(self) -> str:
        """Lets the table continue above times that are ahead of the clock; returns where it continues, "" when none is ahead."""

    @property
    def grace(self) -> GraceRecord | None:
        """Who dropped the table, and until when it can be brought back (rule D9). None: nobody."""

    def drop(self, by: str = "", *, grace_ms: int = 0, plan_only: bool = False) -> DropResult:
        """Ends the table and deletes its files, none of another program's. ``by``: who wants it; "" for nobody in particular.
        ``grace_ms``: keeps the files for so long, and the table can be brought back.
        """

    def undrop(self, by: str = "") -> bool:
        """Brings the table back, in its grace time. False: it is in none."""

    def drop_expired(self, now_ms: int) -> DropResult | None:
        """Deletes the files of a table whose grace time is over. None: it is not, or somebody has brought the table back."""

    def repair(self) -> RepairResult:
        """Restores timeline files that were deleted, and removes archived ones that have come back."""


class Table(TableReader, Ownership, Upkeep, OperatorCalls, Protocol):
    """A handle with all of these calls. Not for several threads at once. As a context manager it closes at the end."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...
