"""What ends a name of the store's tables: drops, grace times that are over, and other names. Calls block."""

from collections.abc import Mapping

import structlog

from headgate_coordinator.tables.described import InGrace
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_tables.catalog import Catalog, FormerTable
from headgate_tables.errors import NotATableError, TableDroppedError, UnsupportedTableError
from headgate_tables.face.log import DropRecord, format_time
from headgate_tables.face.owner import Table
from headgate_tables.face.results import DropResult
from headgate_tables.opening import finish_drop
from headgate_tables.system import System

EPOCHS_AFTER = 1_000
"""Between the creation of a renamed table's new entry and the end of its old one, coordinators that have read the old one may own
the table again, an epoch each time. A later table of the old name begins above these, too (rule D11)."""

_log = structlog.get_logger()


class Endings:
    """Of the tables of one catalog. Every method raises TablesError."""

    def __init__(self, catalog: Catalog, options: Mapping[str, str], system: System, guard: GuardedClock) -> None:
        self._catalog = catalog
        self._options = options
        self._system = system
        self._guard = guard

    def drop(self, name: str, table: Table, by: str, grace_ms: int = 0) -> DropResult:
        """Drops a table, from its owner's handle or one that may own it, and its entry (rule D5). Blocks until all is deleted;
        with ``grace_ms`` nothing is (rule D9).

        After an error the table may be dropped already; the next one to open it goes on.
        """
        place = self._catalog.entry(name).place
        done = table.drop(by, grace_ms=grace_ms)
        if not done.until:
            self._forget(place, done)
        return done

    def is_over(self, found: InGrace) -> bool:
        """Whether a grace time is over by a clock that is trusted (rule D9)."""
        return self._guard.status().fit_to_delete and self._guard.now_ms() >= found.grace.until

    def end_grace(self, found: InGrace, table: Table) -> None:
        """Deletes a table whose grace time is over. Raises TableDroppedError when it has; somebody may have brought it back."""
        place = self._catalog.entry(found.name).place
        if (done := table.drop_expired(self._guard.now_ms())) is not None:
            self._forget(place, done)
            _log.info("the grace time of a dropped table is over: it is deleted", table=found.name, files=done.files)
            raise TableDroppedError(f"the table was {found.grace.describe()}", fix="Create a new one of this name.")

    def finish_drop(self, name: str) -> None:
        """Deletes what is left of a dropped table. Does nothing when nothing is left. Raises TablesError: some is left, still."""
        try:
            entry = self._catalog.entry(name)
        except NotATableError:
            return
        done = finish_drop(entry.url, storage_options=self._options, system=self._system)
        if done is not None:
            self._forget(entry.place, done)
            _log.info("a dropped table is deleted", table=name, dropped=done.time, by=done.by, left=done.left_count)

    def ended(self, name: str, uuid: str) -> FormerTable | None:
        """How this table's name ended, when no later table's has: its files are deleted, or it has another name. Else None."""
        former = self._catalog.former(name)
        return former if former is not None and former.table == uuid else None

    def check_rename(self, name: str, to: str) -> None:
        """Raises TableExistsError when ``to`` stands for another table, and as ``Catalog.rename`` does."""
        self._catalog.check_new_name(name, to)

    def rename(self, name: str, table: Table, to: str, by: str) -> None:
        """Gives a table another name, from its owner's handle (rule D11). Raises OptionError, TableExistsError.

        After another error it may be renamed; then the next one to open it by the new name goes on.
        """
        table.check_owner()
        if table.definition is None:
            raise UnsupportedTableError("the table was not made by this library", fix="Adopt it first: `headgate table adopt`.")
        now = DropRecord(format_time(self._guard.now_ms()), by)
        self._catalog.rename(name, FormerTable(str(table.definition.table_uuid), table.epoch + EPOCHS_AFTER, now, to))

    def _forget(self, place: str, done: DropResult) -> None:
        self._catalog.forget(place, FormerTable(done.table, done.epoch, DropRecord(done.time, done.by)))
