"""Folders of partitions: one and two columns, hive style or not, URL-encoded or not, odd values, other types than text."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.oracle import Row
from support.readers import assert_all_agree, read_by_us
from support.spark_hudi import read_by_spark
from support.tracked import Tracked

ODD = [
    "a b",
    "a/b",
    "a=b",
    "100%",
    "%2F",
    "größe",
    "日本",
    "😀",
    "a:b",
    "q?x#y",
    "c\\d",
    '"',
    "'",
    "tab\there",
    "{x}",
    "+",
    ".hidden",
    "_under",
    "x=y/z",
    "2026-02-28",
    "007",
]
SAFE = ["a b", "plain", "größe", "日本", "+", "_under", ".hidden", "2026-02-28", "007"]


def schema(*partition: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.string()), *partition])


def row(number: int, ts: int, **partition: Any) -> Row:
    return {"id": number, "ts": ts, "v": f"v{number}.{ts}"} | partition


@pytest.mark.parametrize("hive_style", [False, True], ids=["plain", "hive"])
@pytest.mark.parametrize("values", [ODD, SAFE], ids=["encoded", "raw"])
def test_one_column_of_text(spark: Any, tmp_path: Path, hive_style: bool, values: list[str]) -> None:
    table = Tracked(
        tmp_path / "t",
        schema(("p", pa.string())),
        partition=["p"],
        ordering="ts",
        buckets=1,
        hive_style=hive_style,
        url_encode=values is ODD,
    )
    table.upsert([row(number, 1, p=value) for number, value in enumerate(values)])
    table.upsert([row(number, 2, p=value) for number, value in enumerate(values) if number % 2])
    table.delete([row(number, 3, p=value) for number, value in enumerate(values) if number % 4 == 0])
    assert_all_agree(spark, table.path, table.expected())
    for value in values:
        found = table.table.scan(partitions=[{"p": value}]).to_table()
        assert set(found["p"].to_pylist()) <= {value}


@pytest.mark.parametrize("hive_style", [False, True], ids=["plain", "hive"])
def test_two_columns_and_the_same_key_in_several_partitions(spark: Any, tmp_path: Path, hive_style: bool) -> None:
    table = Tracked(
        tmp_path / "t",
        schema(("p", pa.string()), ("q", pa.string())),
        partition=["p", "q"],
        ordering="ts",
        buckets=2,
        hive_style=hive_style,
    )
    pairs = [(p, q) for p in ("a/b", "a", "x=1") for q in ("b", "/", "%")]
    table.upsert([row(number, 1, p=p, q=q) for number in range(3) for p, q in pairs])
    table.upsert([row(1, 2, p=p, q=q) for p, q in pairs[::2]])
    table.delete([row(2, 2, p=p, q=q) for p, q in pairs[::3]])
    assert_all_agree(spark, table.path, table.expected())


TYPED = {
    "int32": (pa.int32(), [0, -7, 2**31 - 1]),
    "int64": (pa.int64(), [0, -7, 2**63 - 1]),
    "bool": (pa.bool_(), [True, False]),
    "date": (pa.date32(), [date(1969, 12, 31), date(2026, 2, 28)]),
}


@pytest.mark.parametrize("hive_style", [False, True], ids=["plain", "hive"])
@pytest.mark.parametrize("name", TYPED)
def test_columns_of_other_types(spark: Any, tmp_path: Path, hive_style: bool, name: str) -> None:
    kind, values = TYPED[name]
    table = Tracked(tmp_path / "t", schema(("p", kind)), partition=["p"], ordering="ts", buckets=1, hive_style=hive_style)
    table.upsert([row(number, 1, p=value) for number in range(2) for value in values])
    table.upsert([row(0, 2, p=value) for value in values])
    assert_all_agree(spark, table.path, table.expected())


def test_partitions_that_a_later_commit_adds(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", schema(("p", pa.string())), partition=["p"], ordering="ts", buckets=1)
    table.upsert([row(1, 1, p="first")])
    assert_all_agree(spark, table.path, table.expected())
    table.upsert([row(1, 2, p="first"), row(1, 1, p="second")])
    table.delete([row(9, 1, p="third")])
    table.upsert([row(4, 1, p="fourth")])
    assert_all_agree(spark, table.path, table.expected())


def test_predicates_on_partition_columns_choose_the_same_rows(spark: Any, tmp_path: Path) -> None:
    """Spark prunes folders by what it parses from their names."""
    table = Tracked(tmp_path / "t", schema(("p", pa.string()), ("q", pa.int32())), partition=["p", "q"], ordering="ts", buckets=1)
    table.upsert([row(number, 1, p=p, q=q) for number, (p, q) in enumerate((p, q) for p in ("a/b", "a", "ü") for q in (1, 2))])
    import pyarrow.compute as pc

    ours = table.table.scan(filter=(pc.field("p") == "a/b") & (pc.field("q") > 1)).to_table()
    frame = spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(str(table.path))
    assert [found.id for found in frame.where("p = 'a/b' and q > 1").collect()] == ours["id"].to_pylist() == [1]
    assert read_by_us(table.path).num_rows == read_by_spark(spark, table.path).num_rows == 6
