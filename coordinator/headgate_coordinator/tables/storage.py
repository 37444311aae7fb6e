"""The tables of the cluster's store: list, create, describe, open as owner. Calls block, so they run on threads."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

import structlog

from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.tables.described import DescribedTable, InGrace, Listed, NewTable
from headgate_coordinator.tables.endings import Endings
from headgate_coordinator.tables.grace import NamedInGraceError, check_grace
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.idle_channels import forget_idle_channels
from headgate_coordinator.tables.work import RunService
from headgate_runtime.world import World
from headgate_tables.catalog import Catalog, check_name
from headgate_tables.errors import (
    NotATableError,
    StoreUnavailableError,
    TableDroppedError,
    TableGoneError,
    TableRenamedError,
    TablesError,
    UnsupportedTableError,
)
from headgate_tables.face.definition import Definition
from headgate_tables.face.log import OwnerProcess
from headgate_tables.face.owner import Table
from headgate_tables.opening import DEFAULT_TABLE_VERSION, create_table, open_table
from headgate_tables.system import System

DEFAULT_BUCKETS = 8
DESCRIBED_S = 10.0
"""Seconds until new columns, by another coordinator's alteration or adoption, are noticed here. Lower: more reads for new
clients."""

_T = TypeVar("_T")
_log = structlog.get_logger()


class _Kept(NamedTuple):
    """``place``: of the table's entry; another table of the name has another one (rule D8). ``until``: monotonic seconds."""

    place: str
    until: float
    table: DescribedTable


class TableStorage:
    """Every method raises TablesError. Definitions are kept for DESCRIBED_S: adoptions and overwrites are rare.

    ``endings``: of the tables' names. ``made``: names of tables that were made here; who sees that one is owned takes it out.
    """

    def __init__(self, settings: CoordinatorSettings, world: World, system: System, guard: GuardedClock) -> None:
        self._options = settings.storage_options
        self._retention_ms = round(settings.channel_retention * 1000)
        self._world = world
        self._guard = guard
        self._system = replace(system, clock=guard)
        self._catalog = Catalog(settings.store, self._options, self._system)
        self.endings = Endings(self._catalog, self._options, self._system, guard)
        self.made: set[str] = set()
        self._kept: dict[str, _Kept] = {}

    def table_names(self) -> list[str]:
        """Returns the names of all tables, sorted."""
        return sorted(self._places())

    def _places(self) -> Mapping[str, str]:
        """Where the entry of each table lies now, by name; costs a listing."""
        places = self._catalog.places()
        for gone in self._kept.keys() - places:
            self._kept.pop(gone, None)
        return places

    def creator(self, name: str) -> str:
        """Returns the principal that made the table; empty: it is not known. Costs a read."""
        return self._catalog.entry(name).creator

    def test_store(self) -> None:
        """Tests that tables can be created. Raises UnsafeStoreError if none ever can."""
        self._catalog.test_store()

    def describe(self, name: str, table_uuid: str = "") -> DescribedTable:
        """Returns one table. ``table_uuid``: of the table that the caller means, if it is known: when another has its name now,
        or none has, the error says what became of it, as far as the catalog knows.

        Raises NotATableError for a name without an entry, TableGoneError for an entry without its table, TableDroppedError,
        TableRenamedError.

        Costs a read also when the table is kept: another coordinator may have dropped it, and made another one of its name.
        """
        try:
            described = self._described(name, self._catalog.entry(name).place)
        except NotATableError:
            self._catalog.check_present(name, table_uuid)
            raise
        if table_uuid not in ("", str(described.definition.table_uuid)):
            self._catalog.check_present(name, table_uuid)
        return described

    def _described(self, name: str, place: str) -> DescribedTable:
        """As ``describe``, for a table whose entry lies in this place."""
        kept = self._kept.get(name)
        if kept is not None and kept.place == place and kept.until >= self._world.clock.monotonic():
            return kept.table
        table, place = self._open_listed(name)
        return self._keep(table, name, place)

    def list(self) -> Listed:
        """Returns all tables by name. Of those that cannot be described now, the folder is gone, say. One whose files are being
        deleted is in no list.
        """
        described: list[DescribedTable] = []
        unreadable: list[str] = []
        in_grace: list[InGrace] = []
        for name, place in sorted(self._places().items()):
            try:
                described.append(self._described(name, place))
            except NamedInGraceError as error:
                in_grace.append(error.found)
            except (TableDroppedError, TableRenamedError):
                continue
            except TablesError as error:
                _log.warning("a table cannot be described", table=name, error=str(error))
                unreadable.append(name)
        return Listed(described, unreadable, in_grace)

    def create(self, wanted: NewTable) -> DescribedTable:
        """Creates the table, then its entry. Completes a table without an entry: an earlier creation stopped between the two.

        Raises TableGoneError for an entry without its table, which may come back with all its rows; TableDroppedError while the
        files of one of this name are still being deleted. Raises TableExistsError, SchemaError, OptionError and others of
        ``create_table``.
        """
        check_name(wanted.name)
        listed = wanted.name in self._catalog.names()
        name = wanted.name
        if listed:
            there, place = self._open_to_complete(wanted.name)
            url, name = there.url, there.definition.name if there.definition is not None else name  # of its making (rule D11)
        else:
            place = self._catalog.place_of_new(wanted.name)
            url = self._url_of_new(place)
        before = self._catalog.former(wanted.name)
        table = create_table(
            url,
            wanted.schema,
            buckets=wanted.buckets or DEFAULT_BUCKETS,
            record_key=wanted.record_key,
            partition_by=wanted.partition_by,
            ordering=wanted.ordering,
            name=name,
            hive_style=wanted.hive_style,
            table_version=wanted.table_version or DEFAULT_TABLE_VERSION,
            exist_ok=wanted.exist_ok or not listed,
            after_epoch=before.epoch if before is not None else 0,
            storage_options=self._options,
            system=self._system,
        )
        if not listed:
            self.made.add(wanted.name)  # before a listing shows it: served by then, it would be taken for another of its name
            try:
                self._catalog.add(wanted.name, place, wanted.creator)
            except BaseException:
                self.made.discard(wanted.name)
                raise
        return self._keep(table, wanted.name, place)

    def open_owned(
        self, name: str, address: str, adoption: RunService | None = None, *, after_epoch: int = 0
    ) -> tuple[Table, Definition]:
        """Opens and fences the table. ``address``: where programs that find the table owned can connect.

        ``adoption``: a request to run before the table is owned. ``after_epoch``: see ``Table.own``. Raises TableRenamedError for
        a table with another name now, TableDroppedError for one that was dropped, after all that is left of it is deleted.
        """
        try:
            if adoption is not None:
                self._adopt(name, address, adoption)
            table, place = self._open_listed(name, address)
        except NamedInGraceError as error:
            self._end_grace(error.found, address)
            raise
        except TableDroppedError:
            self.endings.finish_drop(name)
            raise
        described = self._keep(table, name, place)
        table.own(after_epoch=after_epoch)
        check_grace(table, name)  # the owner before may have dropped it since it was opened
        described = self._keep(table, name, place)  # the owner before may have changed its file groups since it was opened
        if self._guard.status().witnessed:  # an unwitnessed clock may be far ahead, and forget every channel
            forget_idle_channels(table, self._guard.now_ms() - self._retention_ms)
        return table, described.definition

    def note_change(self, name: str) -> None:
        """The table's owner has changed its definition or its version: the next ``describe`` reads it again."""
        self._kept.pop(name, None)

    def read(self, name: str, call: Callable[[Table], _T]) -> _T:
        """Returns the result of ``call`` on a handle of its own. Raises as ``describe``, and what ``call`` raises."""
        with self._open_listed(name)[0] as table:
            return call(table)

    def _end_grace(self, found: InGrace, address: str) -> None:
        """Raises TableDroppedError when it has deleted the table."""
        if self.endings.is_over(found):
            with self._open_listed(found.name, address, in_grace=True)[0] as table:
                self.endings.end_grace(found, table)

    def adopt_new(self, name: str, address: str, call: Callable[[Table], _T]) -> _T:
        """Adopts a table under the store's root that has no entry: runs ``call`` on it, then adds its entry.

        Returns the result of ``call``. Raises OptionError for the folder of a table that has another name now, on which the
        caller may have no right; NotATableError, and what ``call`` raises.
        """
        check_name(name)
        self._catalog.check_unused(name)
        with self._open(self._url_of_new(name), address) as table:
            adopted = call(table)
        self._catalog.add(name, name)
        return adopted

    def _adopt(self, name: str, address: str, adoption: RunService) -> None:
        try:
            table, _ = self._open_listed(name, address, in_grace=True)
        except BaseException as error:  # whatever it is: the caller waits for an answer
            adoption.failed(error)
            raise
        with table:
            adoption.run(table)

    def _open_to_complete(self, name: str) -> tuple[Table, str]:
        """As ``_open_listed``; a table that is being deleted is no table to complete, and the error says so."""
        try:
            return self._open_listed(name)
        except NamedInGraceError:
            raise
        except TableDroppedError as error:
            raise TableDroppedError(f"{error.message}, and its files are still being deleted", fix=error.fix) from error

    def why_gone(self, name: str) -> TableGoneError | NotATableError | StoreUnavailableError | None:
        """Returns the error if the table's folder or entry is gone, if it is dropped, or the store is away. Else None."""
        try:
            self._open_listed(name)
        except (TableGoneError, NotATableError, StoreUnavailableError) as error:
            return error
        except TablesError:
            return None
        return None

    def _open_listed(self, name: str, address: str = "", *, in_grace: bool = False) -> tuple[Table, str]:
        """Opens a table with an entry, and returns the entry's place, too. ``address``: where the handle's owner can be reached;
        without it the table is only read, and a renaming that broke off stays as it is (rule D11). ``in_grace``: also one that is
        dropped and can be brought back.

        Raises TableGoneError, TableDroppedError, TableRenamedError.
        """
        place, url, _ = self._catalog.settle(name) if address else self._catalog.entry(name)
        try:
            table = self._open(url, address, name)
        except TableDroppedError:
            raise
        except NotATableError as error:
            raise TableGoneError(
                f"{url} holds no table any more",
                fix="Move the table's folder back, or mount its disk; then the table goes on by itself. To forget the table for "
                f"good, delete {self._catalog.entry_url(place)}.",
            ) from error
        if not in_grace:
            check_grace(table, name)
        return table, place

    def _open(self, url: str, address: str, name: str = "") -> Table:
        owner = OwnerProcess("cluster", self._system.host, self._system.pid, address) if address else None
        return open_table(url, storage_options=self._options, system=self._system, owner=owner, name=name)

    def _keep(self, table: Table, name: str, place: str) -> DescribedTable:
        """Describes the table, and keeps that for DESCRIBED_S."""
        if table.definition is None:
            raise UnsupportedTableError(
                f"{table.url} has an entry, but was not made by this library",
                fix="Stop the program that made it and run `headgate table adopt`, or remove the entry.",
            )
        described = DescribedTable(name, table.url, table.definition, table.format_version, table.settings.evolve)
        self._kept[name] = _Kept(place, self._world.clock.monotonic() + DESCRIBED_S, described)
        return described

    def _url_of_new(self, place: str) -> str:
        return f"{self._catalog.url}/{place}"  # places need no URL encoding (``check_name``)
