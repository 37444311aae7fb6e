"""A commit in the making. Every call raises TablesError."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from headgate_tables.commitlog.records import Channels
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.results import CommitResult
from headgate_tables.face.writing import LoadMode


class Transaction(Protocol):
    """An instant, the files written under it, and their commit or rollback."""

    @property
    def instant(self) -> str:
        """Its requested time."""

    @property
    def statuses(self) -> Sequence[WriteStatus]:
        """Files that were added so far."""

    def upsert(self, data: object) -> None:
        """Writes rows, or replaces those of the same key. ``data``: anything with ``__arrow_c_stream__``, with all columns.

        Raises a FixCall for bad rows; roll back then.
        """

    def delete(self, keys: object) -> None:
        """Deletes by key, as ``upsert``. ``keys``: record key, partition and ordering columns; others are ignored."""

    def announce(self) -> None:
        """Puts the instant on the timeline; only then may others write its data files (rule P3)."""

    def announce_bulk_load(self, mode: LoadMode = "into_empty", partitions: Collection[str] = ()) -> None:
        """``announce`` for base files. ``partitions``: those that ``delete_partition`` empties. Raises TransactionError for a
        table that the mode does not fit, and while another transaction is open.
        """

    def find_false(self, statuses: Sequence[WriteStatus]) -> Mapping[int, str]:
        """Returns what is wrong with files that others report, by position; they must not be added. Raises RetryLater."""

    def add(self, statuses: Sequence[WriteStatus]) -> None:
        """Files that others wrote under this instant, after ``announce``, and made durable."""

    def commit(
        self,
        extra_metadata: Mapping[str, str] | None = None,
        channels: Channels | None = None,
        on_durable: Callable[[], None] | None = None,
    ) -> CommitResult:
        """Decides and publishes. ``channels``: records that change with these rows; without any they are decided alone (rule
        RO5). ``on_durable`` is called once, when the slot is won, before readers see it (rule C6); it must not raise.
        """

    def rollback(self) -> None:
        """Gives the transaction up: its instant is dead from the next slot on, its files are swept."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Commits, or rolls back on an error."""
