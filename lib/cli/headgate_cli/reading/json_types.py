"""Types of JSON's columns, from all blocks of a file: a type that a later block widens, or a later field, changes nothing."""

import io
import json
import re
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.json as pa_json
import pyarrow.types as pat

from headgate_cli.reading.text_values import Array
from headgate_tables.arrow import pc

_EXACT = 2**53  # from here on, float64 lacks whole numbers
_MIXED = re.compile(r"Column\(/([^/)]*)[^)]*\) changed from (\w+) to (\w+)")


class MixedError(Exception):
    """A column has values of two kinds. ``name``: of the column in the row."""

    def __init__(self, name: str, one: str, other: str) -> None:
        super().__init__(f"column {name!r} has {one} and {other} values")
        self.name = name


Unexpected: TypeAlias = Literal["infer", "error", "ignore"]


def parsed(lines: bytes, schema: pa.Schema | None, unexpected: Unexpected = "infer") -> pa.RecordBatch:
    """The rows of ``lines``. ``unexpected``: whether fields that ``schema`` lacks become columns, are an error or left out.

    Raises pa.ArrowException, MixedError.
    """
    read = pa_json.ReadOptions(block_size=len(lines) + 1024, use_threads=False)
    options = pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected)
    try:
        table = pa_json.read_json(io.BytesIO(lines), read_options=read, parse_options=options)
    except pa.ArrowInvalid as error:
        if mixed := _MIXED.search(str(error)):
            raise MixedError(*mixed.groups()) from error
        raise
    return table.combine_chunks().to_batches()[0]


def inferred(lines: bytes, known: pa.Schema) -> tuple[pa.RecordBatch, pa.Schema]:
    """The rows of a block, and ``known`` with what the block adds: fields, floats among whole numbers, types of what was null.

    Texts stay texts, also those that look like times. Raises pa.ArrowException, MixedError.
    """
    try:
        rows = parsed(lines, _settled(known))
    except (pa.ArrowInvalid, MixedError):
        rows = None
    if rows is None or any(_has_times(kind) for kind in rows.schema.types):
        known = merged(known, parsed(lines, None).schema)
        rows = parsed(lines, _settled(known))
    return rows, merged(known, rows.schema)


def without(lines: bytes, name: str) -> bytes:
    """``lines`` without this field, for types: other values stay of the same kind, digits of numbers may go."""
    rows = (json.loads(line) for line in lines.split(b"\n") if line.strip())
    return b"\n".join(json.dumps({each: value for each, value in row.items() if each != name}).encode() for row in rows)


def merged(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """The columns of both, those of ``one`` first. Raises MixedError."""
    kinds = {field.name: field.type for field in one}
    for field in other:
        kinds[field.name] = _wider(kinds.get(field.name, pa.null()), field.type, field.name)
    return pa.schema(list(kinds.items()))


def _wider(one: pa.DataType, other: pa.DataType, name: str) -> pa.DataType:
    if pat.is_timestamp(other):
        other = pa.string()  # Arrow's guess of a text
    if pat.is_null(other):
        return one
    if isinstance(other, pa.StructType):
        before = pa.schema(list(one)) if isinstance(one, pa.StructType) else pa.schema([])
        if not isinstance(one, pa.StructType) and not pat.is_null(one):
            raise MixedError(name, _word(one), _word(other))
        both = (_wider_field(before, field, name) for field in other)
        return pa.struct([*(field for field in before if other.get_field_index(field.name) < 0), *both])
    if isinstance(other, pa.ListType):
        if not isinstance(one, pa.ListType) and not pat.is_null(one):
            raise MixedError(name, _word(one), _word(other))
        return pa.list_(_wider(one.value_type if isinstance(one, pa.ListType) else pa.null(), other.value_type, name))
    if pat.is_null(one) or one == other:
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if _word(one) == _word(other):
        return one  # the table's own, such as a decimal
    raise MixedError(name, _word(one), _word(other))


def _wider_field(before: pa.Schema, field: "pa.Field[Any]", name: str) -> "pa.Field[Any]":
    at = before.get_field_index(field.name)
    return pa.field(field.name, _wider(before.field(at).type if at >= 0 else pa.null(), field.type, name))


def _word(kind: pa.DataType) -> str:
    if pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind):
        return "number"
    return {pat.is_boolean(kind): "boolean", pat.is_struct(kind): "object", pat.is_list(kind): "array"}.get(True, "string")


def _has_times(kind: pa.DataType) -> bool:
    return pat.is_timestamp(kind) or any(_has_times(kind.field(at).type) for at in range(kind.num_fields))


def _settled(schema: pa.Schema) -> pa.Schema:
    """What is known for good: Arrow takes a type given as null for one that never has a value."""
    fields = ((field.name, _without_null(field.type)) for field in schema)
    return pa.schema([(name, kind) for name, kind in fields if kind is not None])


def _without_null(kind: pa.DataType) -> pa.DataType | None:
    if isinstance(kind, pa.StructType):
        found = ((field.name, _without_null(field.type)) for field in kind)
        return pa.struct([(name, inner) for name, inner in found if inner is not None])
    if isinstance(kind, pa.ListType):
        inner = _without_null(kind.value_type)
        return None if inner is None else pa.list_(inner)
    return None if pat.is_null(kind) else kind


def altered(lines: bytes, rows: pa.RecordBatch) -> Iterator[tuple[int, str, int]]:
    """Row, column and number of whole numbers that a float column holds as others. Costs a look where there is no large one."""
    names = [name for name in rows.schema.names if _has_large(rows.column(name))]
    if not names:
        return
    given = (json.loads(line) for line in lines.split(b"\n") if line.strip())
    for at, (row, held) in enumerate(zip(given, rows.select(names).to_pylist(), strict=True)):
        for name in names:
            for number in _altered(row.get(name), held[name]):
                yield at, name, number


def _has_large(column: Array) -> bool:
    if pat.is_struct(column.type):
        return any(map(_has_large, column.flatten()))
    if pat.is_list(column.type):
        return _has_large(column.flatten())
    return pat.is_floating(column.type) and bool(pc.any(pc.greater_equal(pc.abs(column), float(_EXACT))).as_py())


def _altered(given: Any, held: Any) -> Iterator[int]:
    if isinstance(given, dict) and isinstance(held, dict):
        for name, value in given.items():
            yield from _altered(value, held.get(name))
    elif isinstance(given, list) and isinstance(held, list):
        for one, other in zip(given, held, strict=True):
            yield from _altered(one, other)
    elif isinstance(given, int) and isinstance(held, float) and given != held:
        yield given
