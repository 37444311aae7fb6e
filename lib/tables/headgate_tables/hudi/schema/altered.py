"""A table's schema after an alteration: new nullable columns, wider types, columns that may be null. Pure.

Offered is what Hudi on Spark and this library read of older files without a setting (fact HF14).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.arrow import Field
from headgate_tables.errors import OptionError, SchemaError
from headgate_tables.face.altering import Alteration, AlterResult
from headgate_tables.hudi.schema.canonical import check_names, check_supported, map_of, stored_type
from headgate_tables.name_lists import names_in
from headgate_tables.near_names import did_you_mean

_Change = Callable[[Field], Field]


def altered(schema: pa.Schema, alteration: Alteration, fixed: Collection[str]) -> pa.Schema:
    """The columns afterwards, canonical as ``schema`` is. ``fixed``: key, partition and ordering columns, which stay as they are.

    A change that has been made already is none: a column that is there with the type to add, a type that is as wide.
    Raises SchemaError for any other column that is there, one that is not, and a type that does not hold every older value;
    UnsupportedTypeError.
    """
    for path, kind in _types(alteration.add, "add"):
        schema = _added(schema, path, stored_type(kind, path))
    for path, kind in _types(alteration.widen, "widen"):
        schema = _changed(schema, path, partial(_widened, stored_type(kind, path), path, fixed))
    for path in names_in(alteration.nullable, "nullable"):
        schema = _changed(schema, path, partial(_relaxed, path, fixed))
    check_supported(schema)
    return schema


def _types(given: Mapping[str, pa.DataType], what: str) -> Iterator[tuple[str, pa.DataType]]:
    """Columns and their types. Raises OptionError for anything else, as a name of a type."""
    if not isinstance(given, Mapping):
        raise OptionError(f"{what}={given!r} gives no types", fix=f"Pass a mapping: {what}={{'a': pyarrow.int64()}}.")
    for path in names_in(given, what):
        if not isinstance(kind := given[path], pa.DataType):
            raise OptionError(f"{what} gives {path!r} the type {kind!r}", fix="Pass a type of pyarrow, such as pyarrow.int64().")
        yield path, kind


def changes(before: pa.Schema, after: pa.Schema) -> AlterResult:
    """What an alteration does, without an instant. ``after``: made by ``altered`` of ``before``."""
    old, new = dict(_all_parts(list(before), "")), dict(_all_parts(list(after), ""))
    kept = [path for path in new if path in old]
    added = [path for path in new if path not in old and path.rpartition(".")[0] in ("", *kept)]
    widened = [path for path in kept if not new[path].type.num_fields and new[path].type != old[path].type]
    return AlterResult(
        instant="",
        added=[f"{path}: {new[path].type}" for path in added],
        widened=[f"{path}: {old[path].type} to {new[path].type}" for path in widened],
        nullable=[path for path in kept if new[path].nullable and not old[path].nullable],
        schema=after,
    )


def _all_parts(fields: Sequence[Field], above: str) -> Iterator[tuple[str, Field]]:
    """Every column, each followed by its parts, by path."""
    for field in fields:
        path = f"{above}.{field.name}" if above else field.name
        yield path, field
        yield from _all_parts(parts_of(field.type), path)


def _added(schema: pa.Schema, path: str, kind: pa.DataType) -> pa.Schema:
    above, _, name = path.rpartition(".")
    for part in path.split("."):
        check_names([part], "")
    new = pa.field(name, kind)
    if not above:
        return pa.schema(_with(list(schema), new, path))

    def extend(field: Field) -> Field:
        if not isinstance(field.type, pa.StructType):
            raise SchemaError(f"{above!r} is {field.type}, which has no fields", fix="Add fields to a struct, or a column.")
        return field.with_type(pa.struct(_with(parts_of(field.type), new, path)))

    return _changed(schema, above, extend)


def _with(fields: Sequence[Field], new: Field, path: str) -> list[Field]:
    there = next((field for field in fields if field.name == new.name), None)
    if there is None:
        return [*fields, new]
    if there.type == new.type:
        return list(fields)
    raise SchemaError(
        f"the table has a column {path!r} already, of type {there.type}, not {new.type}",
        fix="Widen it if the new type holds all of its values; else add a column of another name.",
    )


def _widened(wider: pa.DataType, path: str, fixed: Collection[str], field: Field) -> Field:
    if field.type == wider:
        return field
    _check_free(path, fixed, "its type")
    if not holds_all(field.type, wider):
        raise SchemaError(
            f"column {path!r} is {field.type} and cannot become {wider}",
            fix="Integers become int64 or, from 32 bits, float64; float32 becomes float64; decimals get more digits before the "
            "point. For any other type add a column.",
        )
    return field.with_type(wider)


def holds_all(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether every value of ``narrow`` is one of ``wide``, and Hudi's readers read it as that."""
    if pat.is_decimal128(narrow) and pat.is_decimal128(wide):
        return bool(wide.scale == narrow.scale and wide.precision > narrow.precision)
    return (narrow, wide) in _WIDER


_WIDER = frozenset(
    [(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())],
)


def _relaxed(path: str, fixed: Collection[str], field: Field) -> Field:
    if field.nullable:
        return field
    _check_free(path, fixed, "that it must not be null")
    return field.with_nullable(True)


def _check_free(path: str, fixed: Collection[str], what: str) -> None:
    if path.partition(".")[0] in fixed:
        raise SchemaError(
            f"column {path!r} is a part of the key, partition or ordering, so that {what} stays",
            fix="Create a table with the other type, and load the rows into it.",
        )


def _changed(schema: pa.Schema, path: str, change: _Change) -> pa.Schema:
    names = path.split(".")
    return pa.schema(_replaced(list(schema), names, path, change))


def _replaced(fields: Sequence[Field], names: Sequence[str], path: str, change: _Change) -> list[Field]:
    """The fields with ``change`` applied to the one that ``names`` leads to."""
    first, rest = names[0], names[1:]
    if all(field.name != first for field in fields):
        near = did_you_mean(first, [field.name for field in fields])
        there = ", ".join(field.name for field in fields) or "none"
        raise SchemaError(f"the table has no column {path!r}", fix=f"{near}Names there: {there}.")
    return [_inside(field, rest, path, change) if field.name == first else field for field in fields]


def _inside(field: Field, names: Sequence[str], path: str, change: _Change) -> Field:
    if not names:
        return change(field)
    parts = _replaced(parts_of(field.type), names, path, change)
    kind = field.type
    if isinstance(kind, pa.StructType):
        return field.with_type(pa.struct(parts))
    return field.with_type(pa.list_(parts[0]) if isinstance(kind, pa.ListType) else map_of(parts[0]))


def parts_of(kind: pa.DataType) -> list[Field]:
    """What a path can go on with: fields of a struct, a list's ``element``, a map's ``value``."""
    if isinstance(kind, pa.StructType):
        return [kind.field(at) for at in range(kind.num_fields)]
    if isinstance(kind, pa.ListType):
        return [kind.value_field]
    return [kind.item_field] if isinstance(kind, pa.MapType) else []
