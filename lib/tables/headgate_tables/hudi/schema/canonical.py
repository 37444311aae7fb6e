"""Which Arrow types a table can hold, and the one form in which each is stored.

Readers resolve what a schema names (JVM readers have executed it), so a caller's schema contributes only names,
nullability and types from the list below to a file: field, schema and extension metadata are dropped
(parquet-avro CVE-2025-30065).

Two types are stored as others, because some reader could not open the table otherwise:
- timestamps without zone as UTC ones (hudi-rs 0.5.0 panics on Avro's local-timestamp-*),
- times of day as int32 milliseconds or int64 microseconds (Spark 3.5 refuses every query on a Parquet TIME column).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.arrow import Field
from headgate_tables.errors import SchemaError, UnsupportedTypeError
from headgate_tables.hudi.schema.meta_columns import RESERVED_PREFIX

_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_supported(schema: pa.Schema) -> None:
    """Checks that a table can be created with these columns.

    Raises UnsupportedTypeError naming the column and the type to use instead; SchemaError for a name that Avro does not
    allow, that Hudi reserves, or that differs from another in case only (Spark could not tell them apart).
    """
    check_names(schema.names, "")
    for field in schema:
        if field.name.startswith(RESERVED_PREFIX):
            raise SchemaError(
                f"Column {field.name!r} has a name that Hudi reserves",
                fix=f"Rename it so that it does not begin with {RESERVED_PREFIX}.",
            )
    table_schema(schema)


def table_schema(schema: pa.Schema) -> pa.Schema:
    """The columns as the table stores them: same names, order and nullability, canonical types, no metadata.

    Raises UnsupportedTypeError naming the column (dotted path into nested ones) and the type to use instead.
    """
    return pa.schema([_stored_field(field, field.name) for field in schema])


def _stored_field(field: Field, path: str) -> Field:
    return pa.field(field.name, stored_type(field.type, path), nullable=field.nullable)


def stored_type(kind: pa.DataType, path: str) -> pa.DataType:
    """The canonical type of one column; ``path`` names it in errors."""
    if isinstance(kind, pa.BaseExtensionType):
        return stored_type(kind.storage_type, path)
    if pat.is_dictionary(kind):
        return stored_type(kind.value_type, path)
    if kind in _STORED_AS:
        return _STORED_AS[kind]
    if pat.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us" if kind.unit == "us" else "ms", tz="UTC")
    if pat.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return pa.decimal128(kind.precision, kind.scale)
    if pat.is_fixed_size_binary(kind) and kind.byte_width > 0:
        return kind
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.ListViewType | pa.LargeListViewType):
        item = kind.value_field
        return pa.list_(pa.field("element", stored_type(item.type, f"{path}.element"), nullable=item.nullable))
    if isinstance(kind, pa.MapType):
        return _stored_map(kind.key_type, kind.item_field, path)
    if isinstance(kind, pa.StructType) and kind.num_fields:
        fields = [kind.field(i) for i in range(kind.num_fields)]
        check_names([field.name for field in fields], path)
        return pa.struct([_stored_field(field, f"{path}.{field.name}") for field in fields])
    raise UnsupportedTypeError(f"Column {path!r} has the Arrow type {kind}, which a Hudi table cannot hold", fix=_instead(kind))


_STORED_AS: dict[pa.DataType, pa.DataType] = {
    pa.bool_(): pa.bool_(),
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.int32(): pa.int32(),
    pa.int64(): pa.int64(),
    pa.float32(): pa.float32(),
    pa.float64(): pa.float64(),
    pa.string(): pa.string(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date32(): pa.date32(),
    pa.date64(): pa.date32(),
    pa.time32("ms"): pa.int32(),
    pa.time64("us"): pa.int64(),
}


def _stored_map(key: pa.DataType, item: Field, path: str) -> pa.DataType:
    if stored_type(key, f"{path}.key") != pa.string():
        raise UnsupportedTypeError(
            f"Column {path!r} is a map whose keys are {key}", fix="Use a map with string keys, or a list of structs."
        )
    value = pa.field("value", stored_type(item.type, f"{path}.value"), nullable=item.nullable)
    return map_of(value)


def map_of(value: Field) -> pa.DataType:
    """A map from strings to values of this field's type and nullability."""
    kind: pa.DataType = pa.map_(pa.string(), value)  # type: ignore[call-overload]
    return kind


def check_names(names: Iterable[str], path: str) -> None:
    """``path``: of the struct whose fields they are, "" for columns. Raises SchemaError for a name that Avro does not allow, and
    for two that differ only in case.
    """
    seen: dict[str, str] = {}
    for name in names:
        full = f"{path}.{name}" if path else name
        if not _AVRO_NAME.fullmatch(name):
            raise SchemaError(
                f"Column {full!r} has a name that Avro does not allow",
                fix="Use ASCII letters, digits and underscores, and no digit first.",
            )
        twin = seen.get(name.lower())
        if twin is not None:
            raise SchemaError(
                f"Columns {twin!r} and {full!r} have the same name", fix="Rename one; Hudi readers ignore upper and lower case."
            )
        seen[name.lower()] = name


def _instead(kind: pa.DataType) -> str:
    if pat.is_null(kind):
        return "Give the column the type that its values will have; null alone cannot be widened later."
    if pat.is_unsigned_integer(kind):
        return "Cast it to int32 or int64; for uint64 beyond 2**63 use decimal128(20, 0)."
    if pat.is_float16(kind):
        return "Cast it to float32."
    if pat.is_timestamp(kind):
        return "Cast it to timestamp('us')."
    if pat.is_time(kind):
        return "Cast it to time64('us')." if pat.is_time64(kind) else "Cast it to time32('ms')."
    if pat.is_duration(kind) or pat.is_interval(kind):
        return "Store it as an int64 count of one unit, such as microseconds."
    if pat.is_decimal(kind):
        return "Cast it to a decimal128 of at most 38 digits, with a scale from 0 to the precision."
    if pat.is_union(kind):
        return "Use a struct with one nullable field per alternative."
    if pat.is_run_end_encoded(kind):
        return "Decode it with pyarrow.compute.run_end_decode."
    return "Use bool, int, float, decimal, string, binary, date, time, timestamp, or a list, map or struct of these."
