"""The types of a table's columns in Spark: those that Hudi's own reader shows there. And those of a DataFrame in Arrow."""

from __future__ import annotations

import inspect
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

_ZONE: Final = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
"""PySpark 4 wants it for timestamps; PySpark 3.5 takes UTC by itself."""


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The columns of a DataFrame."""
    found: pa.Schema = to_arrow_schema(schema, **_ZONE)
    return found


def shown_schema(schema: pa.Schema) -> pa.Schema:
    """The columns in types that Spark has, all nullable: microseconds for milliseconds, binary for binary of fixed size."""
    return pa.schema([_field(field) for field in schema])


def struct_of(schema: pa.Schema) -> StructType:
    """``shown_schema`` as Spark's own."""
    found: StructType = from_arrow_schema(shown_schema(schema), prefer_timestamp_ntz=True)
    return found


def _field(field: pa.Field[pa.DataType], name: str = "") -> pa.Field[pa.DataType]:
    return pa.field(name or field.name, _shown(field.type))


def _shown(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.MapType):
        return pa.map_(_shown(kind.key_type), _shown(kind.item_type))
    if isinstance(kind, pa.ListType):
        return pa.list_(_field(kind.value_field, "element"))
    if isinstance(kind, pa.StructType):
        return pa.struct([_field(kind.field(at)) for at in range(kind.num_fields)])
    if isinstance(kind, pa.TimestampType):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind
