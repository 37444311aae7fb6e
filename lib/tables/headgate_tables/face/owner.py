"""What the owner of a table does with it: one thread, one step after the other. Everything raises TablesError."""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from headgate_tables.commitlog.records import Channels
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.operation import Compacted, Operation, Plan
from headgate_tables.face.reader import TableReader
from headgate_tables.face.results import (
    AdoptResult,
    ArchiveResult,
    CleanResult,
    CommitResult,
    CompactResult,
    Maintained,
    Repaired,
    RestoreResult,
    SliceFigures,
)
from headgate_tables.face.settings import TableSettings


class StuckSlice(Protocol):
    """A file slice that cannot be compacted, or that an operator has set aside."""

    @property
    def key(self) -> tuple[str, str]:
        """Partition and file id."""

    @property
    def partition(self) -> str:
        """Its path."""

    @property
    def bucket(self) -> int | None:
        """None for a file group that gets no rows from here."""

    @property
    def name(self) -> str:
        """As people name it."""

    @property
    def why(self) -> str:
        """The last failure."""

    @property
    def tries(self) -> int:
        """Plans that went on without it."""

    @property
    def again(self) -> int:
        """Milliseconds of the wall clock before which it is not planned."""

    @property
    def aside(self) -> bool:
        """An operator has set it aside: it is not planned at all and takes no rows."""


class Transaction(Protocol):
    """An instant, the files written under it, and their commit or rollback."""

    @property
    def instant(self) -> str:
        """Its requested time."""

    @property
    def statuses(self) -> Sequence[WriteStatus]:
        """Files that were added."""

    def announce(self) -> None:
        """Puts the instant on the timeline: from then on data files of it may be written (rule P3)."""

    def add(self, statuses: Sequence[WriteStatus]) -> None:
        """Files that others wrote under this instant, after ``announce``, and made durable."""

    def commit(
        self,
        extra_metadata: Mapping[str, str] | None = None,
        channels: Channels | None = None,
        decided: Callable[[], None] | None = None,
    ) -> CommitResult:
        """Decides and publishes. ``channels``: records that change with these rows. ``decided`` is called once when the slot is
        won, before readers see it (rule C6); it must not raise.
        """

    def rollback(self) -> None:
        """Gives the transaction up: its instant is dead from the next slot on, its files are swept."""


class Ownership(Protocol):
    """The fence and what is committed under it. A call that writes owns the table first, and raises DeposedError when the
    table has another owner by now.
    """

    @property
    def epoch(self) -> int:
        """Number of the newest ownership that this handle knows of, its own if it owns the table; 0 before any."""

    @property
    def stages(self) -> bool:
        """Whether the table lies in a folder of this machine."""

    @property
    def channels(self) -> Channels:
        """Channel records by name (rules CH4, CH5)."""

    @property
    def restored(self) -> str:
        """The newest restore's instant, "" before any (rule CH8)."""

    def own(self) -> int:
        """Fences unless this handle owns the table, and returns the epoch."""

    def check_owner(self) -> None:
        """Asks the commit log whether the table is still this handle's; writes nothing."""

    def check_there(self) -> None:
        """Raises TableGoneError when the table's folder was moved or removed."""

    def transaction(self, *, tidy: bool = True) -> Transaction:
        """Begins one; two may be open at once, and they commit in the order of their beginning. ``tidy``: first, if it is due."""

    def win_offsets(self, channels: Channels, forget: Sequence[str] = ()) -> None:
        """Makes channel records durable without rows (rules RO5, CH4); ``forget``: names that go."""

    def tidy(self) -> None:
        """Sweeps what dead instants left and folds the log, each if it is due. Belongs between checkpoints."""

    def close(self) -> None:
        """Ends writing through the handle; open transactions lapse."""


class Upkeep(Protocol):
    """What keeps an owned table healthy without anybody asking."""

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Open compactions by instant."""

    @property
    def stuck(self) -> Sequence[StuckSlice]:
        """By name."""

    def maintain(self) -> Maintained:
        """One step of what is due: plan a compaction, clean, archive. Belongs between checkpoints; none takes long."""

    def plan_compaction(self, *, forced: bool = False) -> Plan | None:
        """Plans what is due, or every slice with logs when ``forced``; None when there is nothing."""

    def finish_plan(self, instant: str, finished: Sequence[Compacted], dropped: Mapping[Operation, str] | None = None) -> str:
        """Completes a plan; ``dropped``: operations that failed for good, and why. Returns the completion time, "" for none."""

    def slice_figures(self) -> SliceFigures | None:
        """The most log files and log bytes of any slice that is not stuck; None before ``maintain`` has seen the table."""

    def figures_of(self, stuck: StuckSlice) -> SliceFigures | None:
        """Of one slice; None before ``maintain`` has seen the table."""


class OperatorCalls(Protocol):
    """What operators ask of an owner, or do to a table without a cluster."""

    def compact(self, *, plan_only: bool = False, progress: Callable[[Operation, int], None] | None = None) -> CompactResult:
        """Merges the logs of every slice into new base files, here. ``progress`` gets an operation and its rows so far."""

    def clean(self, *, plan_only: bool = False) -> CleanResult:
        """Removes file slices that nobody needs any more."""

    def archive(self, *, plan_only: bool = False) -> ArchiveResult:
        """Moves the oldest instants from the active timeline to its history."""

    def savepoint(self, comment: str = "", user: str = "headgate") -> str:
        """Saves the newest commit; returns its instant."""

    def remove_savepoint(self, instant: str) -> None:
        """Ends a savepoint."""

    def restore(self, instant: str, *, plan_only: bool = False) -> RestoreResult:
        """Takes the table back to a savepoint: all later commits are gone for good (rule CH8)."""

    def configure(self, changes: Mapping[str, str | None]) -> TableSettings:
        """Sets what ``changes`` names, by key; None takes the default again."""

    def set_aside(self, name: str, why: str = "") -> None:
        """The file slice is not compacted, and takes no rows."""

    def take_in(self, name: str) -> None:
        """Ends that, and makes the slice due for compaction."""

    def adopt(self, *, buckets: int | None = None, roll_back: bool = False) -> AdoptResult:
        """Makes a table that another program made, or has written since, this library's to write."""

    def accept_future_times(self) -> str:
        """Lets the table go on above its own times; returns the time from which it goes on, "" when none is ahead."""

    def repair(self) -> Repaired:
        """Puts files of the timeline in order that somebody has deleted or brought back."""


class Table(TableReader, Ownership, Upkeep, OperatorCalls, Protocol):
    """A handle: all of it. Not for use by several threads at once. As a context manager it closes at the end."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...
