"""A table's Arrow schema as the Avro JSON that Hudi keeps in commits, log headers and Parquet footers.

Names and key order are those of Hudi on Spark (Hudi: AvroConversionUtils,
HoodieAvroUtils.sanitizeName; test_the_schema_of_a_table_that_spark_wrote_is_reproduced_to_the_byte).
"""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.arrow import Field
from headgate_tables.hudi.schema.meta_columns import META_COLUMNS, without_meta

Json = str | dict[str, object] | list[object]

_PRIMITIVES: dict[pa.DataType, Json] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}
_TIMESTAMPS = {"ms": "timestamp-millis", "us": "timestamp-micros"}


def avro_schema(schema: pa.Schema, table_name: str, *, meta_columns: bool) -> str:
    """The JSON text for canonical columns (``canonical.table_schema``; others: ValueError), with Hudi's five in front if asked.

    Hudi's columns in ``schema`` are left out first, so that a schema read from a file may be passed.
    """
    name = sanitize(table_name)
    record, namespace = f"{name}_record", f"hoodie.{name}"
    fields: list[Json] = [
        {"name": column, "type": ["null", "string"], "doc": "", "default": None} for column in META_COLUMNS if meta_columns
    ]
    fields += [_field(field, f"{namespace}.{record}") for field in without_meta(schema)]
    return json.dumps({"type": "record", "name": record, "namespace": namespace, "fields": fields}, separators=(",", ":"))


def sanitize(name: str) -> str:
    """A table name as part of an Avro name: two underscores for each character that Avro does not allow."""
    return re.sub(r"^[^A-Za-z_]|[^A-Za-z0-9_]", "__", name)


def decimal_size(precision: int) -> int:
    """Bytes of the Avro fixed that holds a decimal: the fewest that two's complement needs."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


def _field(field: Field, namespace: str) -> Json:
    """``namespace``: the enclosing record's full name."""
    kind = _type(field.type, field.name, namespace)
    if field.nullable:
        return {"name": field.name, "type": ["null", kind], "default": None}
    return {"name": field.name, "type": kind}


def _type(kind: pa.DataType, name: str, namespace: str) -> Json:
    """``name``: the column that the type belongs to, after which nested records and fixeds are named."""
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if pat.is_timestamp(kind) and kind.unit in _TIMESTAMPS:
        logical = _TIMESTAMPS[kind.unit]
        return {"type": "long", "logicalType": logical if kind.tz else f"local-{logical}"}
    if pat.is_decimal128(kind):
        decimal = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return _fixed(name, namespace, decimal_size(kind.precision)) | decimal
    if pat.is_fixed_size_binary(kind):
        return _fixed(name, namespace, kind.byte_width)
    if isinstance(kind, pa.ListType):
        return {"type": "array", "items": _item(kind.value_field, name, namespace)}
    if isinstance(kind, pa.MapType):
        return {"type": "map", "values": _item(kind.item_field, name, namespace)}
    if isinstance(kind, pa.StructType):
        fields: list[object] = [_field(kind.field(i), f"{namespace}.{name}") for i in range(kind.num_fields)]
        return {"type": "record", "name": name, "namespace": namespace, "fields": fields}
    raise ValueError(f"not a canonical type: {kind} of {name}")


def _item(field: Field, name: str, namespace: str) -> Json:
    kind = _type(field.type, name, namespace)
    return ["null", kind] if field.nullable else kind


def _fixed(name: str, namespace: str, size: int) -> dict[str, object]:
    return {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}", "size": size}
