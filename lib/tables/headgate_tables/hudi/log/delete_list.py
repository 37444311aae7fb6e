"""Reads delete records one by one: for blocks with mixed kinds of ordering value, with several Avro blocks, or damaged."""

from __future__ import annotations

import io
from typing import TypeAlias

import fastavro
import pyarrow as pa
from fastavro.types import DictSchema, Schema

from headgate_tables.arrow import Array
from headgate_tables.errors import CorruptFileError, UnsupportedTableError

NO_ORDERING = 0
"""The IntWrapper value that stands for "no ordering value" (Hudi's OrderingValues default)."""

_Wrapped: TypeAlias = tuple[str, dict[str, object]]
"""An ordering value as fastavro reads it: the wrapper's full name and its fields."""

_MODEL = "org.apache.hudi.avro.model"
_WRAPPERS: dict[str, tuple[Schema, pa.DataType]] = {
    "BooleanWrapper": ("boolean", pa.bool_()),
    "IntWrapper": ("int", pa.int32()),
    "LongWrapper": ("long", pa.int64()),
    "FloatWrapper": ("float", pa.float32()),
    "DoubleWrapper": ("double", pa.float64()),
    "BytesWrapper": ("bytes", pa.binary()),
    "StringWrapper": ("string", pa.string()),
    "DateWrapper": ("int", pa.date32()),
    "DecimalWrapper": ({"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}, pa.decimal128(30, 15)),
    "TimeMicrosWrapper": ("long", pa.time64("us")),
    "TimestampMicrosWrapper": ("long", pa.timestamp("us", tz="UTC")),
}
"""In the union's order (Hudi's HoodieDeleteRecord.avsc), after null."""


def _record(name: str, fields: list[DictSchema]) -> DictSchema:
    return {"type": "record", "name": name, "namespace": _MODEL, "fields": fields}


def _schema() -> Schema:
    wrappers: list[Schema] = [_record(name, [{"name": "value", "type": value}]) for name, (value, _) in _WRAPPERS.items()]
    local_date = _record("LocalDateWrapper", [{"name": "value", "type": "int"}])
    items = {"type": "array", "items": ["null", *(f"{_MODEL}.{name}" for name in _WRAPPERS), local_date]}
    array = _record("ArrayWrapper", [{"name": "wrappedValues", "type": ["null", items], "default": None}])
    text = {"type": ["null", "string"], "default": None}
    delete = _record(
        "HoodieDeleteRecord",
        [
            {"name": "recordKey"} | text,
            {"name": "partitionPath"} | text,
            {"name": "orderingVal", "type": ["null", *wrappers, array]},
        ],
    )
    return fastavro.parse_schema(
        _record("HoodieDeleteRecordList", [{"name": "deleteRecordList", "type": {"type": "array", "items": delete}}])
    )


DELETE_LIST = _schema()
"""Parsed schema of a delete block's payload, as of Hudi 1.1 (which added ArrayWrapper)."""


def decode_list(payload: pa.Buffer, where: str) -> tuple[Array, Array, Array | None]:
    """Keys, partitions and ordering values as in ``deletes.DeleteRows``. Raises CorruptFileError, UnsupportedTableError."""
    stream = io.BytesIO(payload)
    try:
        read = fastavro.schemaless_reader(stream, DELETE_LIST, None, return_record_name=True)
        if not isinstance(read, dict):
            raise TypeError(f"{read!r} is not a record")
        records = read["deleteRecordList"]
    except (
        ValueError,
        EOFError,
        IndexError,
        KeyError,
        TypeError,
        OverflowError,
        MemoryError,
        StopIteration,
        ArithmeticError,
    ) as error:
        raise _corrupt(where, f"its records are not Avro ({error!r})") from error
    if stream.tell() != payload.size or any(record["recordKey"] is None for record in records):
        raise _corrupt(where, "its records do not fill it, or one has no key")
    wrapped = [record["orderingVal"] for record in records]
    keys = pa.array([record["recordKey"] for record in records], pa.string())
    partitions = pa.array([record["partitionPath"] for record in records], pa.string())
    return keys, partitions, _ordering(wrapped, where)


def _ordering(wrapped: list[_Wrapped | None], where: str) -> Array | None:
    given = [_given(value) for value in wrapped]
    names = {value[0].rpartition(".")[2] for value in given if value is not None}
    if not names:
        return None
    if len(names) > 1 or not names <= _WRAPPERS.keys():
        raise UnsupportedTableError(
            f"{where}: deletes ordered by {', '.join(sorted(names))}",
            fix="Read this table with Spark, or compact it there first.",
        )
    kind = _WRAPPERS[names.pop()][1]
    try:
        return pa.array([None if value is None else value[1]["value"] for value in given], kind)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise _corrupt(where, f"an ordering value is out of range ({error})") from error


def _given(value: _Wrapped | None) -> _Wrapped | None:
    """None also for the value that means none."""
    return None if value is None or (value[0] == f"{_MODEL}.IntWrapper" and value[1]["value"] == NO_ORDERING) else value


def _corrupt(where: str, how: str) -> CorruptFileError:
    return CorruptFileError(
        f"{where}: a delete block is damaged, {how}", fix="Restore the file from a copy; verify() names every damaged file."
    )
