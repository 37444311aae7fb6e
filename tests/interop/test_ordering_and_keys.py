"""Columns that order rows and columns that are keys, in every type that may be one, through three readers."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import FixCall, UnsupportedTypeError
from support.readers import assert_all_agree, read_by_hudi_rs, read_by_us
from support.same_rows import assert_same_rows, frozen_rows
from support.spark_hudi import SparkTable
from support.spark_rows import MakeTable, assert_readers_agree
from support.type_cases import CASES


@pytest.mark.parametrize("name", ["int32", "int64", "float32", "float64", "decimal_18_4", "date", "stamp_us_utc"])
def test_every_type_that_can_order_rows(spark: Any, tmp_path: Path, name: str) -> None:
    """Upserts and deletes with larger and smaller values of that type, over base and over log rows."""
    case = CASES[name]
    known = [value for value in case.values if value is not None and value == value]
    low, high = min(known), max(known)
    schema = pa.schema([("id", pa.string()), ("o", case.stored), ("v", pa.int32())])
    table = hudi.create_table(str(tmp_path / "t"), schema, record_key="id", ordering="o", buckets=1)

    def write(**values: tuple[Any, int]) -> pa.Table:
        return pa.table([list(values), [o for o, _ in values.values()], [v for _, v in values.values()]], schema=schema)

    table.upsert(
        write(late=(high, 1), newer=(low, 1), tie=(high, 1), kept=(high, 1), gone=(low, 1), gone_by_tie=(high, 1), again=(low, 1))
    )
    table.upsert(write(late=(low, 2), newer=(high, 2), tie=(high, 2), logged=(high, 2), logged_gone=(low, 2)))
    table.delete(
        write(kept=(low, 0), gone=(high, 0), gone_by_tie=(high, 0), again=(high, 0), logged=(low, 0), logged_gone=(high, 0))
    )
    table.upsert(write(again=(high, 4), gone=(low, 4), logged_gone=(low, 4)))
    assert low < high
    assert_all_agree(
        spark,
        tmp_path / "t",
        write(late=(high, 1), newer=(high, 2), tie=(high, 2), kept=(high, 1), logged=(high, 2), again=(high, 4)),
    )


def test_spark_compares_strings_of_parquet_log_blocks_wrongly(spark: Any, tmp_path: Path) -> None:
    """The reason why we refuse them as ordering: Spark keeps pointing at a buffer that the next row overwrites.

    Seen with tables of Spark's own too. When this fails, Hudi has been mended.
    """
    schema = pa.schema([("id", pa.string()), ("o", pa.string()), ("v", pa.int32())])
    with pytest.raises(UnsupportedTypeError, match="Ordering column 'o' is string"):
        hudi.create_table(str(tmp_path / "ours"), schema, record_key="id", ordering="o")
    table = SparkTable(spark, tmp_path, "t", ordering="o", options={"hoodie.logfile.data.block.format": "parquet"})
    numbers = list(range(20))
    ids = [f"k{number}" for number in numbers]
    table.upsert(pa.table([ids, [f"{number:02d}" for number in numbers], [1] * 20], schema=schema))
    table.upsert(pa.table([ids, [f"{19 - number:02d}" for number in numbers], [2] * 20], schema=schema))
    expected = pa.table({"id": ids, "v": pa.array([2] * 10 + [1] * 10, pa.int32())})
    assert_same_rows(read_by_us(table.path).select(["id", "v"]), expected, "our reader")
    assert_same_rows(read_by_hudi_rs(table.path).select(["id", "v"]), expected, "hudi-rs")
    assert frozen_rows(table.rows().select(["id", "v"])) != frozen_rows(expected)


def test_a_delete_at_an_int_of_zero_counts_against_everything(make: MakeTable, spark: Any, tmp_path: Path) -> None:
    """Fact HF5, and why we refuse one: Hudi's mark for "no ordering value" is that very number. A long of zero is any value."""
    deletes = pa.table({"id": ["a", "b"], "o": pa.array([0, -1], pa.int32()), "_hoodie_is_deleted": [True, True]})
    table = make(ordering="o")
    table.upsert(pa.table({"id": ["a", "b"], "o": pa.array([5, 5], pa.int32()), "_hoodie_is_deleted": [False, False]}))
    table.upsert(deletes)
    assert_readers_agree(table, live=1)

    narrow = pa.schema([("id", pa.string()), ("o", pa.int32())])
    ours = hudi.create_table(str(tmp_path / "narrow"), narrow, record_key="id", ordering="o", buckets=1)
    with pytest.raises(FixCall, match="has the value 0 in its ordering column"):
        ours.delete(deletes)

    wide = pa.schema([("id", pa.string()), ("o", pa.int64())])
    ours = hudi.create_table(str(tmp_path / "wide"), wide, record_key="id", ordering="o", buckets=1)
    rows = pa.table([["a", "b", "c"], [5, 5, 0]], schema=wide)
    ours.upsert(rows)
    ours.delete(pa.table([["a", "b", "c"], [0, -1, 0]], schema=wide))
    assert_all_agree(spark, tmp_path / "wide", rows.slice(0, 2))


@pytest.mark.parametrize("name", ["string", "int32", "int64", "bool", "date", "int16"])
def test_every_type_that_can_be_a_key(spark: Any, tmp_path: Path, name: str) -> None:
    """Spark must find the same rows, and hash them to the same bucket when it writes; see test_spark_takes_over."""
    case = CASES[name]
    schema = pa.schema([("k", case.given), ("v", pa.int32())])
    values = [value for value in dict.fromkeys(case.values) if value is not None and value != ""]
    table = hudi.create_table(str(tmp_path / "t"), schema, record_key="k", buckets=4)
    table.upsert(pa.table([values, [1] * len(values)], schema=schema))
    table.upsert(pa.table([values[:2], [2, 2]], schema=schema))
    stored = pa.schema([("k", case.stored), ("v", pa.int32())])
    assert_all_agree(spark, tmp_path / "t", pa.table([values, [2, 2, *[1] * (len(values) - 2)]], schema=stored))
