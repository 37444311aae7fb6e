"""Columns of tables that Hudi on Spark writes: every type of its own, and schemas that changed."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from support.readers import read_by_hudi_rs
from support.spark_rows import MakeTable, assert_readers_agree, rows


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_an_added_column_and_an_int_that_became_long(make: MakeTable, blocks: str) -> None:
    """hudi-rs 0.5.0 refuses the promoted column ("partial-update column 'v' has type Int32 …")."""
    table = make(options={"hoodie.logfile.data.block.format": blocks})
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(2, 6), 2))
    more = rows(range(4, 8), 3).append_column("extra", pa.array([1.5, None, -2.5, 0.0]))
    table.upsert(more)
    assert_readers_agree(table, live=12)
    table.upsert(more.slice(1, 2).set_column(3, "v", pa.array([2**40, -1])).set_column(2, "ts", pa.array([4, 4])))
    assert_readers_agree(table, live=12, hudi_rs=False)
    with pytest.raises(Exception, match="type Int32 but the table schema expects Int64"):
        read_by_hudi_rs(table.path)


EVERYTHING = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("c_short", pa.int16()),
        ("c_int", pa.int32()),
        ("c_long", pa.int64()),
        ("c_float", pa.float32()),
        ("c_double", pa.float64()),
        ("c_dec5", pa.decimal128(5, 2)),
        ("c_dec18", pa.decimal128(18, 4)),
        ("c_dec38", pa.decimal128(38, 10)),
        ("c_string", pa.string()),
        ("c_binary", pa.binary()),
        ("c_bool", pa.bool_()),
        ("c_date", pa.date32()),
        ("c_time", pa.timestamp("us", tz="UTC")),
        ("c_list", pa.list_(pa.int32())),
        ("c_map", pa.map_(pa.string(), pa.int64())),
        ("c_struct", pa.struct([("a", pa.int32()), ("l", pa.list_(pa.string())), ("t", pa.timestamp("us", tz="UTC"))])),
        ("c_structs", pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.float64())), ("b", pa.binary())]))),
    ]
)


def everything(ids: Iterable[int], ts: int) -> pa.Table:
    """Every type that Spark writes, with its extremes; every third row holds nulls only."""
    found = []
    for number in ids:
        sign = 1 if number % 2 else -1
        full: dict[str, Any] = {
            "c_short": sign * 32767,
            "c_int": sign * (2**31 - 1),
            "c_long": sign * (2**63 - 1),
            "c_float": [float("nan"), float("inf"), -0.0, 1.5][number % 4],
            "c_double": [1e308, float("nan"), float("-inf"), -0.0][number % 4],
            "c_dec5": Decimal("999.99").copy_sign(Decimal(sign)),
            "c_dec18": Decimal("99999999999999.9999").copy_sign(Decimal(sign)),
            "c_dec38": Decimal("9999999999999999999999999999.9999999999").copy_sign(Decimal(sign)),
            "c_string": ["", "ä€😀", "plain"][number % 3],
            "c_binary": [b"", b"\x00\xff"][number % 2],
            "c_bool": number % 2 == 0,
            "c_date": date(2026, 2, 28) if number % 2 else date(1969, 12, 31),
            "c_time": datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC)
            if number % 2
            else datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
            "c_list": [[], [number, -number]][number % 2],
            "c_map": [[], [("a", number), ("", None)]][number % 2],
            "c_struct": {"a": None, "l": ["x", ""], "t": datetime(2001, 1, 1, tzinfo=UTC)},
            "c_structs": [{"m": [("k", 0.5)], "b": b"\x01"}, {"m": None, "b": None}],
        }
        found.append({"id": f"k{number}", "ts": ts} | (full if number % 3 else {}))
    return pa.Table.from_pylist(found, schema=EVERYTHING)


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_every_type_that_spark_writes(make: MakeTable, blocks: str) -> None:
    """Base files by Spark's row writer (bulk insert) and by Hudi's Avro writer, and log blocks.

    hudi-rs 0.5.0 cannot bring a timestamp inside another type from an Avro block to the table's schema.
    """
    table = make(options={"hoodie.logfile.data.block.format": blocks}, index="SIMPLE")
    table.write(everything(range(8), 1), "bulk_insert")
    table.write(everything(range(8, 16), 1), "insert", hoodie_parquet_small_file_limit="0")
    table.upsert(everything(range(4, 12), 2))
    assert_readers_agree(table, live=16, hudi_rs=blocks == "parquet")
    if blocks == "avro":
        with pytest.raises(Exception, match="leaf type Timestamp"):
            read_by_hudi_rs(table.path)


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_timestamps_without_zone_that_hudi_rs_cannot_read(spark: Any, make: MakeTable, blocks: str) -> None:
    """The reason why we store such columns with the zone UTC: hudi-rs 0.5.0 panics on Avro's local timestamps."""
    table = make(options={"hoodie.logfile.data.block.format": blocks})
    stamped = rows(range(6), 1).append_column(
        "local", pa.array([datetime(2026, 2, 28, 1, 2, 3, 4, UTC).replace(tzinfo=None)] * 6, pa.timestamp("us"))
    )
    spark.conf.set("spark.sql.parquet.inferTimestampNTZ.enabled", "true")
    table.upsert(stamped)
    table.upsert(stamped.slice(2, 3))
    spark.conf.set("spark.sql.parquet.inferTimestampNTZ.enabled", "false")
    assert table.rows().schema.field("local").type == pa.timestamp("us")
    assert_readers_agree(table, live=6, hudi_rs=False)
    with pytest.raises(BaseException, match="not yet implemented"):  # a Rust panic is no Exception
        read_by_hudi_rs(table.path)
