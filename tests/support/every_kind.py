"""A table with a column of every type, records of every kind for its struct, and its rows as hudi-rs reads them."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
import pyarrow as pa
import pydantic

from headgate.definition import TableInfo
from headgate.rows import RowFormat
from headgate_proto.api.v1 import ingest_pb2 as wire
from headgate_tables import hudi
from support.readers import read_by_hudi_rs

SPOT = pa.struct([("x", pa.float64()), ("y", pa.int64())])
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("id", pa.int64()),
    ("flag", pa.bool_()),
    ("small", pa.int32()),
    ("big", pa.int64()),
    ("narrow", pa.float32()),
    ("wide", pa.float64()),
    ("text", pa.string()),
    ("raw", pa.binary()),
    ("fixed", pa.binary(16)),
    ("day", pa.date32()),
    ("ms", pa.timestamp("ms", tz="UTC")),
    ("us", pa.timestamp("us", tz="UTC")),
    ("amount", pa.decimal128(10, 2)),
    ("tags", pa.list_(pa.string())),
    ("counts", pa.list_(pa.int64())),
    ("moments", pa.list_(pa.timestamp("us", tz="UTC"))),
    ("spot", SPOT),
    ("spots", pa.list_(SPOT)),
    ("props", pa.map_(pa.string(), pa.int64())),
]
SCHEMA = pa.schema(_COLUMNS)


class SpotTuple(NamedTuple):
    x: float
    y: int | None


@dataclasses.dataclass
class SpotData:
    x: float
    y: int | None


@attrs.define
class SpotAttrs:
    x: float
    y: int


class SpotModel(pydantic.BaseModel):
    x: float
    y: int


INFO = TableInfo("t", SCHEMA, ("id",), (), None, 1, hive_style=False, url="", uuid="", table_version=8)


def row(number: int, column: str, value: object) -> dict[str, object]:
    return {**dict.fromkeys(SCHEMA.names), "id": number, column: value}


def read_back(folder: pathlib.Path, schema: pa.Schema, rows: Sequence[object]) -> dict[int, dict[str, Any]]:
    """What hudi-rs reads of a table into which the rows, or batches, went as the SDK converts them, by ``id``."""
    info = dataclasses.replace(INFO, schema=schema)
    with hudi.create_table(folder.as_uri(), schema, record_key="id", buckets=1) as table:
        batches = [each for each in rows if isinstance(each, pa.RecordBatch)]
        data = pa.Table.from_batches(batches) if batches else list(rows)
        batches = list(RowFormat(info, wire.OPERATION_UPSERT).convert(data))
        table.upsert(pa.Table.from_batches(batches))
    return {found["id"]: found for found in read_by_hudi_rs(folder).to_pylist()}
