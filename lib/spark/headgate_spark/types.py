"""The types of a table's columns in Spark: those that Hudi's own reader shows there. And those of a DataFrame in Arrow."""

from __future__ import annotations

import inspect
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from headgate_spark.nested import leaves
from headgate_tables.arrow import Array, pc
from headgate_tables.errors import SchemaError

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


def fitted(rows: pa.RecordBatch, shown: pa.Schema) -> pa.RecordBatch:
    """The rows with the columns of ``shown``, which are those of the table now or of before it was altered. Fields of structs go
    by name. Raises SchemaError for a value that does not fit.
    """
    return pa.RecordBatch.from_arrays([_fitted(rows.column(field.name), field) for field in shown], schema=shown)


def _fitted(column: Array, field: pa.Field[pa.DataType]) -> Array:
    if column.type == field.type:
        return column
    try:
        found: Array = column.cast(field.type)
        _check_floats(column, found)
    # Not implemented: Arrow has no cast between such types at all. No alteration makes one of the other, but another table may
    # have got the name since.
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"column {field.name!r} is {column.type} now, and {field.type} in the query that is running: {error}",
            fix="The table was altered: start the query again, which then has the table's new types.",
        ) from error
    return found


def _check_floats(column: Array, found: Array) -> None:
    """Raises ArrowInvalid for doubles that are no floats: a cast takes the nearest one."""
    before = dict(leaves(column, ""))
    for path, floats in leaves(found, ""):
        doubles = before.get(path)
        if doubles is not None and pa.types.is_float64(doubles.type) and pa.types.is_float32(floats.type):
            same = pc.or_(pc.equal(doubles, floats.cast(pa.float64())), pc.is_nan(doubles))
            if pc.all(same).as_py() is False:
                raise pa.ArrowInvalid("a value needs a double")


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
