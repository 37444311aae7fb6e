"""Makes what services and commands work with. The one place that knows the formats; there is one, Apache Hudi."""

from collections.abc import Callable, Mapping
from typing import ParamSpec

from headgate_tables import hudi
from headgate_tables.face.compaction import CompactionTask
from headgate_tables.face.definition import Definition
from headgate_tables.face.operation import Operation
from headgate_tables.face.owner import Table
from headgate_tables.hudi.definition import Definition as HudiDefinition
from headgate_tables.hudi.definition_values import read_schema
from headgate_tables.hudi.log.reader import PARQUET_ERRORS, open_parquet
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.schema.avro_to_arrow import arrow_schema as columns_of_avro
from headgate_tables.hudi.services.compaction.task import SliceCompaction
from headgate_tables.hudi.versions import DEFAULT_TABLE_VERSION
from headgate_tables.storage.open import check_below, open_store
from headgate_tables.storage.store import Store
from headgate_tables.system import Ids

__all__ = [
    "DEFAULT_TABLE_VERSION",
    "PARQUET_ERRORS",
    "as_hudi",
    "columns_of_avro",
    "compaction_task",
    "create_table",
    "define",
    "finish_drop",
    "open_folder",
    "open_parquet",
    "open_table",
    "read_schema",
]


_Arguments = ParamSpec("_Arguments")


def _with_face(make: Callable[_Arguments, Table]) -> Callable[_Arguments, Table]:
    """The function itself, typed so that its callers see the face of a table and not its format."""
    return make


def _with_definition(make: Callable[_Arguments, Definition]) -> Callable[_Arguments, Definition]:
    """The function itself, typed so that its callers see a definition and not its format."""
    return make


create_table = _with_face(hudi.create_table)
open_table = _with_face(hudi.open_table)
finish_drop = hudi.finish_drop
define = _with_definition(HudiDefinition)
"""A table's definition from its fields, as its owner sends them; the schema with ``read_schema``."""


def open_folder(url: str, storage_options: Mapping[str, str] | None, ids: Ids, root: str = "") -> Store:
    """A table's folder, for a process that writes files in it. ``root``: below which it has to lie, "" for anywhere.

    Raises OptionError when url and options do not fit, and for a url elsewhere.
    """
    if root:
        check_below(url, root)
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
        raise TypeError(f"{type(definition).__name__} is not the definition of a Hudi table")
    return definition
