"""A table as a handle has opened it: commit log, properties, definition, and the snapshots made of it."""

from collections.abc import Iterator

import pyarrow as pa

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.first_slot import lost_first_slot
from headgate_tables.commitlog.publish import given_up
from headgate_tables.commitlog.records import DataFile, OwnerProcess
from headgate_tables.commitlog.same_table import SameTable
from headgate_tables.commitlog.tombstone import dropped_error, read_tombstone
from headgate_tables.errors import CorruptFileError, NotATableError, UnsupportedTableError
from headgate_tables.hudi.definition import Definition, Layout
from headgate_tables.hudi.guard import check_features
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.lost_instants import LostInstants
from headgate_tables.hudi.partition_file import is_usable
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse
from headgate_tables.hudi.snapshot import Snapshots
from headgate_tables.hudi.table_properties import TIMEZONE_KEY, properties_of
from headgate_tables.hudi.timeline.instant import Instant
from headgate_tables.storage.store import Store
from headgate_tables.storage.workers import both
from headgate_tables.system import System


class Opened:
    """Reads and never writes. ``log`` and ``definition`` are None for a table that another program made, until it is adopted.

    ``damage``: why a table of ours has no log here; readers need no slot, so damaged slots only keep it from being written.
    A table that was dropped cannot be opened, also while its files are still being deleted (rule D5).
    """

    def __init__(self, store: Store, system: System, owner: OwnerProcess | None, *, take_over: bool, called: str = "") -> None:
        """``called``: the table's name for its caller. Raises NotATableError, TableDroppedError, UnsupportedTableError,
        CorruptFileError.
        """
        self.store = store
        self.called = called
        self.system = system
        self._owner = owner or OwnerProcess("library", system.host, system.pid)
        self._take_over = take_over
        self.process = ""
        (self.log, self.damage), properties = both(store, self._find_log, self._get_properties)
        self._had_properties = properties is not None
        where = f"{store.url}/{PROPERTIES_PATH}"
        self.properties, self.layout = self._read_layout(where, properties)
        self.definition: Definition | None = None
        self._config: object = None
        if self.log is not None:
            self._config = self.log.state.config
            self.definition = Definition.decode(self.log.state.config)
            self.definition.check_layout(self.layout, where)
        self.snapshots = self._new_snapshots()

    @property
    def schema(self) -> pa.Schema:
        """Without Hudi's meta columns; of a table that another program made, the columns of its newest commit."""
        return self.definition.schema if self.definition else self.snapshots.current().schema

    @property
    def is_utc(self) -> bool:
        """Whether the times of the timeline are in UTC, as those of every table of ours are."""
        return self.log is not None or self.properties.get(TIMEZONE_KEY, "LOCAL").upper() == "UTC"

    def has_properties(self) -> bool:
        """Whether the table has a file of them. Raises RetryLater."""
        return self._had_properties or self.store.size(PROPERTIES_PATH) is not None

    def _find_log(self) -> tuple[CommitLog | None, CorruptFileError | None]:
        """As ``_load_log``, also for a table that another program made. Raises TableDroppedError: of a dropped table the log is
        deleted last, so that one without a log, or with a part of one, may have a tombstone.
        """
        self._same = SameTable(self.store, LOG_LAYOUT)
        log, damage = self._load_log() if self._same.is_known else (None, lost_first_slot(self.store, LOG_LAYOUT))
        if log is not None:
            drop = log.state.dropped
        else:
            drop = found.drop if (found := read_tombstone(self.store, LOG_LAYOUT)) is not None else None
        if drop is not None:
            raise dropped_error(drop)
        return log, damage

    def check_there(self) -> None:
        """Raises TableGoneError when the table's folder was moved or removed, or holds another table; TableDroppedError."""
        self._same.check()

    def check_damage(self) -> None:
        """Raises CorruptFileError when slots are damaged."""
        if self.damage is not None:
            raise self.damage

    def writable(self) -> tuple[CommitLog, Definition]:
        """The log and the definition. Raises CorruptFileError, UnsupportedTableError for a table that another program made."""
        self.check_damage()
        if self.log is None or self.definition is None:
            check_features(self.properties)
            raise UnsupportedTableError(
                f"{self.store.url} was not made by this library, so nothing says how its rows are spread over buckets",
                fix="Read it here; to write it, stop the program that made it and call adopt(buckets=...).",
            )
        return self.log, self.definition

    def stage(self, log: CommitLog) -> str:
        """The folder of this process in the present epoch, or "" where files are created in place."""
        return LOG_LAYOUT.stage_folder(log.state.epoch, self.process) if self.store.stages else ""

    def begin(self, definition: Definition) -> CommitLog:
        """Loads the log, once a table that another program made has a slot 0. Raises CorruptFileError when it cannot be read."""
        self._same = SameTable(self.store, LOG_LAYOUT)
        self.log, self.damage = self._load_log()
        if self.log is None:
            raise self.damage or CorruptFileError("slot 0 is gone", fix="Adopt the table again.")
        self.definition, self._config = definition, self.log.state.config
        return self.log

    def refresh(self) -> bool:
        """Whether slots have changed the definition since it was read. Then all that was read of the table is forgotten.

        An adoption, an overwrite and a restore do that, of this handle or of one that owned the table before.
        """
        if self.log is None or self._config is self.log.state.config:
            return False
        before = self.definition
        now = self._redefine(self.log)
        if before is not None and before.table_version is not now.table_version:
            self._reread_layout()
        self.snapshots = self._new_snapshots()
        return True

    def reread_version(self) -> None:
        """After this handle has changed the table's version. What was read of rows and files stays: no version changes these."""
        self._reread_layout()
        if self.log is not None:
            self._redefine(self.log)

    def _redefine(self, log: CommitLog) -> Definition:
        self._config = log.state.config
        self.definition = Definition.decode(log.state.config)
        return self.definition

    def _reread_layout(self) -> None:
        self.properties, self.layout = self._read_layout(f"{self.store.url}/{PROPERTIES_PATH}", self._get_properties())

    def _read_layout(self, where: str, content: bytes | None) -> tuple[dict[str, str], Layout]:
        properties = self._parse_properties(where, content)
        return properties, Layout.from_properties(properties, where)

    def _load_log(self) -> tuple[CommitLog | None, CorruptFileError | None]:
        """The log, under a new process id (rule RO8), or why it cannot be read."""
        self.process = self.system.ids.token()
        try:
            there, over = self.check_there, self._take_over
            log = CommitLog(self.store, LOG_LAYOUT, self.system, self._owner, take_over=over, usable=is_usable, there=there)
            return log, None
        except CorruptFileError as error:
            return None, error

    def _new_snapshots(self) -> Snapshots:
        lost = LostInstants(self.store, self.layout.history_folder, self.log)
        schema = self.definition.schema if self.definition else None
        return Snapshots(self.store, self.layout, schema, self._decided_files, self._is_ours, lost.checked)

    def _get_properties(self) -> bytes | None:
        try:
            return self.store.get(PROPERTIES_PATH).to_pybytes()
        except FileNotFoundError:
            return None

    def _parse_properties(self, where: str, content: bytes | None) -> dict[str, str]:
        """Derived from slot 0 when a crash right after it has left no file; the first write creates it."""
        if content is not None:
            return parse(content, where)
        if self.damage is not None:
            raise self.damage
        if self.log is None:
            raise NotATableError(
                f"{self.store.url} holds no Hudi table ({PROPERTIES_PATH} is missing)",
                fix="Check the place, or make a table there with create_table.",
            )
        return properties_of(Definition.decode(self.log.state.config))

    def _decided_files(self, start: str) -> Iterator[DataFile]:
        """The files in slots after the newest fold, which are in memory anyway. Not those of instants before the timeline's
        ``start`` that another program has archived: it may have cleaned them, with or without a replacecommit of that time.
        """
        slots = self.log.unfolded if self.log else ()
        archived = self.log.state.archived if self.log else ""
        dead = given_up(slots)
        for slot in slots:
            if not archived < slot.instant < start:
                yield from (file for file in slot.files if file.path not in dead)

    def _is_ours(self, write: Instant) -> bool:
        """Whether a slot that this handle knows decided it."""
        return self.log is not None and self.log.state.has_completed(write.time, write.action, write.completion)
