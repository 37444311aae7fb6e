"""A table handle: open or create, read, write, look inside."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.first_slot import create_log
from headgate_tables.commitlog.publish import DataFile, data_files, given_up
from headgate_tables.commitlog.state import Holder
from headgate_tables.errors import (
    CorruptFileError,
    NotATableError,
    OptionError,
    TransactionError,
    UnsupportedTableError,
)
from headgate_tables.hudi.data_files import layout_of
from headgate_tables.hudi.definition import Definition, Layout, avro_schema
from headgate_tables.hudi.flush import Flusher
from headgate_tables.hudi.groups import GroupIds
from headgate_tables.hudi.guard import Guard, check_features, check_there
from headgate_tables.hudi.log.parquet_rows import ParquetLayout
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.lost_instants import LostInstants, absent, put_back
from headgate_tables.hudi.partition_file import is_usable
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse
from headgate_tables.hudi.reading import TableReader
from headgate_tables.hudi.results import CommitResult, Repaired
from headgate_tables.hudi.returned_instants import take_away
from headgate_tables.hudi.services.foreign import adopting
from headgate_tables.hudi.services.foreign import table as foreign_table
from headgate_tables.hudi.services.maintaining import Maintainer
from headgate_tables.hudi.services.owned import Owned
from headgate_tables.hudi.services.results import AdoptResult
from headgate_tables.hudi.services.settings import TableSettings
from headgate_tables.hudi.services.table_services import TableServices
from headgate_tables.hudi.snapshot import Snapshots
from headgate_tables.hudi.sweep import drop_revoked_stages, sweep
from headgate_tables.hudi.timeline.active import list_instants, read_timeline
from headgate_tables.hudi.timeline.instant import Instant
from headgate_tables.hudi.transaction import Transaction
from headgate_tables.storage.open import open_store
from headgate_tables.storage.probe import probe
from headgate_tables.storage.store import Store
from headgate_tables.system import System

MetadataTable = Literal["refuse", "remove"]


def open_table(
    url: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    take_over: bool = False,
    metadata_table: MetadataTable = "refuse",
    system: System | None = None,
    holder: Holder | None = None,
    wrap_store: Callable[[Store], Store] | None = None,
) -> "Table":
    """Opens a table. Nothing is written before the first upsert, delete or transaction.

    ``take_over``: write even when a cluster holds the table. ``metadata_table``: what to do when a Spark job has made one,
    which would not see our files: ``refuse`` to write, or ``remove`` it before the next commit.
    ``holder``: who this handle is to others, default a library process; a cluster gives ``Holder("cluster", host, pid,
    address)`` and then takes tables from other clusters freely, from which the library keeps away. ``wrap_store``: everything
    goes through the store that it returns.

    Raises NotATableError, UnsupportedTableError, CorruptFileError.
    """
    system = system or System.real()
    store = open_store(url, storage_options, system.ids, anchor=LOG_LAYOUT.root)
    store = wrap_store(store) if wrap_store else store
    return Table(store, system, take_over=take_over, metadata_table=metadata_table, holder=holder)


class Table(TableReader, TableServices):
    """One Hudi table. Not for use by several threads at once; several handles and processes may read while one writes."""

    def __init__(
        self, store: Store, system: System, *, take_over: bool, metadata_table: MetadataTable, holder: Holder | None = None
    ) -> None:
        self._store = store
        self._system = system
        self._holder = holder or Holder("library", system.host, system.pid)
        self._take_over = take_over
        self._guard = Guard(store, metadata_table)
        self._ours = store.size(LOG_LAYOUT.slot_path(0)) is not None
        self._log, self._damage = self._load_log() if self._ours else (None, None)
        self._properties = self._read_properties()
        self._layout = Layout.from_properties(self._properties, f"{store.url}/{PROPERTIES_PATH}")
        self._definition = Definition.decode(self._log.state.config) if self._log else None
        if self._definition:
            self._definition.check_layout(self._layout, f"{store.url}/{PROPERTIES_PATH}")
        schema = self._definition.schema if self._definition else None
        self._snapshots = self._new_snapshots(schema)
        self._groups: GroupIds | None = None
        self._parquet: ParquetLayout | None = None
        self._took_over = False
        self._maintainer = Maintainer()

    @property
    def definition(self) -> Definition | None:
        """Keys, partitions, ordering and buckets of a table of ours; None for one that another program made."""
        return self._definition

    @property
    def schema(self) -> pa.Schema:
        """The columns that rows are written with, without Hudi's meta columns. A scan shows those, too, that another program has
        added to a table of ours and that are not adopted.
        """
        return self._definition.schema if self._definition else self._snapshots.current().schema

    @property
    def epoch(self) -> int:
        """Number of the newest ownership that this handle knows of, its own if it owns the table; 0 before any."""
        return self._log.state.epoch if self._log else 0

    @property
    def stages(self) -> bool:
        """Whether it lies in a folder of this machine (see ``Store.stages``)."""
        return self._store.stages

    @property
    def settings(self) -> TableSettings:
        return TableSettings.of(self._log.state.settings) if self._log else TableSettings()

    @property
    def savepoints(self) -> Sequence[str]:
        """Instants that ``restore`` can go back to, oldest first."""
        return sorted(self._log.state.savepoints) if self._log else sorted(read_timeline(self._store).savepoints)

    @property
    def channels(self) -> Mapping[str, Sequence[Any]]:
        """Channel records as slots have them: name to [incarnation, committed offset, principal, time] (rules CH4, CH5)."""
        return self._log.state.channels if self._log else {}

    @property
    def restored(self) -> str:
        """The newest restore's instant, "" before any: only when it changes do channel offsets go back (rule CH8)."""
        return self._log.state.restored if self._log else ""

    def upsert(self, data: Any) -> CommitResult:
        """Inserts rows, or replaces those of the same key, in one commit; durable and visible when this returns.

        ``data``: anything with ``__arrow_c_stream__`` (pyarrow, polars, pandas, duckdb), with all of the table's columns.
        Raises a FixCall for bad rows (nothing of the call is written), RetryLater, ReopenTable or OperatorNeeded.
        """
        return self._one_call(lambda transaction: transaction.upsert(data))

    def delete(self, keys: Any) -> CommitResult:
        """Deletes rows by key, in one commit. ``keys``: the record key, partition and ordering columns.

        A delete obeys event time: it removes a row whose ordering value is not larger than its own.
        """
        return self._one_call(lambda transaction: transaction.delete(keys))

    def own(self) -> int:
        """Fences unless this handle owns the table, puts in place what slots decided (rule T6), and returns the epoch.

        Lists no data folder; what dead instants left is for ``tidy``. Raises DeposedError, TableOwnedError,
        UnsupportedTableError, ForeignWriterError, ClockError.
        """
        return self._own()[0].state.epoch

    def check_owner(self) -> None:
        """Asks the commit log whether the table is still this handle's. Writes nothing, and owns nothing that was not owned.

        Raises DeposedError when another process has taken it over; the handle is finished then.
        """
        if self._log is not None:
            self._log.check_owner()

    def transaction(self, *, tidy: bool = True) -> Transaction:
        """Begins a transaction; two may be open at once, and they commit in the order of their beginning.

        ``tidy=False``: leaves tidying to the caller, who calls ``tidy`` when nothing waits.
        Raises TransactionError for a third, DeposedError, TableOwnedError, UnsupportedTableError, ForeignWriterError.
        """
        log, definition = self._own()
        if tidy:
            self._tidy(log)
        if self._groups is None or self._parquet is None:
            self._groups = GroupIds(definition, self._store, lambda: self._snapshots.current().view)
            self._parquet = layout_of(definition)
        schema = avro_schema(definition, meta_columns=False)
        instant = log.begin()  # last: an instant that is given out is open until somebody ends it
        flusher = Flusher(self._store, definition, self._parquet, instant, self._stage(log))
        return Transaction(
            self._store, log, definition, self._groups, flusher, instant, self._before_commit, self._after_commit, schema
        )

    def adopt(self, *, buckets: int | None = None, roll_back: bool = False) -> AdoptResult:
        """Makes a table that another program made, or has written since, this library's to write. That program must have stopped.

        ``buckets``: of a table that another program made, the number of its buckets a partition, which is checked against its
        rows. ``roll_back``: also takes back what the other program began and never finished. Its open compactions become this
        table's own. Its file groups stay. Nothing happens on a table that nobody else has written; after an error, call it again.

        Raises ForeignWriterError for a write that another program has not finished, UnsupportedTableError for a feature that is
        not written here, MetadataTableError unless opened with ``metadata_table="remove"``, OptionError for buckets that do not
        fit, ClockError for a timeline that is ahead of the clock, TransactionError while one is open, and as ``own``.
        """
        if self._damage is not None:
            raise self._damage
        if self._log is not None and self._log.open_instants:
            raise TransactionError("a transaction is open", fix="Commit or roll it back first.")
        self._guard.check_table()
        if self._log is None or self._definition is None:
            log, definition = self._begin_log(buckets, roll_back=roll_back)
        else:
            log, definition = self._log, self._definition
        if buckets is not None and buckets != definition.buckets:
            raise OptionError(f"buckets={buckets}, but the table has {definition.buckets}", fix="Leave buckets=... out.")
        result = adopting.adopt(log, self._system.clock, self._layout, definition, roll_back=roll_back)
        self._definition = Definition.decode(log.state.config)
        self._snapshots = self._new_snapshots(self._definition.schema)
        self._groups = self._parquet = None
        self._maintainer = Maintainer()
        self._guard = self._guard.fresh()
        self._guard.check(log.state, owner=log.owned)
        return result

    def accept_future_times(self) -> str:
        """Lets the table go on though its times are ahead of the clock: a clock was wrong when they were issued.

        New times follow the newest one, ms by ms, until real time has caught up, so that readers keep their order. Returns the
        time from which it goes on, "" when none is ahead. Raises as ``own``, but no ClockError.
        """
        if self._damage is not None:
            raise self._damage
        return self._log.accept_future_times() if self._log is not None else ""

    def _begin_log(self, buckets: int | None, *, roll_back: bool) -> tuple[CommitLog, Definition]:
        """Slot 0 of a table that another program made."""
        definition = foreign_table.define(self._store, self._system, self._layout, self._properties, buckets, roll_back=roll_back)
        probe(self._store, LOG_LAYOUT.probes, self._system.ids)
        create_log(self._store, LOG_LAYOUT, self._system, definition.encode(), [])
        self._log, self._damage = self._load_log()
        if self._log is None:
            raise self._damage or CorruptFileError("slot 0 is gone", fix="Adopt the table again.")
        self._definition = definition
        return self._log, definition

    def win_offsets(self, channels: Mapping[str, Sequence[Any]], forget: Sequence[str] = ()) -> None:
        """Makes channel records durable without rows, in a slot that derives no instant (rules RO5, CH4).

        ``channels``: name to [incarnation, committed offset, principal, time], those that changed; ``forget``: names that go
        (rule CH5). Open transactions stay open. Raises as ``own``, and OutcomeUnknownError.
        """
        log, _ = self._own()
        if not self._store.stages:
            check_there(self._store)  # an object store takes a slot at a place from which everything else was moved away
        log.win_offsets(channels, forget)

    def check_there(self) -> None:
        """Raises TableGoneError when the table's folder was moved or removed; one look at one file."""
        check_there(self._store)

    def bury_dead(self) -> bool:
        """Makes rolled-back instants that others have seen dead in a slot now (rule RO4). Lists nothing; False: there are none.

        Any other slot does it too, ``tidy``'s among them.
        """
        return self._own()[0].bury_given_up()

    def tidy(self) -> None:
        """Sweeps what dead instants left and folds the log, each if it is due; open transactions are not touched.

        Belongs between checkpoints: a sweep lists the timeline, and on an object store the data folders. Raises as ``own``.
        """
        self._tidy(self._own()[0])

    def repair(self) -> Repaired:
        """Puts files of the timeline back that somebody has deleted, from the slots that decided them, and removes those that
        were archived and have come back (hazard H8).

        Takes the table over as a write does. What no slot says any more stays lost, and ``verify`` names it. Raises as ``own``.
        """
        before = {instant.path for instant in list_instants(self._store)}
        log, _ = self._own()
        log.win_offsets({})
        put_back(log)
        there = {instant.path for instant in list_instants(self._store)}
        removed = take_away(self._store, self._layout.history_folder, log.state)
        self._snapshots.forget()
        self._maintainer.forget()
        return Repaired(sorted(there - before), removed)

    def close(self) -> None:
        """Ends writing through the handle; open transactions lapse. Nothing that was committed depends on this."""
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _one_call(self, work: Any) -> CommitResult:
        with self.transaction() as transaction:
            work(transaction)
            return transaction.commit()

    def _new_snapshots(self, schema: pa.Schema | None) -> Snapshots:
        lost = LostInstants(self._store, self._layout.history_folder, self._log)
        return Snapshots(self._store, self._layout, schema, self._decided_files, self._is_ours, lost.checked)

    def _load_log(self) -> tuple[CommitLog | None, CorruptFileError | None]:
        """Readers need no slot: a damaged one keeps from writing only."""
        self._process_id = self._system.ids.token()
        try:
            log = CommitLog(self._store, LOG_LAYOUT, self._system, self._holder, take_over=self._take_over, usable=is_usable)
            return log, None
        except CorruptFileError as error:
            return None, error

    def _read_properties(self) -> dict[str, str]:
        """Derived from slot 0 while a crash right after it has left no file; the first write puts it there."""
        try:
            data = self._store.get(PROPERTIES_PATH).to_pybytes()
        except FileNotFoundError as error:
            if self._damage is not None:
                raise self._damage from error
            if self._log is None:
                raise NotATableError(
                    f"{self._store.url} holds no Hudi table ({PROPERTIES_PATH} is missing)",
                    fix="Check the place, or make a table there with create_table.",
                ) from error
            return Definition.decode(self._log.state.config).properties()
        return parse(data, f"{self._store.url}/{PROPERTIES_PATH}")

    def _own(self) -> tuple[CommitLog, Definition]:
        if self._damage is not None:
            raise self._damage
        if self._log is None or self._definition is None:
            check_features(self._properties)
            raise UnsupportedTableError(
                f"{self._store.url} was not made by this library, so nothing says how its rows are spread over buckets",
                fix="Read it here; to write it, stop the program that made it and call adopt(buckets=...).",
            )
        if not self._log.owned and self._store.size(PROPERTIES_PATH) is not None:
            self._guard.check(self._log.state, owner=False)
        if self._log.own():
            self._groups = None
            self._took_over = True
            self._snapshots.let_go()
            self._maintainer.forget()
            if absent(self._log.state, (), read_timeline(self._store)):
                put_back(self._log)
        return self._log, self._definition

    def _owned(self) -> Owned:
        log, definition = self._own()
        return Owned(
            self._store,
            log,
            definition,
            self._layout,
            self._snapshots,
            self._system.clock,
            self._stage(log),
            lambda: self._before_commit(False),
        )

    def _restored(self) -> None:
        self._groups = None

    def _stage(self, log: CommitLog) -> str:
        return LOG_LAYOUT.stage_folder(log.state.epoch, self._process_id) if self._store.stages else ""

    def _tidy(self, log: CommitLog) -> None:
        """Before a transaction, not after one: what fails here must not look like a commit that failed."""
        retire_after_ms = round(TableSettings.of(log.state.settings).retire_after * 1000)
        if self._took_over:
            self._took_over = False
            sweep(self._store, log, forget_after_ms=retire_after_ms, takeover=True)
            drop_revoked_stages(self._store, log)
        if log.fold_is_due() or log.dead_names.sweep_is_due:
            sweep(self._store, log, forget_after_ms=retire_after_ms)
        if log.fold_is_due():
            log.fold()
            log.truncate(retire_after_ms)

    def _decided_files(self) -> Iterator[DataFile]:
        """What slots behind the newest fold say; they are in memory anyway."""
        slots = self._log.unfolded if self._log else ()
        dead = given_up(slots)
        for slot in slots:
            yield from (file for file in data_files(slot) if file.path not in dead)

    def _is_ours(self, write: Instant) -> bool:
        """Whether a slot that this handle knows of decided it."""
        return self._log is not None and self._log.state.decided(write.time, write.action, write.completion)

    def _before_commit(self, announcing: bool) -> None:
        if self._log is not None:
            self._guard.check(self._log.state, announcing=announcing)

    def _after_commit(self, transaction: Transaction, completion: str) -> None:
        """Takes the commit into the view without listing."""
        names: dict[str, dict[str, int]] = {}
        for status in transaction.statuses:
            names.setdefault(status.stat.partition, {})[status.stat.name] = status.stat.size
        self._snapshots.take_in(transaction.instant, completion, names)
        self._maintainer.committed(names)
        self._guard.settle()
