"""Bulk loads by real Spark: what readers see afterwards, and what tasks and drivers leave that fail on the way."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_spark import bulk_insert, bulk_load
from headgate_spark.spread import TASK, numbers_of_tasks, task_of
from headgate_tables import hudi
from headgate_tables.errors import NullKeyError, SchemaError, TransactionError
from support import spark_faults
from support.oracle import Oracle, Row
from support.readers import assert_all_agree, read_by_us
from support.same_rows import assert_same_rows

_KINDS = {
    "id": pa.string(),
    "part": pa.string(),
    "ts": pa.int64(),
    "v": pa.int32(),
    "price": pa.float64(),
    "amount": pa.decimal128(12, 2),
    "at": pa.timestamp("us", "UTC"),
    "day": pa.date32(),
    "tags": pa.list_(pa.string()),
}
SCHEMA = pa.schema([pa.field(name, kind) for name, kind in _KINDS.items()])
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def row(number: int) -> Row:
    return {
        "id": f"k{number * 7 % 500}é",
        "part": f"p {number % 3}",
        "ts": number,
        "v": None if number % 11 == 0 else number,
        "price": number / 8,
        "amount": decimal.Decimal(number) / 100,
        "at": NOON + datetime.timedelta(seconds=number),
        "day": datetime.date(2026, 1, 1 + number % 28),
        "tags": [f"t{number % 5}"] * (number % 3),
    }


ROWS = [row(number) for number in range(800)]


def write(path: Path, rows: list[Row]) -> str:
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    return str(path)


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write(tmp_path / "rows.parquet", ROWS)


def new_table(folder: Path) -> str:
    hudi.create_table(str(folder), SCHEMA, record_key=["id"], partition_by=["part"], ordering="ts", buckets=2).close()
    return str(folder)


def expected(*steps: list[Row]) -> pa.Table:
    oracle = Oracle(["id"], ["part"], "ts")
    for rows in steps:
        oracle.upsert(rows)
    return pa.Table.from_pylist(oracle.rows(), schema=SCHEMA)


def leftovers(folder: Path, keep: str) -> list[str]:
    """Files of other instants than ``keep``, after a later owner has tidied up."""
    with hudi.open_table(str(folder)) as later:
        later.upsert(pa.Table.from_pylist([ROWS[-1]], schema=SCHEMA))
        last = later.commits()[-1].instant
    names = [path.name for path in folder.rglob("*") if path.is_file() and path.name[0].isdigit() and "2026" in path.name]
    return [name for name in names if keep not in name and last not in name]


def test_loaded_rows_are_read_alike_by_all_and_take_upserts(spark: Any, tmp_path: Path, source: str) -> None:
    url = new_table(tmp_path / "t")
    loaded = bulk_insert(spark.read.parquet(source), url, tasks=3)
    assert (loaded.upserted, loaded.superseded) == (expected(ROWS).num_rows, len(ROWS) - expected(ROWS).num_rows)
    assert loaded.files == 6
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))
    more = [{**row(number), "id": ROWS[number]["id"], "ts": 10_000} for number in range(40)]
    with hudi.open_table(url) as table:
        table.upsert(pa.Table.from_pylist(more, schema=SCHEMA))
        assert not table.verify().findings
    assert_all_agree(spark, tmp_path / "t", expected(ROWS, more))
    with pytest.raises(TransactionError, match="empty table"):
        bulk_insert(spark.read.parquet(source), url)
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS, more), "our reader")


@pytest.mark.parametrize("fault", [spark_faults.FailsOnce, spark_faults.DiesOnce, spark_faults.RunsTwice])
def test_a_task_that_runs_again_changes_nothing(
    spark: Any, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch, fault: type
) -> None:
    monkeypatch.setattr(bulk_load, "Writing", fault)
    url = new_table(tmp_path / "t")
    loaded = bulk_insert(spark.read.parquet(source), url, tasks=2)
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))
    with hudi.open_table(url) as table:
        assert not table.verify().findings
    assert leftovers(tmp_path / "t", loaded.instant) == []


def test_an_error_of_a_task_arrives_as_what_it_was_and_nothing_is_visible(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    source = write(tmp_path / "bad.parquet", [*ROWS, {**ROWS[0], "id": None}])
    with pytest.raises(NullKeyError, match="record key column 'id' is null or empty in 1"):
        bulk_insert(spark.read.parquet(source), url, tasks=2)
    assert read_by_us(tmp_path / "t").num_rows == 0
    with pytest.raises(SchemaError):
        bulk_insert(spark.read.parquet(source).drop("v"), url, tasks=2)


def test_each_task_gets_the_rows_of_its_number(spark: Any) -> None:
    numbers = numbers_of_tasks(spark, 7)
    frame = spark.createDataFrame([(number,) for number in numbers for _ in range(3)], f"{TASK} int")
    found = frame.repartition(7, TASK).rdd.mapPartitionsWithIndex(lambda task, rows: [(task, {r[0] for r in rows})]).collect()
    assert dict(found) == {task: {numbers[task]} for task in range(7)}
    assert sorted(task_of("p", bucket, 7) for bucket in range(7)) == list(range(7))


@pytest.mark.parametrize("step", spark_faults.STEPS)
def test_a_driver_that_is_killed_blocks_nobody(spark: Any, tmp_path: Path, source: str, step: str) -> None:
    url = new_table(tmp_path / "t")
    driver = subprocess.run(
        [sys.executable, "-m", "support.spark_faults", step, url, source], check=False, capture_output=True, text=True
    )
    assert driver.returncode == -9, driver.stderr
    if step == "slot won":  # the load is decided: whoever owns the table next completes it
        with pytest.raises(TransactionError, match="empty table"):
            bulk_insert(spark.read.parquet(source), url, tasks=2)
        assert_all_agree(spark, tmp_path / "t", expected(ROWS))
        return
    assert_all_agree(spark, tmp_path / "t", expected())
    loaded = bulk_insert(spark.read.parquet(source), url, tasks=2)
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))
    assert leftovers(tmp_path / "t", loaded.instant) == []
