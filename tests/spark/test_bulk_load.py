"""Bulk loads by real Spark: what readers see afterwards, and what tasks and drivers leave that fail on the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_spark import bulk_insert, loading
from headgate_spark.planning import setup_of
from headgate_spark.spread import TASK, numbers_of_tasks, task_of
from headgate_tables import hudi
from headgate_tables.errors import NullKeyError, SchemaError, TransactionError
from headgate_tables.face.altering import Alteration
from headgate_tables.face.writing import ReadBy
from support import spark_faults
from support.bulk_rows import ROWS, SCHEMA, expected, leftovers, new_table, row, write
from support.readers import assert_all_agree, read_by_us
from support.same_rows import assert_same_rows


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write(tmp_path / "rows.parquet", ROWS)


@pytest.mark.parametrize("read_by", ["arrow", "spark"])
def test_loaded_rows_are_read_alike_by_all_and_take_upserts(spark: Any, tmp_path: Path, source: str, read_by: ReadBy) -> None:
    url = new_table(tmp_path / "t")
    loaded = bulk_insert(spark.read.parquet(source), url, tasks=3, read_by=read_by)
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


@pytest.mark.parametrize(
    ("fault", "read_by"),
    [
        (spark_faults.FailsOnce, "arrow"),
        (spark_faults.DiesOnce, "arrow"),
        (spark_faults.RunsTwice, "arrow"),
        (spark_faults.RunsTwice, "spark"),
    ],
)
def test_a_task_that_runs_again_changes_nothing(
    spark: Any, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch, fault: type, read_by: ReadBy
) -> None:
    monkeypatch.setattr(loading, "Writing", fault)
    url = new_table(tmp_path / "t")
    loaded = bulk_insert(spark.read.parquet(source), url, tasks=2, read_by=read_by)
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


def test_a_table_that_was_altered_after_the_plan_gets_nothing(spark: Any, tmp_path: Path, source: str) -> None:
    url, frame = new_table(tmp_path / "t"), spark.read.parquet(source)
    with hudi.open_table(url) as table:
        setup = setup_of(frame, table, "into_empty", tasks=2, storage_options=None)
        with hudi.open_table(url) as other:
            other.alter(Alteration(add={"more": pa.int64()}))
        with pytest.raises(SchemaError, match="altered while the load was planned"):
            loading.run_prepared(frame, table, "into_empty", setup, storage_options=None, progress=None)
    assert read_by_us(tmp_path / "t").num_rows == 0


def test_a_table_that_was_truncated_after_the_plan_shows_all_rows(spark: Any, tmp_path: Path, source: str) -> None:
    """Its file groups are other ones by then, of the same definition."""
    url, frame = new_table(tmp_path / "t"), spark.read.parquet(source)
    with hudi.open_table(url) as table:
        setup = setup_of(frame, table, "upsert", tasks=2, storage_options=None)
        with hudi.open_table(url) as other:
            other.upsert(pa.Table.from_pylist([{**row(1), "id": "removed"}], schema=SCHEMA))
            assert other.truncate().instant
        loading.run_prepared(frame, table, "upsert", setup, storage_options=None, progress=None)
        assert not table.verify().findings
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))


@pytest.mark.parametrize("tasks", [1, 2, 7, 64, 200])
def test_each_task_gets_the_rows_of_its_number(spark: Any, tasks: int) -> None:
    numbers = numbers_of_tasks(tasks)
    frame = spark.createDataFrame([(number,) for number in numbers for _ in range(3)], f"{TASK} int")
    found = frame.repartition(tasks, TASK).rdd.mapPartitionsWithIndex(lambda task, rows: [(task, {r[0] for r in rows})]).collect()
    assert dict(found) == {task: {numbers[task]} for task in range(tasks)}


def test_buckets_of_a_partition_go_to_different_tasks() -> None:
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
