"""The owning half of a table handle: the fence, transactions, channels, and repairs of commit log and timeline."""

import contextlib
from collections.abc import Collection, Sequence

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.first_slot import create_log
from headgate_tables.commitlog.records import Channels
from headgate_tables.errors import DeposedError, OptionError, TransactionError
from headgate_tables.face.results import AdoptResult, CommitInfo, RepairResult, VersionChange
from headgate_tables.face.writing import LoadMode
from headgate_tables.hudi.bulk_loads import BulkLoad
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.data_files import layout_of
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.groups import GroupIds
from headgate_tables.hudi.guard import Guard, MetadataTable
from headgate_tables.hudi.left_record import NOTHING_LEFT, LeftRecord, read_left
from headgate_tables.hudi.log.parquet_rows import ParquetLayout
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.lost_files import LostFiles
from headgate_tables.hudi.lost_instants import put_back, put_back_lost
from headgate_tables.hudi.opened import Opened
from headgate_tables.hudi.reading import TableReader
from headgate_tables.hudi.removals import RowRemovals
from headgate_tables.hudi.returned_instants import take_away
from headgate_tables.hudi.services import versioning
from headgate_tables.hudi.services.foreign import adopting
from headgate_tables.hudi.services.foreign import table as foreign_table
from headgate_tables.hudi.services.maintaining import Maintainer
from headgate_tables.hudi.services.planning.left_figures import largest_at
from headgate_tables.hudi.services.rescaling import UnownedTable
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.services.table_services import TableServices
from headgate_tables.hudi.sweeper import Sweeper
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.hudi.timeline.instant import Instant
from headgate_tables.hudi.transaction import Transaction
from headgate_tables.hudi.versions import TableVersion
from headgate_tables.storage.probe import probe


class TableOwner(TableReader, TableServices, RowRemovals):
    """Any write owns the table first: the first one of a handle *fences* (rule F1), which makes others' open instants dead."""

    def __init__(self, opened: Opened, metadata_table: MetadataTable) -> None:
        """``metadata_table``: see ``open_table``."""
        super().__init__(opened)
        self._guard = Guard(opened.store, metadata_table, opened.check_there)
        self._groups: GroupIds | None = None
        self._parquet: ParquetLayout | None = None
        self._sweeper = Sweeper(opened.store)
        self._left: list[Instant] = []
        self._maintainer = Maintainer()

    @property
    def channels(self) -> Channels:
        """Channel records by name, according to the slots (rules CH4, CH5)."""
        return self._opened.log.state.channels if self._opened.log else {}

    @property
    def restored(self) -> str:
        """The newest restore's instant, "" before any: only when it changes do channel offsets go back (rule CH8)."""
        return self._opened.log.state.restored if self._opened.log else ""

    @property
    def left_commit(self) -> CommitInfo | None:
        """The newest completed write that the owners before left; None when there was none, and before ``own``."""
        return next((CommitInfo(left.time, left.completion, left.action) for left in self._left), None)

    def own(self, *, after_epoch: int = 0) -> int:
        """Fences unless this handle owns the table, publishes what slots decided (rule T6), and returns the epoch.

        ``after_epoch``: a new epoch is above it. Lists no data folder; ``tidy`` removes what dead instants left. Raises
        DeposedError, TableOwnedError, UnsupportedTableError, ForeignWriterError, ClockError.
        """
        return self._own(after_epoch)[0].state.epoch

    def check_owner(self) -> None:
        """Checks in the commit log that this handle still owns the table. Writes nothing, and never takes ownership.

        Raises DeposedError when another process has taken the table over; the handle is then finished.
        """
        if self._opened.log is not None:
            self._opened.log.check_owner()

    def transaction(self, *, tidy: bool = True) -> Transaction:
        """Begins a transaction; two may be open at once, and commit in the order of their beginning.

        ``tidy=False``: the caller calls ``tidy`` itself, when nothing waits.
        Raises TransactionError for a third, DeposedError, TableOwnedError, UnsupportedTableError, ForeignWriterError.
        """
        log, definition = self._own()
        if tidy:
            self._tidy(log)
        if self._groups is None or self._parquet is None:
            self._groups = GroupIds(definition, self._store, lambda: self._snapshots.current().view)
            self._parquet = layout_of(definition)
        instant = log.begin()  # last: from here on the instant is open until something ends it
        epoch, process = log.state.epoch, self._opened.process
        writer = ChangeWriter(self._store, definition, epoch=epoch, process=process, ordinal=0, layout=self._parquet)
        form, before, after = self.settings.block_format, self._before_commit, self._after_commit
        return Transaction(self._store, log, definition, self._groups, writer, form, instant, before, after)

    def check_bulk_load(self, mode: LoadMode) -> None:
        """Raises TransactionError when the table does not fit the mode, and what ``transaction`` raises for a foreign table.

        Owns and writes nothing: a load looks again when it has the table.
        """
        log, definition = self._opened.writable()
        BulkLoad(mode, definition, self._store.url, lambda: self._snapshots.current().view).check(log.state.plans)

    def win_offsets(self, channels: Channels, forget: Sequence[str] = ()) -> None:
        """Makes channel records durable without rows, in a slot that derives no instant (rules RO5, CH4).

        ``channels``: records that changed; ``forget``: names to remove (rule CH5). Open transactions stay open.
        Raises as ``own``, and OutcomeUnknownError.
        """
        log, _ = self._own()
        log.win_offsets(channels, forget)

    def check_there(self) -> None:
        """Raises TableGoneError when the table's folder was moved or removed, or holds another table; one look at one file."""
        self._opened.check_there()

    def adopt(self, *, buckets: int | None = None, roll_back: bool = False, remove_metadata_table: bool = False) -> AdoptResult:
        """Takes over a table that another program made or has written to, so that this library can write it. That program must
        have stopped.

        ``buckets``: for a table that another program made, the number of its buckets a partition, which is checked against its
        rows. ``roll_back``: also rolls back what the other program began and never finished. ``remove_metadata_table``: drops the
        metadata table that it made, once and at the end; ``open_table(…, metadata_table="remove")`` does so before every write.
        Its open compactions become this table's own; its file groups stay. Does nothing if no other program has written. After
        an error, call it again.

        Raises ForeignWriterError for a write that another program has not finished, UnsupportedTableError for a feature that is
        not written here, MetadataTableError for a metadata table that stays, OptionError for buckets that do not
        fit, ClockError for a timeline that is ahead of the clock, TransactionError while one is open, and as ``own``.
        """
        opened = self._opened
        opened.check_damage()
        if opened.log is not None and opened.log.open_instants:
            raise TransactionError("a transaction is open", fix="Commit or roll it back first.")
        guard = self._guard.removing() if remove_metadata_table else self._guard.fresh()
        guard.check_table()
        if opened.log is None or opened.definition is None:
            log, definition = self._begin_log(buckets, roll_back=roll_back)
        else:
            log, definition = opened.log, opened.definition
        if buckets is not None and buckets != definition.buckets:
            raise OptionError(f"buckets={buckets}, but the table has {definition.buckets}", fix="Leave buckets=... out.")
        result = adopting.adopt(log, opened.system.clock, opened.layout, definition, roll_back=roll_back)
        opened.refresh()
        self._groups = self._parquet = None
        self._maintainer = Maintainer()
        if remove_metadata_table:
            log.fence()  # an adoption of nothing has not; only the owner writes properties
        guard.check(log.state, owner=log.owned)
        self._guard = self._guard.fresh()
        return result

    def change_version(self, table_version: int) -> VersionChange:
        """Brings the table to Hudi's version 8 or 9: readers and writers of the other one take it as before, no row changes, and
        open transactions stay open.

        Raises OptionError for another number, and for a table whose keys the version would write differently; and as ``own``.
        """
        version = TableVersion.of_number(table_version)
        before = versioning.change_version(self._context(), version)
        self._opened.reread_version()
        return VersionChange(before.value, version.value)

    def accept_future_times(self) -> str:
        """Lets the table continue above its own times when these are ahead of the clock, because a clock was wrong.

        New times follow the newest one, ms by ms, until real time has caught up, so that readers keep their order. Returns the
        time from which it continues, "" when none is ahead. Raises as ``own``, but no ClockError.
        """
        self._opened.check_damage()
        return self._opened.log.accept_future_times() if self._opened.log is not None else ""

    def repair(self) -> RepairResult:
        """Restores deleted timeline files from the slots that decided them, and removes those that were archived and have come
        back (hazard H8).

        Takes the table over as a write does. What no slot holds any more stays lost; ``verify`` names it. Raises as ``own``.
        """
        before = {instant.path for instant in list_instants(self._store)}
        log, _ = self._own()
        log.win_offsets({})
        put_back(log)
        there = {instant.path for instant in list_instants(self._store)}
        removed = take_away(self._store, self._opened.layout.history_folder, log.state)
        self._snapshots.forget()
        self._maintainer.forget()
        return RepairResult(sorted(there - before), removed)

    def _begin_log(self, buckets: int | None, *, roll_back: bool) -> tuple[CommitLog, Definition]:
        """Wins slot 0 of a table that another program made."""
        store, system, opened = self._store, self._opened.system, self._opened
        definition = foreign_table.define(store, system, opened.layout, opened.properties, buckets, roll_back=roll_back)
        probe(store, LOG_LAYOUT.probes, system)
        create_log(store, LOG_LAYOUT, system, definition.encode(), [])
        return opened.begin(definition), definition

    def _own(self, after_epoch: int = 0) -> tuple[CommitLog, Definition]:
        log, definition = self._opened.writable()
        left, since, before = (NOTHING_LEFT, "", ()) if log.owned else self._looked(log)
        if log.own(after_epoch=after_epoch):
            self._groups = None
            self._sweeper.took_over()
            self._snapshots.stop_keeping()
            self._maintainer.took_over(largest_at(log.state.n, left, log.unfolded))
            self._left = put_back_lost(log, before, since).writes()[-1:]
        if redefined := self._opened.refresh():
            self._groups = self._parquet = None
        if redefined or self._snapshots.lacks(log.state.commits):
            self._snapshots.forget()
            self._maintainer.forget()
        return log, self._opened.definition or definition

    def _looked(self, log: CommitLog) -> tuple[LeftRecord, str, Sequence[Instant]]:
        """Before a fence: what the owner before has left, the instant from which on the timeline is listed, and what it has."""
        if not self._opened.has_properties():
            return NOTHING_LEFT, "", ()  # slot 0 alone: nobody has written yet
        left = read_left(self._store)
        self._guard.begin(since := left.checked_at(log.state.n, self._opened.system.clock.now_ms()))
        return left, since, self._guard.check(log.state, owner=False)

    def _context(self) -> TableContext:
        log, definition = self._own()
        opened, stage = self._opened, self._opened.stage(log)
        clock, check = opened.system.clock, lambda: self._before_commit(False)
        return TableContext(opened.store, log, definition, opened.layout, opened.snapshots, clock, stage, check)

    def _unowned(self) -> UnownedTable:
        opened = self._opened
        lost = LostFiles(opened.store, opened.layout.history_folder)
        return UnownedTable(opened.writable()[1], lambda: self._snapshots.current().view, lost)

    def _restored(self) -> None:
        self._groups = None

    def _tidy(self, log: CommitLog, *, beside: bool = False) -> None:
        """Called before a transaction, not after one: an error here must not look like a commit that failed."""
        retire_after_ms = round(self.settings.retire_after * 1000)
        swept = self._sweeper.sweep(log, forget_after_ms=retire_after_ms, beside=beside)
        if swept and log.fold_is_due():
            log.fold()
            log.truncate(retire_after_ms)

    def _before_commit(self, announcing: bool) -> Collection[str]:
        log = self._opened.log
        return {instant.path for instant in self._guard.check(log.state, announcing=announcing)} if log is not None else ()

    def _after_commit(self, transaction: Transaction, completion: str) -> None:
        """Adds the commit to the view without listing, unless it took something out."""
        self._guard.note_commit()
        if transaction.overwrites:
            with contextlib.suppress(DeposedError):  # the commit stands, also when another owner has the table by now
                self._own()  # which finds out that the definition has changed
            return
        names: dict[str, dict[str, int]] = {}
        for status in transaction.statuses:
            names.setdefault(status.stat.partition, {})[status.stat.name] = status.stat.size
        self._snapshots.add_completed(transaction.instant, completion, names)
        self._maintainer.committed(names)
