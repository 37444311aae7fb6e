"""The ways to give a table's schema: pyarrow's, pairs of name and type, a class whose objects are rows, or rows themselves."""

import datetime
import decimal
import enum
import os
import types
import typing
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headgate.errors import InvalidArgumentError
from headgate.frame_schemas import ArrowStream, schema_of_rows
from headgate.records import field_names

SchemaLike = pa.Schema | Iterable[tuple[str, object]] | type | ArrowStream | pa.RecordBatch | os.PathLike[str]
"""A pyarrow schema; pairs of name and type; a dataclass, NamedTuple, attrs class or pydantic model; a frame or anything else with
``__arrow_c_stream__``, of which the columns and types count; the path of a Parquet file.

Types are pyarrow's, their names, or Python's, also ``list[str]``, ``dict[str, int]``, Enums and classes of nested records. With
``typing.Annotated[Decimal, pa.decimal128(10, 2)]`` a class says Arrow's type.
"""

_PYTHON_TYPES: dict[object, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime.datetime: pa.timestamp("us", tz="UTC"),
    datetime.date: pa.date32(),
    uuid.UUID: pa.string(),
}


def schema_of(schema: SchemaLike) -> pa.Schema:
    """The Arrow schema. Raises InvalidArgumentError, which names the column."""
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, type):
        if not field_names(schema):
            raise InvalidArgumentError(
                f"{schema.__name__} is not a class of rows",
                fix="Pass a pyarrow schema, pairs of name and type, or a dataclass, NamedTuple, attrs class or pydantic model.",
            )
        return pa.schema(_fields_of(schema, ""))
    if isinstance(schema, str):
        raise InvalidArgumentError(f"{schema!r:.80} is not a schema", fix="If it names a Parquet file, give Path(…) of it.")
    if isinstance(schema, (ArrowStream, pa.RecordBatch, os.PathLike)):
        return schema_of_rows(schema)
    return pa.schema([_hinted(name, kind, name, nullable=True) for name, kind in schema])


def _fields_of(record: type, path: str) -> "list[pa.Field[Any]]":
    hints = typing.get_type_hints(record, include_extras=True)
    return [_hinted(name, hints[name], f"{path}{name}") for name in field_names(record) or ()]


def _hinted(name: str, hint: object, path: str, *, nullable: bool = False) -> "pa.Field[Any]":
    """A column's field; nullable only if the annotation says ``| None``, or if it is in general."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    given = [option for option in options if option is not types.NoneType]
    if len(given) != 1:
        raise InvalidArgumentError(f"column {path!r} has several types", fix="Choose one, with `| None` for nulls.")
    return pa.field(name, _type_of(path, given[0]), nullable=nullable or len(given) != len(options))


def _type_of(path: str, kind: object) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return kind
    if isinstance(kind, str):
        try:
            named: pa.DataType = pa.type_for_alias(kind)  # type: ignore[call-overload]
        except ValueError as error:
            raise InvalidArgumentError(
                f"column {path!r}: Arrow has no type {kind!r}", fix="Use a name such as 'int64'."
            ) from error
        return named
    found = _PYTHON_TYPES.get(kind) or _generic(path, kind) or _by_class(path, kind)
    if found is not None:
        return found
    if kind is decimal.Decimal:
        fix = "Say how many digits: pa.decimal128(18, 2), in a class typing.Annotated[Decimal, pa.decimal128(18, 2)]."
        raise InvalidArgumentError(f"column {path!r} is a Decimal of any number of digits", fix=fix)
    known = ", ".join(known.__name__ for known in _PYTHON_TYPES if isinstance(known, type))
    raise InvalidArgumentError(
        f"column {path!r} has no Arrow type for {kind!r}",
        fix=f"Use a pyarrow type, one of {known}, a list or dict of one, an Enum, or a class of records.",
    )


def _generic(path: str, kind: object) -> pa.DataType | None:
    """Of ``list[str]``, ``dict[str, int]``, ``Annotated[…, pa.…]`` and the like."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        said = [each for each in arguments[1:] if isinstance(each, pa.DataType)]
        return said[0] if said else _type_of(path, arguments[0])
    if origin in (list, Sequence) or (origin is tuple and arguments[1:] == (...,)):
        return pa.list_(_hinted("element", arguments[0], f"{path}[]"))
    if origin in (dict, Mapping):
        value: Any = _hinted("value", arguments[1], f"{path}[]")  # pyarrow takes a field, too
        found: pa.DataType = pa.map_(_type_of(f"{path}'s key", arguments[0]), value)
        return found
    return None


def _by_class(path: str, kind: object) -> pa.DataType | None:
    """Of an Enum whose values have one type, or a class of records."""
    if not isinstance(kind, type):
        return None
    if issubclass(kind, enum.Enum):
        found = {type(member.value) for member in kind}
        return _PYTHON_TYPES.get(found.pop()) if len(found) == 1 else None
    return pa.struct(_fields_of(kind, f"{path}.")) if field_names(kind) else None
