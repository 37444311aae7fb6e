"""A table's definition as clients see it, and the ways to give a schema."""

import dataclasses
import datetime
import types
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headgate.errors import InvalidArgumentError
from headgate_proto.api.v1 import tables_pb2 as wire

Columns = str | Sequence[str] | None
"""Names of no column, one or several."""

SchemaLike = pa.Schema | Iterable[tuple[str, object]] | type
"""A pyarrow schema; pairs of name and type; or a dataclass. Types are pyarrow's, their names, or Python's."""

_PYTHON_TYPES: dict[object, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime.datetime: pa.timestamp("us", tz="UTC"),
    datetime.date: pa.date32(),
}


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table's definition.

    ``schema`` has the stored types. ``ordering`` None: the later write wins. ``url`` is where readers find the table.
    ``table_version``: Hudi's, 8 or 9::

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
        )


@dataclass(frozen=True, slots=True)
class Listing:
    """All tables of a cluster, by name. ``unreadable``: names whose definition cannot be read now; ``status(name)`` says why."""

    tables: tuple[TableInfo, ...]
    unreadable: tuple[str, ...]


def names_of(columns: Columns) -> list[str]:
    """The names as a list."""
    if columns is None:
        return []
    return [columns] if isinstance(columns, str) else list(columns)


def checked_channel_name(name: str) -> str:
    """``name``, if it is 1 to 255 bytes of UTF-8 without control characters. Raises InvalidArgumentError."""
    if not 1 <= len(name.encode()) <= 255 or not name.isprintable():
        fix = "Use 1 to 255 bytes of UTF-8 without control characters."
        raise InvalidArgumentError(f"{name!r:.80} cannot name a channel", fix=fix)
    return name


def schema_of(schema: SchemaLike) -> pa.Schema:
    """The Arrow schema. Raises InvalidArgumentError, which names the column."""
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, type):
        if not dataclasses.is_dataclass(schema):
            raise InvalidArgumentError(f"{schema.__name__} is not a dataclass", fix="Pass a pyarrow schema or a dataclass.")
        hints = typing.get_type_hints(schema)
        return pa.schema([_hinted(field.name, hints[field.name]) for field in dataclasses.fields(schema)])
    return pa.schema([pa.field(name, _type_of(name, kind)) for name, kind in schema])


def _hinted(name: str, hint: object) -> "pa.Field[pa.DataType]":
    """A column's field; nullable only if the annotation says ``| None``."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    given = [option for option in options if option is not types.NoneType]
    if len(given) != 1:
        raise InvalidArgumentError(f"column {name!r} has several types", fix="Choose one, with `| None` for nulls.")
    return pa.field(name, _type_of(name, given[0]), nullable=len(given) != len(options))


def _type_of(name: str, kind: object) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return kind
    if isinstance(kind, str):
        try:
            named: pa.DataType = pa.type_for_alias(kind)  # type: ignore[call-overload]
        except ValueError as error:
            raise InvalidArgumentError(
                f"column {name!r}: Arrow has no type {kind!r}", fix="Use a name such as 'int64'."
            ) from error
        return named
    if kind in _PYTHON_TYPES:
        return _PYTHON_TYPES[kind]
    known = ", ".join(known.__name__ for known in _PYTHON_TYPES if isinstance(known, type))
    raise InvalidArgumentError(f"column {name!r} has no Arrow type for {kind!r}", fix=f"Use a pyarrow type, or one of {known}.")
