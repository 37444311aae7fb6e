"""What must hold before a commit: this library can write the table, and no other program has written to it (rule F1)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.tail import read_state
from headgate_tables.commitlog.times import format_time, parse_time
from headgate_tables.errors import (
    ForeignWriterError,
    MetadataTableError,
    MissingFileError,
    OptionError,
    TablesError,
    UnsupportedTableError,
)
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse, render
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, Instant
from headgate_tables.hudi.versions import TableVersion
from headgate_tables.storage.store import Store
from headgate_tables.storage.workers import both

MetadataTable = Literal["refuse", "remove"]
"""What to do with a metadata table that another program has made; see ``open_table``."""

METADATA_FOLDER = ".hoodie/metadata"
METADATA_PROPERTIES = f"{METADATA_FOLDER}/.hoodie/hoodie.properties"
LATE_MS = 60_000
"""By how much a foreign instant may be older than the timeline's file that names it: Hudi 0.x issues a batch's instant before it
prepares the rows, and its clock may be behind ours. More: longer listings.
"""
LOOK_BACK_EVERY_MS = 5_000
"""How often such files are looked for; each time the instants of ``LATE_MS`` are listed again."""
_METADATA_KEYS = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")


def check_writable(properties: Mapping[str, str]) -> None:
    """Raises UnsupportedTableError for a feature that this library does not write, and says how to go on."""
    check_features(properties)
    _refuse_metadata(properties)


def check_features(properties: Mapping[str, str]) -> None:
    """``check_writable`` without the metadata table, which can be removed."""
    TableVersion.from_properties(properties, PROPERTIES_PATH)
    refused = {
        "hoodie.table.type": (
            "MERGE_ON_READ",
            "is a copy-on-write table",
            "Create a merge-on-read table and load the rows into it.",
        ),
        "hoodie.table.cdc.enabled": ("false", "keeps change data (CDC)", "Switch hoodie.table.cdc.enabled off with Spark first."),
        "hoodie.populate.meta.fields": (
            "true",
            "has virtual keys",
            "Load the rows into a new table; keys must be stored to be merged.",
        ),
        "hoodie.table.base.file.format": ("PARQUET", "has base files that are not Parquet", "Load the rows into a new table."),
        "hoodie.datasource.write.drop.partition.columns": ("false", "drops partition columns", "Load the rows into a new table."),
    }
    for key, (wanted, what, fix) in refused.items():
        found = properties.get(key, wanted)
        if found != wanted:
            raise UnsupportedTableError(f"the table {what} ({key}={found}), which this library does not write", fix=fix)


def _refuse_metadata(properties: Mapping[str, str]) -> None:
    enabled = [properties[key] for key in _METADATA_KEYS if properties.get(key)]
    if enabled:
        raise MetadataTableError(
            f"the table has a metadata table ({', '.join(enabled)}); readers that trust it would not see our files",
            fix="Adopt with remove_metadata_table=True, or open it with metadata_table='remove', to drop that, and run Spark "
            "jobs on it with hoodie.metadata.enable=false.",
        )


class Guard:
    """Watches one table between commits for changed properties, a new metadata table and foreign instants."""

    def __init__(self, store: Store, metadata_table: MetadataTable, there: Callable[[], None]) -> None:
        """``there``: raises unless the table that was opened is still at its place."""
        if metadata_table not in ("refuse", "remove"):
            raise OptionError(f"metadata_table={metadata_table!r}", fix="Choose 'refuse' or 'remove'.")
        self._store, self._there = store, there
        self._remove_metadata = metadata_table == "remove"
        self._seen_version: str | None = None
        self._begun = self._looked_after = self._looked_back = ""
        self._settled: str | None = None

    def begin(self, checked: str) -> None:
        """Before the first check: another owner has checked the timeline before the instant ``checked`` a moment ago, so that is
        not listed again.
        """
        self._begun = self._looked_after = self._looked_back = checked

    def check(self, state: LogState, *, owner: bool = True, announcing: bool = False) -> Sequence[Instant]:
        """To be called before a fence (when we do not own the table yet) and before each commit. Checks the whole timeline at
        first, later what is newer than the oldest instant that was reserved at the last check: a handle may be idle for hours.
        Every few seconds it looks back for files that came late.

        ``announcing``: before a transaction's first file, when a folder that is unchanged since our last commit is not listed.
        Returns what it has listed of the timeline. Raises UnsupportedTableError, MetadataTableError,
        ForeignWriterError, TableGoneError.
        """
        after = self._start()
        _, listed = both(
            self._store,
            lambda: self._check_properties(owner=owner),
            lambda: self._check_timeline(state, after, announcing=announcing),
        )
        if listed is None:
            return ()
        looked_back = after < self._looked_after or not self._looked_back
        self._looked_after = min(state.reserved, default=self._begun)
        if looked_back:
            self._looked_back = self._looked_after
        return listed

    def _start(self) -> str:
        """The instant after which the next check lists; "" for all."""
        if not self._looked_back:
            return self._looked_after
        before = parse_time(self._looked_back)
        due = parse_time(self._looked_after) - before >= LOOK_BACK_EVERY_MS
        return format_time(before - LATE_MS) if due else self._looked_after

    @property
    def checked(self) -> str:
        """The instant before which all of the timeline is known to be ours; "" before any."""
        return self._looked_after

    def fresh(self) -> "Guard":
        """A guard of the same table that has checked nothing yet."""
        return Guard(self._store, "remove" if self._remove_metadata else "refuse", self._there)

    def removing(self) -> "Guard":
        """As ``fresh``, and this one drops a metadata table."""
        return Guard(self._store, "remove", self._there)

    def check_table(self) -> None:
        """For an adoption: checks features and the metadata table. Raises UnsupportedTableError, MetadataTableError."""
        self._check_properties(owner=False)

    def note_commit(self) -> None:
        """After a commit of ours: the next transaction may find the timeline as it is now."""
        try:
            self._settled = self._store.version(TIMELINE_FOLDER)
        except TablesError:
            self._settled = None  # the commit stands, and the next check lists

    def _check_properties(self, *, owner: bool) -> None:
        store = self._store
        version, metadata = both(store, lambda: store.version(PROPERTIES_PATH), lambda: store.size(METADATA_PROPERTIES))
        if version == self._seen_version and metadata is None:
            return
        if self._seen_version not in (None, version):  # each table has properties of its own (``create_table``)
            self._there()
        try:
            content, has_folder = both(store, lambda: store.get(PROPERTIES_PATH).to_pybytes(), self._has_metadata_folder)
        except FileNotFoundError as error:
            self._there()
            raise MissingFileError(
                f"{PROPERTIES_PATH} is gone", fix="Restore it from a copy of the table; no reader finds the table without it."
            ) from error
        properties = parse(content, PROPERTIES_PATH)
        if self._remove_metadata and (any(properties.get(key) for key in _METADATA_KEYS) or has_folder):
            if not owner:
                check_features(properties)
                return
            properties, has_folder = self._drop_metadata(properties), False
        check_writable(properties)
        if has_folder:
            _refuse_metadata({_METADATA_KEYS[1]: "being built"})
        # The version from before the read: nobody has checked a change since then.
        self._seen_version = version

    def _has_metadata_folder(self) -> bool:
        listing = self._store.list_folder(METADATA_FOLDER)
        return bool(listing.files or listing.folders)

    def _drop_metadata(self, properties: dict[str, str]) -> dict[str, str]:
        """Fact HF4: the properties change first, so that no reader trusts the metadata table while its folder is deleted."""
        left = {key: value for key, value in properties.items() if key not in _METADATA_KEYS}
        self._store.replace(PROPERTIES_PATH, [render(left, "Headgate removed the metadata table")])
        self._store.delete_folder(METADATA_FOLDER)
        return left

    def _check_timeline(self, state: LogState, after: str, *, announcing: bool) -> list[Instant] | None:
        """What it has listed; None when nothing is to be listed."""
        if announcing and self._settled is not None and self._store.version(TIMELINE_FOLDER) == self._settled:
            return None
        listed = list_instants(self._store, after=after or None)
        unknown = not_ours(listed, state)
        if unknown:
            # Another handle may own the table by now. Its slots come before its files, so a fresh read of the log knows them;
            # winning a slot then finds the deposed one (test_of_two_handles_that_write_one_is_deposed_and_nothing_is_lost).
            unknown = not_ours(unknown, read_state(self._store, LOG_LAYOUT)[0])
        if unknown:
            raise ForeignWriterError(
                f"{unknown[0].name} is on the timeline, but no slot of ours decided it: another program wrote to the table",
                fix="From now on the table can be read, not written. Stop the other program, then call adopt().",
            )
        return listed


def not_ours(instants: Sequence[Instant], state: LogState) -> list[Instant]:
    """Instants that no slot reserved, or whose completion no slot decided. One that a restore has undone may still be there."""
    return [
        instant
        for instant in instants
        if (
            not state.has_reserved(instant.time)
            or (instant.completion and not state.has_completed(instant.time, instant.action, instant.completion))
        )
        and not state.gives_up(instant.path)
    ]
