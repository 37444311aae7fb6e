"""Creates a table: checks its definition, probes its store, wins slot 0, derives its properties."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from headgate_tables.commitlog.first_slot import create_log
from headgate_tables.commitlog.tombstone import dropped_error, read_tombstone
from headgate_tables.errors import OptionError, OtherDefinitionError, TableExistsError
from headgate_tables.hudi.definition import Definition, avro_schema
from headgate_tables.hudi.differing import differences
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.opening import open_table
from headgate_tables.hudi.place import check_definition
from headgate_tables.hudi.properties import PROPERTIES_PATH, render
from headgate_tables.hudi.schema.canonical import check_supported, table_schema
from headgate_tables.hudi.table import Table
from headgate_tables.hudi.table_properties import properties_of
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.hudi.versions import DEFAULT_TABLE_VERSION, TableVersion
from headgate_tables.name_lists import names_in
from headgate_tables.storage.open import open_store
from headgate_tables.storage.probe import probe
from headgate_tables.system import System

TIMELINE_MARKER = f"{TIMELINE_FOLDER}/history/.created"
"""Makes the folders that Spark lists before there is a commit; no reader mistakes the name for anything else."""


def create_table(
    url: str,
    schema: pa.Schema,
    *,
    record_key: Sequence[str] | str,
    partition_by: Sequence[str] | str = (),
    ordering: str | None = None,
    buckets: int = 8,
    name: str | None = None,
    hive_style: bool = False,
    url_encode: bool = True,
    table_version: int = DEFAULT_TABLE_VERSION,
    exist_ok: bool = False,
    after_epoch: int = 0,
    storage_options: Mapping[str, str] | None = None,
    system: System | None = None,
) -> Table:
    """Creates a merge-on-read table with a simple bucket index. ``name`` defaults to the last part of ``url``.

    ``url``: a folder or a prefix of a bucket, as ``open_store`` takes it. ``ordering``: the column whose larger value wins (event
    time); without one the later write wins (commit time). ``buckets``: file groups a partition; ``rescale`` changes it.
    ``table_version``: Hudi's, 8 (read by Hudi 1.0 and newer) or 9 (by 1.1 and newer). ``exist_ok`` opens one that is there with
    the same definition, in any version. ``after_epoch``: of a dropped table that had the name, the last (rule D8). A timestamp
    that orders the rows is stored in microseconds.

    Raises TableExistsError or OtherDefinitionError, TableDroppedError, UnsupportedTypeError, and other TablesErrors of the call.
    """
    system = system or System.real()
    store = open_store(url, storage_options, system.ids)
    version = TableVersion.of_number(table_version)
    keys, partitions = _as_tuple(record_key, "record_key"), _as_tuple(partition_by, "partition_by")
    definition = Definition(
        name=name or posixpath.basename(store.url),
        schema=_canonical(schema, ordering),
        record_key=keys,
        partition_by=partitions,
        ordering=ordering,
        buckets=buckets,
        hive_style=hive_style,
        url_encode=url_encode,
        table_uuid=system.ids.table_uuid(),
        prefixed_keys=version.prefixes_keys(len(keys), len(partitions)),
        table_version=version,
    )
    check_definition(definition)

    def reopen() -> Table:
        return open_table(url, storage_options=storage_options, system=system)

    if (tombstone := read_tombstone(store, LOG_LAYOUT)) is not None:
        raise dropped_error(tombstone.drop)
    if store.size(PROPERTIES_PATH) is not None or store.size(LOG_LAYOUT.slot_path(0)) is not None:
        return _existing(reopen(), definition, exist_ok=exist_ok)
    probe(store, LOG_LAYOUT.probes, system)
    derived = [(TIMELINE_MARKER, b""), (PROPERTIES_PATH, _properties(definition))]
    try:
        create_log(store, LOG_LAYOUT, system, definition.encode(), derived, epoch=after_epoch)
    except TableExistsError:
        return _existing(reopen(), definition, exist_ok=exist_ok)
    return reopen()


def _properties(definition: Definition) -> bytes:
    """By the comment they, and what a bucket tags them with, differ from those of every other table (``Guard``)."""
    return render(properties_of(definition), f"Created by Headgate, table {definition.table_uuid}")


def _canonical(schema: pa.Schema, ordering: str | None) -> pa.Schema:
    if not isinstance(schema, pa.Schema):
        raise OptionError(
            f"{type(schema).__name__} is not a pyarrow schema", fix="Pass a pyarrow.Schema, such as that of a pyarrow table."
        )
    names_in([] if ordering is None else [ordering], "ordering")
    check_supported(schema)
    stored = table_schema(schema)
    at = stored.get_field_index(ordering) if ordering else -1
    if at >= 0 and pa.types.is_timestamp(stored.field(at).type):
        # Spark compares a row's microseconds with a delete's milliseconds (see check_ordering_type).
        stored = stored.set(at, stored.field(at).with_type(pa.timestamp("us", tz="UTC")))
    return stored


def _as_tuple(names: Sequence[str] | str, what: str) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names_in(names, what))


def _existing(table: Table, wanted: Definition, *, exist_ok: bool) -> Table:
    if not exist_ok:
        raise TableExistsError(f"{table.url} holds a table already", fix="Open it with open_table, or pass exist_ok=True.")
    there = table.definition
    if there is None or not (_same(there, wanted) or _was_created_as(table, there, wanted)):
        differing = (there and differences(there, wanted)) or "it is of another kind"
        raise OtherDefinitionError(
            f"a table with another definition is there: {differing}",
            fix="Use it as it is, or choose another name. Of a definition only columns can change: `headgate table alter` adds "
            "some, and widens types.",
        )
    return table


def _same(there: Definition, wanted: Definition) -> bool:
    its_own = {"table_uuid": "", "groups": {}, "table_version": 0}
    return there.encode() | its_own == wanted.encode() | its_own


def _was_created_as(table: Table, there: Definition, wanted: Definition) -> bool:
    """Whether the table was as it is ``wanted`` before its columns were altered: programs that ask for it so still go on."""
    created = table.created_schema == avro_schema(wanted, meta_columns=False)
    return created and _same(replace(there, schema=wanted.schema), wanted)
