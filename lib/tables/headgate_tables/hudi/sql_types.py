"""Arrow types in the SQL of other engines."""

from typing import Literal

import pyarrow as pa

from headgate_tables.errors import UnsupportedTypeError

Dialect = Literal["flink", "hive"]

_PLAIN: dict[pa.DataType, tuple[str, str]] = {
    pa.bool_(): ("BOOLEAN", "BOOLEAN"),
    pa.int32(): ("INT", "INT"),
    pa.int64(): ("BIGINT", "BIGINT"),
    pa.float32(): ("FLOAT", "FLOAT"),
    pa.float64(): ("DOUBLE", "DOUBLE"),
    pa.string(): ("STRING", "STRING"),
    pa.binary(): ("BYTES", "BINARY"),
    pa.date32(): ("DATE", "DATE"),
}


def sql_type(kind: pa.DataType, dialect: Dialect) -> str:
    """The column type of a stored Arrow type. Raises UnsupportedTypeError for one that is not known there."""
    flink = dialect == "flink"
    if kind in _PLAIN:
        return _PLAIN[kind][0 if flink else 1]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        # Hudi's Flink connector takes Avro's timestamps, which are moments, for TIMESTAMP, and local ones for TIMESTAMP_LTZ.
        return f"TIMESTAMP{'' if kind.tz else '_LTZ'}({3 if kind.unit == 'ms' else 6})" if flink else "TIMESTAMP"
    if pa.types.is_list(kind):
        return f"ARRAY<{sql_type(kind.value_type, dialect)}>"
    if pa.types.is_map(kind):
        return f"MAP<{sql_type(kind.key_type, dialect)}, {sql_type(kind.item_type, dialect)}>"
    if pa.types.is_struct(kind):
        separator, name = (" ", "ROW") if flink else (":", "STRUCT")
        return f"{name}<{', '.join(f'`{each.name}`{separator}{sql_type(each.type, dialect)}' for each in kind)}>"
    raise UnsupportedTypeError(f"{kind} has no type in the SQL of {dialect}", fix="Read the table with Spark or hudi-rs.")
