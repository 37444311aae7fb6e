"""Converts Avro schemas of any Hudi writer to Arrow schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pyarrow as pa

from headgate_tables.arrow import Field
from headgate_tables.errors import CorruptFileError, UnsupportedTableError
from headgate_tables.hudi.schema.avro_json import AvroSchema, AvroType
from headgate_tables.hudi.schema.canonical import map_of

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
MOST_CHARACTERS = 16 << 20
MOST_PARTS = 100_000
"""Columns and parts of columns, each named type counted wherever it is used: two dozen records that use each other twice would
be more than any memory holds. A table of a thousand columns has a few thousand.
"""
_MOST_FIXED = 1 << 20
_LOGICAL: Mapping[tuple[str, str | None], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


def arrow_schema(schema_json: str, where: str) -> pa.Schema:
    """The columns of a record schema, Hudi's own included when it has them.

    ``where`` names the file or commit in errors. Raises CorruptFileError for text that is no Avro record schema,
    UnsupportedTableError for a type that has no Arrow form here: unions of several types, recursive records,
    logical types that are not known here (an unknown one is ignored, as Avro demands).
    """
    if len(schema_json) > MOST_CHARACTERS:
        raise _not_a_schema(where, f"{len(schema_json)} characters")
    try:
        root: AvroSchema = json.loads(schema_json)
        kind = _SchemaReader(where).type_of(root, "", "") if isinstance(root, dict) else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, pa.ArrowException) as error:
        raise _not_a_schema(where, repr(error)) from error
    if not isinstance(kind, pa.StructType):
        raise _not_a_schema(where, "not a record's")
    return pa.schema([kind.field(i) for i in range(kind.num_fields)])


def _not_a_schema(where: str, how: str) -> CorruptFileError:
    return CorruptFileError(f"{where}: not an Avro schema ({how})", fix="Restore the file from a copy, or see what wrote it.")


class _SchemaReader:
    """Converts one schema, and remembers the named types on the way."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._named: dict[str, pa.DataType | None] = {}
        self._parts_of: dict[str, int] = {}
        self._parts = 0

    def field_of(self, name: str, schema: AvroSchema, namespace: str, path: str) -> Field:
        """``schema`` may be a union with null on either side."""
        if isinstance(schema, list):
            branches = [branch for branch in schema if branch != "null"]
            if len(branches) != 1:
                raise self._unsupported(path, f"a union of {len(branches)} types")
            return pa.field(name, self.type_of(branches[0], namespace, path), nullable=len(schema) > 1)
        return pa.field(name, self.type_of(schema, namespace, path), nullable=False)

    def type_of(self, schema: AvroSchema, namespace: str, path: str) -> pa.DataType:
        self._count(1, path)
        if isinstance(schema, str):
            return _PRIMITIVES[schema] if schema in _PRIMITIVES else self._reference(schema, namespace, path)
        if isinstance(schema, list):
            kind_of_union: pa.DataType = self.field_of("", schema, namespace, path).type
            return kind_of_union
        kind = schema["type"]
        build: Callable[[AvroType, str, str], pa.DataType] | None = {
            "record": self._record,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }.get(kind if isinstance(kind, str) else "")
        if build is not None:
            return build(schema, namespace, path)
        if kind == "enum":
            return self._remember(_full_name(schema, namespace)[0], pa.string())
        logical = schema.get("logicalType")
        if kind == "bytes" and logical == "decimal":
            return self._decimal(schema, path)
        return (
            _LOGICAL.get((kind, logical)) or self.type_of(kind, namespace, path)
            if isinstance(kind, str)
            else self.type_of(kind, namespace, path)
        )

    def _record(self, schema: AvroType, namespace: str, path: str) -> pa.DataType:
        name, inner = _full_name(schema, namespace)
        self._named[name] = None
        before = self._parts
        fields = [self.field_of(field["name"], field["type"], inner, f"{path}.{field['name']}") for field in schema["fields"]]
        if not fields and path:
            raise self._unsupported(path, "a record without fields")  # of which no bytes hold any number
        self._parts_of[name] = self._parts - before
        return self._remember(name, pa.struct(fields))

    def _fixed(self, schema: AvroType, namespace: str, path: str) -> pa.DataType:
        decimal = schema.get("logicalType") == "decimal"
        if not 1 <= int(schema["size"]) <= _MOST_FIXED:  # a null takes as many bytes as a value
            raise self._unsupported(path, f"a fixed of {int(schema['size'])} bytes")
        return self._remember(
            _full_name(schema, namespace)[0], self._decimal(schema, path) if decimal else pa.binary(int(schema["size"]))
        )

    def _array(self, schema: AvroType, namespace: str, path: str) -> pa.DataType:
        return pa.list_(self.field_of("element", schema["items"], namespace, path))

    def _map(self, schema: AvroType, namespace: str, path: str) -> pa.DataType:
        return map_of(self.field_of("value", schema["values"], namespace, path))

    def _decimal(self, schema: AvroType, path: str) -> pa.DataType:
        precision, scale = int(schema["precision"]), int(schema.get("scale", 0))
        if not 0 < precision <= 38 or not 0 <= scale <= precision:
            raise self._unsupported(path, f"decimal({precision}, {scale})")
        return pa.decimal128(precision, scale)

    def _reference(self, name: str, namespace: str, path: str) -> pa.DataType:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._named.get(full, self._named.get(name))
        if found is None:
            raise self._unsupported(path, f"the type {name!r}" if full not in self._named else f"the recursive record {name!r}")
        self._count(self._parts_of.get(full, self._parts_of.get(name, 0)), path)
        return found

    def _count(self, parts: int, path: str) -> None:
        self._parts += parts
        if self._parts > MOST_PARTS:
            raise self._unsupported(path, f"one of more than {MOST_PARTS} columns and parts of columns")

    def _remember(self, name: str, kind: pa.DataType) -> pa.DataType:
        self._named[name] = kind
        return kind

    def _unsupported(self, path: str, what: str) -> UnsupportedTableError:
        return UnsupportedTableError(
            f"{self._where}: column {path[1:]!r} is {what} in Avro", fix="Read this table with the program that wrote it."
        )


def _full_name(schema: AvroType, namespace: str) -> tuple[str, str]:
    """A named type's full name, and the namespace of what it encloses."""
    name = schema["name"]
    if "." in name:
        return name, name.rpartition(".")[0]
    own = schema.get("namespace", namespace)
    return (f"{own}.{name}" if own else name), own
