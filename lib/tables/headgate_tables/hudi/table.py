"""A table handle: reader and owner in one, and writes of a single call."""

from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.records import GraceRecord
from headgate_tables.errors import TransactionError
from headgate_tables.face.results import CommitResult, DeleteResult, DropResult, ExpireResult
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi import deleting
from headgate_tables.hudi.left_record import leave
from headgate_tables.hudi.owning import TableOwner
from headgate_tables.hudi.services import dropping
from headgate_tables.hudi.services.planning.left_figures import LEFT_EVERY
from headgate_tables.hudi.services.retention.expiring import check_ttl, choose_expired
from headgate_tables.hudi.transaction import Transaction


class Table(TableOwner):
    """One Hudi table. Not for use by several threads at once; several handles and processes may read while one writes."""

    _left_at = 0
    """The slot of the figures that this handle left last."""

    def upsert(self, data: object) -> CommitResult:
        """Inserts rows, or replaces those of the same key, in one commit; durable and visible when this returns.

        ``data``: anything with ``__arrow_c_stream__`` (pyarrow, polars, pandas, duckdb), with all of the table's columns.
        Raises a FixCall for bad rows (nothing of the call is written), RetryLater, ReopenTable or OperatorNeeded.
        """
        return self._one_call(lambda transaction: transaction.upsert(data))

    def delete(self, keys: object) -> CommitResult:
        """Deletes rows by key, in one commit. ``keys``: the record key, partition and ordering columns.

        A delete obeys event time: it removes a row whose ordering value is not larger than its own.
        """
        return self._one_call(lambda transaction: transaction.delete(keys))

    def delete_where(self, where: str, *, dry_run: bool = False) -> DeleteResult:
        """Deletes the rows that ``where``, a condition in SQL (see ``scan``), selects now: in one commit, and no others.

        The table is owned while its rows are searched, so nothing is written in between. Rows are read and deleted as a stream;
        memory is that of a scan and of a million keys. ``dry_run``: only counts, and owns nothing.

        Raises OptionError and SchemaError for a condition that cannot be used, OptionError when the deletes of one file slice
        would have more bytes than ``headgate.slice.max.log.bytes``, TransactionError while a transaction is open,
        NullOrderingError for rows of another program without ordering value, and as ``transaction``; nothing is deleted then::

            table.delete_where("customer = 4711 OR mail LIKE '%@example.org'", dry_run=True).rows
        """
        matches = self.matching(where)
        if dry_run:
            return deleting.count(matches)
        log, _ = self._own()
        if log.open_instants:
            raise TransactionError("a transaction is open", fix="Commit or roll it back first.")
        with self.transaction() as transaction:
            return deleting.delete(self.matching(where), transaction, self.settings.max_log_bytes)

    @property
    def grace(self) -> GraceRecord | None:
        """Who dropped the table, and until when it can be brought back (rule D9). None: nobody."""
        return self._opened.log.state.grace if self._opened.log is not None else None

    def expire_partitions(self, *, dry_run: bool = False, ttl: str = "", by: str = "") -> ExpireResult:
        """Removes all rows of partitions that are older than the settings ``headgate.ttl`` and ``headgate.ttl.by`` say, in one
        commit that reads no row, of at most 1,000 partitions a call. Files stay until a cleaning, for readers of the past.

        ``dry_run``: only names them, and owns nothing. ``ttl``, ``by``: values of the two settings for this call alone.
        Raises OptionError for a table without the setting, or one that it does not fit, TransactionError while a transaction or
        a compaction is open, and as ``transaction``::

            table.expire_partitions(dry_run=True, ttl="30d", by="day").expired
        """
        if not dry_run:
            self._own()
        found = self._expired(ttl, by)
        if dry_run or not found.expired:
            return found
        done = self._remove(list(found.expired))
        return replace(found, instant=done.instant, replaced=done.replaced)

    def _expired(self, ttl: str, by: str) -> ExpireResult:
        log, definition = self._opened.writable()
        changes = {key: value for key, value in (("headgate.ttl", ttl), ("headgate.ttl.by", by)) if value}
        settings = TableSettings.from_texts({**self.settings.to_texts(), **changes})
        check_ttl(settings, definition, wanted=True)
        view = self._context().view() if log.owned else self._snapshots.current().view
        return choose_expired(view.groups(), settings, definition, self._opened.system.clock.now_ms(), view.completion_of)

    def drop(self, by: str = "", *, grace_ms: int = 0, plan_only: bool = False) -> DropResult:
        """Ends the table: from one slot on it is none for everybody, then its files are deleted, and none of another program's.

        Savepoints, leases of readers and open plans keep nothing. Ends the handle. ``by``: who wants it, for those who look for
        the table. ``plan_only``: returns what would be deleted. A table that another program has written to is dropped, too.
        ``grace_ms``: nobody writes the table any more, and its files stay for so long: ``undrop`` brings it back (rule D9).

        Raises TableOwnedError when a cluster owns the table, TableDroppedError, DeposedError, ClockError, OutcomeUnknownError,
        UnsupportedTableError for a table that another program made. After a RetryLater the table may be dropped already:
        ``finish_drop`` deletes the rest.
        """
        log, _ = self._opened.writable()
        if plan_only:
            return dropping.would_drop(self._store, log)
        if grace_ms:
            return dropping.begin_grace(log, self._opened.system.clock, by, grace_ms)
        return dropping.drop(self._store, log, self._opened.system.clock, by)

    def undrop(self, by: str = "") -> bool:
        """Brings a table back that was dropped with a grace time, as it was then. False: it is in none, and nothing was written.

        The table can be written through a new handle. ``by``: who wants it. Raises as ``drop``.
        """
        return dropping.undrop(self._opened.writable()[0], by)

    def drop_expired(self, now_ms: int) -> DropResult | None:
        """As ``drop``, for a table whose grace time is over ``now_ms``, ms since the epoch. None: it is not, or somebody has
        brought the table back.
        """
        return dropping.drop_expired(self._store, self._opened.writable()[0], self._opened.system.clock, now_ms)

    def tidy(self, *, beside: bool = False) -> None:
        """Sweeps what dead instants left and folds the log, each if it is due, beside open transactions. Raises as ``own``.

        ``beside``: what has to be listed on an object store is listed on another thread; a later call ends the work. Leaves the
        figures of the slices now and then, so that no commit of the next owner waits for its listing if this process is lost.
        """
        log, _ = self._own()
        self._tidy(log, beside=beside)
        # Figures from before a fold say nothing: nobody reads the slots before it.
        if beside and (self._left_at < log.state.folded or log.state.n - self._left_at >= LEFT_EVERY):
            self._leave(log)

    def hand_over(self) -> None:
        """Folds the log if that is due, but not on a disk, which reads slots at once and would sync their files first. Then
        it leaves what spares the next owner listings: the figures of the slices, and on an object store, where those take many
        requests, from where on to list the timeline. Does nothing for who is no owner.
        """
        log = self._opened.log
        if log is None or not log.owned:
            return
        if not self._store.stages and log.fold_is_due(leaving=True):
            log.fold()
        self._leave(log, "" if self._store.stages else self._guard.checked)

    def close(self) -> None:
        """Ends writing through the handle; open transactions lapse. Commits do not depend on this."""
        if self._opened.log is not None:
            self._opened.log.close()

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _leave(self, log: CommitLog, checked: str = "") -> None:
        self.check_there()  # for another table's next owner the record would be wrong
        largest = self.largest_slice()
        if checked or largest is not None:
            self.check_there()
            leave(self._store, log.state, self._opened.system.clock.now_ms(), checked, largest)
            self._left_at = log.state.n

    def _one_call(self, work: Callable[[Transaction], None]) -> CommitResult:
        with self.transaction() as transaction:
            work(transaction)
            return transaction.commit()
