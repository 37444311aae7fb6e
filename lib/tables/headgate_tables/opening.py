"""Makes what services and commands work with. The one place that knows the formats; there is one, Apache Hudi."""

import uuid
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from headgate_tables import hudi
from headgate_tables.commitlog.records import Holder
from headgate_tables.face.compaction import CompactionTask
from headgate_tables.face.definition import Definition
from headgate_tables.face.operation import Operation
from headgate_tables.face.owner import Table
from headgate_tables.hudi.definition import Definition as HudiDefinition
from headgate_tables.hudi.definition import read_schema
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.services.compaction.task import SliceCompaction
from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Store
from headgate_tables.system import Ids, System


def create_table(
    url: str,
    schema: pa.Schema,
    *,
    record_key: Sequence[str],
    partition_by: Sequence[str] = (),
    ordering: str | None = None,
    buckets: int = 8,
    name: str | None = None,
    hive_style: bool = False,
    exist_ok: bool = False,
    storage_options: Mapping[str, str] | None = None,
    system: System | None = None,
) -> Table:
    """As ``hudi.create_table``."""
    return hudi.create_table(
        url,
        schema,
        record_key=record_key,
        partition_by=partition_by,
        ordering=ordering,
        buckets=buckets,
        name=name,
        hive_style=hive_style,
        exist_ok=exist_ok,
        storage_options=storage_options,
        system=system,
    )


def open_table(
    url: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    system: System | None = None,
    holder: Holder | None = None,
    wrap_store: Callable[[Store], Store] | None = None,
) -> Table:
    """As ``hudi.open_table``."""
    return hudi.open_table(url, storage_options=storage_options, system=system, holder=holder, wrap_store=wrap_store)


def define(
    schema: bytes,
    *,
    name: str,
    record_key: tuple[str, ...],
    partition_by: tuple[str, ...],
    ordering: str | None,
    buckets: int,
    hive_style: bool,
    url_encode: bool,
    table_uuid: uuid.UUID,
    key_groups: int,
    prefixed_keys: bool,
    groups: Mapping[str, Mapping[int, str]],
) -> Definition:
    """The definition of a table, as its owner sends it. ``schema``: an Arrow IPC message. Raises CorruptFileError."""
    return HudiDefinition(
        name=name,
        schema=read_schema(schema),
        record_key=record_key,
        partition_by=partition_by,
        ordering=ordering,
        buckets=buckets,
        hive_style=hive_style,
        url_encode=url_encode,
        table_uuid=table_uuid,
        key_groups=key_groups,
        prefixed_keys=prefixed_keys,
        groups=groups,
    )


def open_folder(url: str, storage_options: Mapping[str, str] | None, ids: Ids) -> Store:
    """A table's folder, for a process that writes files in it. Raises OptionError when url and options do not fit."""
    return open_store(url, storage_options, ids, anchor=LOG_LAYOUT.root)


def compaction_task(
    folder: Store,
    definition: Definition,
    operation: Operation,
    instant: str,
    *,
    epoch: int,
    process: str,
    attempt: int,
    settings: Mapping[str, str],
) -> CompactionTask:
    """``process``: the compactor's random id; ``attempt``: number of this try. ``settings``: the table's, as text by key."""
    return SliceCompaction(folder, as_hudi(definition), operation, instant, epoch, process, attempt, settings)


def as_hudi(definition: Definition) -> HudiDefinition:
    """The definition itself. Raises TypeError for a table of another format."""
    if not isinstance(definition, HudiDefinition):
        raise TypeError(f"{type(definition).__name__} is no definition of a Hudi table")
    return definition
