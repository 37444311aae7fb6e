"""A table's definition as clients see it."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from headgate.arguments import checked_text
from headgate.errors import InvalidArgumentError, TableNotFoundError
from headgate.near_names import did_you_mean
from headgate_proto.api.v1 import tables_pb2 as wire

Columns = str | Sequence[str] | None
"""Names of no column, one or several."""
Evolve = Literal["refuse", "add", "add-and-widen"]
_EVOLVE: "dict[wire.Evolution.ValueType, Evolve]" = {wire.EVOLUTION_ADD: "add", wire.EVOLUTION_ADD_AND_WIDEN: "add-and-widen"}


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table's definition.

    ``schema`` has the stored types. ``ordering`` None: the later write wins. ``url`` is where readers find the table.
    ``table_version``: Hudi's, 8 or 9. ``partition_buckets``: patterns of partitions' paths that have another number of buckets,
    the first one that matches counts. ``evolve``: what batches may bring that the table does not hold, its setting
    ``headgate.evolve``::

        for info in hg.tables():
            print(info.name, info.url)
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: str | None
    buckets: int
    hive_style: bool
    url: str
    uuid: str
    table_version: int
    evolve: Evolve = "refuse"
    partition_buckets: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_wire(cls, table: wire.TableDescription) -> "TableInfo":
        """The definition in a coordinator's answer. Raises pyarrow.ArrowInvalid for bytes that are not a schema."""
        return cls(
            name=table.name,
            schema=pa.ipc.read_schema(pa.py_buffer(table.schema)),
            key=tuple(table.record_key),
            partition_by=tuple(table.partition_by),
            ordering=table.ordering or None,
            buckets=table.buckets,
            hive_style=table.hive_style,
            url=table.url,
            uuid=table.table_uuid,
            table_version=table.table_version,
            evolve=_EVOLVE.get(table.evolution, "refuse"),
            partition_buckets=tuple((each.pattern, each.buckets) for each in table.partition_buckets),
        )

    def with_columns(self, message: bytes) -> "TableInfo":
        """The table with the columns of an Arrow schema message; with its own for none."""
        return replace(self, schema=pa.ipc.read_schema(pa.py_buffer(message))) if message else self


@dataclass(frozen=True, slots=True)
class RecoverableTable:
    """A table that is dropped, and that ``undrop_table`` brings back ``until`` then. ``at``: of the drop; both in UTC. ``by``:
    the principal.
    """

    name: str
    at: datetime.datetime
    by: str
    until: datetime.datetime
    uuid: str


def time_of(ms: int) -> datetime.datetime:
    """In UTC; ``ms``: since the epoch."""
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)


@dataclass(frozen=True, slots=True)
class Listing:
    """All tables of a cluster, by name. ``unreadable``: names whose definition cannot be read now; ``status(name)`` says why.
    ``dropped``: those that can be brought back.
    """

    tables: tuple[TableInfo, ...]
    unreadable: tuple[str, ...]
    dropped: tuple[RecoverableTable, ...] = ()

    @classmethod
    def from_wire(cls, found: wire.ListTablesResponse) -> "Listing":
        """The tables in a coordinator's answer."""
        dropped = (
            RecoverableTable(each.name, time_of(each.dropped_ms), each.principal, time_of(each.until_ms), each.table_uuid)
            for each in found.dropped
        )
        return cls(tuple(map(TableInfo.from_wire, found.tables)), tuple(found.unreadable), tuple(dropped))


def checked_channel_name(name: str) -> str:
    """``name``, if it is 1 to 255 bytes of UTF-8 without control characters. Raises InvalidArgumentError."""
    if not 1 <= len(checked_text(name, "name").encode(errors="replace")) <= 255 or not name.isprintable():
        fix = "Use 1 to 255 bytes of UTF-8 without control characters."
        raise InvalidArgumentError(f"{name!r:.80} cannot name a channel", fix=fix)
    return name


def not_found(name: str, others: Sequence[str], said: TableNotFoundError) -> TableNotFoundError:
    """The error for a table that there is not, with its name and the nearest one of ``others``. ``said``: a coordinator's."""
    message = said.message if repr(name) in said.message else f"{said.message}: {name!r}"
    return TableNotFoundError(message, fix=f"{did_you_mean(name, others)}{said.fix}")
