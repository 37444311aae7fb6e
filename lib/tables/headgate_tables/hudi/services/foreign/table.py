"""Finds out what a table that another program made is, and whether this library can write it (rule FI2)."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from headgate_tables.commitlog.state import LogState
from headgate_tables.errors import CorruptFileError, FixCall, OptionError, UnsupportedTableError
from headgate_tables.hudi.definition import Definition, Layout, key_generator
from headgate_tables.hudi.keys.bucket import bucket_of
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.place import check_definition
from headgate_tables.hudi.readable import check_all
from headgate_tables.hudi.schema.evolved import check_stored
from headgate_tables.hudi.services.foreign.adopting import check_clock, survey
from headgate_tables.hudi.services.foreign.sampled_keys import Sample, sample
from headgate_tables.hudi.snapshot import Snapshot, Snapshots
from headgate_tables.hudi.timeline.active import content_of
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.hudi.view import FileSystemView
from headgate_tables.storage.store import Store
from headgate_tables.system import System

BUCKET_FOLDER = ".hoodie/.bucket_index"
"""Holds metadata of consistent hashing, and of bucket counts by partition; the simple bucket index has none."""
_GENERATORS = ("SIMPLE", "COMPLEX", "NONPARTITION", "NONPARTITIONED")


def define(
    store: Store, system: System, layout: Layout, properties: Mapping[str, str], buckets: int | None, *, roll_back: bool
) -> Definition:
    """The table's definition, with a new table uuid. Reads only.

    Raises OptionError for a bucket count that is missing or does not fit its rows, UnsupportedTableError for what this library
    does not write, ClockError, and what ``survey`` raises.
    """
    _check_generator(properties)
    _check_index(store)
    snapshot = Snapshots(store, layout, None, lambda _: ()).current()
    check_all(snapshot.view)
    definition = Definition(
        name=layout.name,
        schema=_schema(store, snapshot),
        record_key=layout.record_key,
        partition_by=layout.partition_by,
        ordering=layout.ordering,
        buckets=1,
        hive_style=layout.hive_style,
        url_encode=layout.url_encode,
        table_uuid=system.ids.table_uuid(),
        table_version=layout.version,
    )
    try:
        check_definition(definition)
    except FixCall as error:
        raise UnsupportedTableError(f"the table cannot be written here: {error.message}", fix=error.fix) from error
    if buckets is not None:
        replace(definition, buckets=buckets).check()
    largest = _largest(snapshot.view)
    definition, found = _sampled(store, definition, _newest_files(snapshot.view))
    definition = replace(definition, buckets=_checked(buckets, found, largest))
    check_clock(system.clock, survey(store, layout, definition, LogState(LOG_LAYOUT), (), roll_back=roll_back).newest)
    return definition


def _check_generator(properties: Mapping[str, str]) -> None:
    kind = key_generator(properties)
    if kind not in _GENERATORS:
        raise UnsupportedTableError(
            f"the table's keys are made by {kind or 'a key generator that its properties do not name'}",
            fix="The simple, complex and non-partitioned key generators are known here; load its rows into a new table.",
        )


def _check_index(store: Store) -> None:
    folder = store.list_folder(BUCKET_FOLDER)
    if folder.files or folder.folders:
        raise UnsupportedTableError(
            f"the table keeps a bucket index of its own in {BUCKET_FOLDER} (consistent hashing, or counts by partition)",
            fix="Only the simple bucket index can be written here; load its rows into a new table.",
        )


def _schema(store: Store, snapshot: Snapshot) -> pa.Schema:
    """The columns of the newest commit, or those that the table was created with."""
    schema, writes = snapshot.schema, snapshot.view.timeline.writes()
    if not schema.names:
        raise UnsupportedTableError("the table has no commit that names its columns", fix="Write some rows with its own program.")
    check_stored(schema)
    if writes and decode_commit(content_of(store, writes[-1]), writes[-1].path).extra.get("latest_schema"):
        raise UnsupportedTableError(
            "the table's columns were renamed or changed in place (hoodie.schema.on.read.enable)",
            fix="Load its rows into a new table.",
        )
    return schema


def _newest_files(view: FileSystemView) -> list[str]:
    """One file of each group: the base, which certainly has rows, or the first log."""
    slices = view.latest_slices()
    return [each.path(each.base if each.base is not None else each.logs[0].name) for each in slices]


def _largest(view: FileSystemView) -> int:
    try:
        return max((bucket_of(group.file_id) for group in view.groups()), default=-1)
    except CorruptFileError as error:
        raise UnsupportedTableError(
            "the table has another index than the simple bucket index: its file groups have no bucket numbers",
            fix="Load its rows into a new table.",
        ) from error


def _sampled(store: Store, definition: Definition, files: Sequence[str]) -> tuple[Definition, Sample]:
    """Only the rows show how the complex key generator writes keys of one field."""
    try:
        return definition, sample(store, definition, files)
    except UnsupportedTableError:
        if len(definition.record_key) > 1:
            raise
        prefixed = replace(definition, prefixed_keys=True)
        with contextlib.suppress(UnsupportedTableError):
            return prefixed, sample(store, prefixed, files)
        raise


def _checked(buckets: int | None, found: Sample, largest: int) -> int:
    """The bucket count, checked. Raises OptionError that names the counts that fit."""
    if buckets is not None and buckets > largest and found.fits(buckets):
        return buckets
    fitting = found.fitting()
    if len(found.hashes) and not fitting:
        raise UnsupportedTableError(
            "the table has another index than the simple bucket index: no bucket count puts its rows where they lie",
            fix="Load its rows into a new table.",
        )
    asked = "nothing in a table says how many buckets it has" if buckets is None else f"buckets={buckets} does not fit the table"
    raise OptionError(
        asked, fix=f"Pass buckets={_listed(fitting, largest)}, which its writers call hoodie.bucket.index.num.buckets."
    )


def _listed(fitting: Sequence[int], largest: int) -> str:
    if not fitting:
        return f"N, at least {largest + 1}" if largest >= 0 else "N"
    more = " or more" if len(fitting) > 3 else ""
    return " or ".join(map(str, fitting[:3])) + more
