"""The reading half of a table handle: rows as they are or were, commits, files, settings, and verification."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from headgate_tables.errors import OptionError, StoreUnavailableError
from headgate_tables.face.engines import Engine, EngineSetup
from headgate_tables.face.reader import Filter, Mode, Moment
from headgate_tables.face.results import CommitInfo, InstantInfo, SavepointInfo, Verification
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.deleting import Matches
from headgate_tables.hudi.engines import engine_setup
from headgate_tables.hudi.instants import describe_savepoints, newest_instants
from headgate_tables.hudi.leases import ReaderLease, take_lease
from headgate_tables.hudi.moments import moment_text
from headgate_tables.hudi.opened import Opened
from headgate_tables.hudi.query import newest, select
from headgate_tables.hudi.scan import Scan
from headgate_tables.hudi.snapshot import Snapshots
from headgate_tables.hudi.timeline.active import read_timeline
from headgate_tables.hudi.verify import verify
from headgate_tables.hudi.view import FileGroup

_LEASE_ATTEMPTS = 5


class TableReader:
    """Everything that can be read of a table. Only ``lease`` writes: a lease."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._store = opened.store

    @property
    def _snapshots(self) -> Snapshots:
        return self._opened.snapshots

    @property
    def url(self) -> str:
        """Where the table lies."""
        return self._store.url

    @property
    def name(self) -> str:
        """What its caller calls the table; otherwise hoodie.table.name."""
        return self._opened.called or self._opened.layout.name

    @property
    def created_schema(self) -> str:
        """In Avro, the columns with which the table was created; "" when nothing says."""
        return self._opened.layout.created_schema

    @property
    def format_version(self) -> int:
        """Hudi's table version when this handle read the table's properties."""
        return self._opened.layout.version.value

    @property
    def definition(self) -> Definition | None:
        """Keys, partitions, ordering and buckets of a table of ours; None for one that another program made."""
        return self._opened.definition

    def setup_of(self, engine: Engine) -> EngineSetup:
        """With which statement, settings and options another engine reads and writes this table rightly.

        Raises UnsupportedTableError for a table that another program made, or whose keys the engine would write differently,
        and UnsupportedTypeError for a column that its SQL has no type for.
        """
        _, definition = self._opened.writable()
        return engine_setup(definition, self._opened.layout.version, self.url, engine)

    @property
    def schema(self) -> pa.Schema:
        """The columns to write rows with, without Hudi's meta columns. A scan also shows columns that another program has
        added to a table of ours and that are not adopted.
        """
        return self._opened.schema

    @property
    def epoch(self) -> int:
        """Number of the newest ownership that this handle knows of, its own if it owns the table; 0 when there was none."""
        return self._opened.log.state.epoch if self._opened.log else 0

    @property
    def stages(self) -> bool:
        """Whether the table lies in a folder of this machine (see ``Store.stages``)."""
        return self._store.stages

    @property
    def settings(self) -> TableSettings:
        """According to the newest slot that this handle knows."""
        return TableSettings.from_texts(self._opened.log.state.settings) if self._opened.log else TableSettings()

    @property
    def savepoints(self) -> Sequence[str]:
        """Instants that ``restore`` can go back to, oldest first."""
        log = self._opened.log
        return sorted(log.state.savepoints) if log else sorted(read_timeline(self._store).savepoints)

    def describe_savepoints(self) -> Sequence[SavepointInfo]:
        """What is known of each of them, in the same order; each costs one read. Raises CorruptFileError."""
        return describe_savepoints(self._store, self.savepoints)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        partitions: Sequence[str | Mapping[str, object]] | None = None,
        filter: Filter | None = None,  # noqa: A002 - pyarrow's own name for it
        *,
        meta_columns: bool = False,
        mode: Mode = "snapshot",
        as_of: Moment | None = None,
        since: Moment | None = None,
    ) -> Scan:
        """The rows as they are now, or were; nothing is read before ``to_reader()`` or ``to_table()``.

        ``columns``: names, in the wanted order. ``partitions``: partition paths, or mappings of partition columns to values.
        ``filter``: a pyarrow expression, a condition in SQL (see ``where``), or a function that makes an expression (or None)
        from the schema that the scan can show; partitions and row groups that cannot match are not read.
        ``mode``: ``read_optimized`` reads base files alone: what the newest compaction of each slice left, and fast.
        ``as_of``: the table as it was at this time: a completion time, an instant, which stands for its completion, a datetime
        with a zone, text such as "2026-11-22 10:00" (UTC) or "10 minutes ago".
        ``since``: only rows that commits wrote that completed after this time (the same kinds) and not after ``as_of``, in
        their newest version among those; rows that were deleted again are not shown. The result's ``as_of`` is where to read on.

        Raises RangeGoneError when what is asked for was archived or cleaned away, OptionError, SchemaError, and
        UnsupportedTableError for base files that are no Parquet and files of committed instants whose names are not known.
        """
        selection = select(self._snapshots, mode, self._time("as_of", as_of), self._time("since", since))
        return Scan(self._store, self._opened.layout, selection, columns, partitions, filter, meta_columns=meta_columns)

    def matching(self, where: str) -> Matches:
        """The rows that a condition in SQL selects now, as what deletes of them need. Raises as ``scan``, and
        UnsupportedTableError for a table that another program made.
        """
        _, definition = self._opened.writable()
        return Matches(self.scan, definition, where)

    def lease(self, seconds: float = 3600.0, holder: str = "") -> ReaderLease:
        """Keeps every file that the newest snapshot needs for so long, or until ``release``: for queries that outlast cleaning.

        Readers write nothing else. ``holder``: for people who ask what keeps their files. Read with
        ``scan(as_of=lease.point)``. Raises OptionError, StoreDeniedError, RetryLater when the table was cleaned meanwhile.
        """
        system = self._opened.system
        holder = holder or f"process {system.pid} on {system.host}"
        for _ in range(_LEASE_ATTEMPTS):
            point = newest(self._snapshots.current().view.timeline)
            if not point:
                raise OptionError(f"{self._store.url} has no commit to lease", fix="Take a lease once there are rows.")
            lease = take_lease(self._store, system.clock, system.ids, point=point, seconds=seconds, holder=holder)
            # A cleaning that did not see the lease may have begun just before it (rule D3).
            if self._snapshots.past.oldest(self._snapshots.current().view.timeline) <= point:
                return lease
            lease.release()
        raise StoreUnavailableError(f"{self._store.url} is cleaned faster than a lease can be taken", fix="Try again.")

    def _time(self, name: str, moment: Moment | None) -> str | None:
        if moment is None:
            return None
        return moment_text(moment, name, self._opened.system.clock.now_ms, is_utc=self._opened.is_utc)

    def commits(self) -> list[CommitInfo]:
        """Completed writes of the active timeline, in the order in which they became visible."""
        writes = self._snapshots.timeline().writes()
        return [CommitInfo(instant.time, instant.completion, instant.action) for instant in writes]

    def instants(self, limit: int = 0) -> list[InstantInfo]:
        """The newest ``limit`` instants of the active timeline (0: all), pending ones too, oldest first.

        Each completed write costs one read of its metadata. Raises CorruptFileError.
        """
        return newest_instants(self._store, limit)

    def file_groups(self) -> list[FileGroup]:
        """Live file groups; ``slices()`` of each gives its base and log files."""
        return list(self._snapshots.current().view.groups())

    def verify(self) -> Verification:
        """Compares slots, timeline and files, reading every file's bytes once. Writes nothing."""
        return verify(self._store, self._opened.layout.history_folder)
