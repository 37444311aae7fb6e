"""Overwrites by real Spark: what all readers see, where later rows go, and what is left when tasks and drivers fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_spark import bulk_insert, delete_partitions, loading
from headgate_tables import hudi
from headgate_tables.errors import OptionError
from support import spark_faults
from support.bulk_rows import LATER, ROWS, SCHEMA, committed, expected, filled_table, leftovers, row, upsert, write
from support.oracle import Row
from support.readers import assert_all_agree
from support.spark_hudi import SparkTable

NEW: list[Row] = [{**row(number), "part": "p 1", "ts": 0} for number in range(900, 930)]
"""Of one partition, and older than what they replace: an overwrite compares no ordering values."""
KEPT = [each for each in ROWS if each["part"] != "p 1"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return filled_table(tmp_path / "t", compacted=False)


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write(tmp_path / "new.parquet", NEW)


def test_overwritten_partitions_and_tables_are_read_alike_by_all_and_take_upserts(
    spark: Any, tmp_path: Path, url: str, source: str
) -> None:
    done = bulk_insert(spark.read.parquet(source), url, mode="insert_overwrite", tasks=3)
    assert (done.upserted, done.replaced) == (len(NEW), 2)
    assert_all_agree(spark, tmp_path / "t", expected(KEPT, NEW))
    upsert(url, LATER)
    assert_all_agree(spark, tmp_path / "t", expected(KEPT, NEW, LATER))
    delete_partitions(url, ["p 1"])
    assert_all_agree(spark, tmp_path / "t", expected([each for each in [*KEPT, *LATER] if each["part"] != "p 1"]))
    bulk_insert(spark.read.parquet(source), url, mode="insert_overwrite_table", tasks=2)
    assert_all_agree(spark, tmp_path / "t", expected(NEW))
    upsert(url, ROWS)
    assert_all_agree(spark, tmp_path / "t", expected(NEW, ROWS))


def test_modes_that_a_frame_does_not_fit_are_refused(spark: Any, url: str, source: str) -> None:
    with pytest.raises(OptionError, match="delete_partitions"):
        bulk_insert(spark.read.parquet(source), url, mode="delete_partition")


@pytest.mark.parametrize("fault", [spark_faults.FailsOnce, spark_faults.RunsTwice])
def test_a_task_that_runs_again_changes_nothing(
    spark: Any, tmp_path: Path, url: str, source: str, monkeypatch: pytest.MonkeyPatch, fault: type
) -> None:
    monkeypatch.setattr(loading, "Writing", fault)
    done = bulk_insert(spark.read.parquet(source), url, mode="insert_overwrite", tasks=2)
    assert_all_agree(spark, tmp_path / "t", expected(KEPT, NEW))
    with hudi.open_table(url) as table:
        assert not table.verify().findings
    assert [name for name in leftovers(tmp_path / "t", done.instant) if name not in committed(tmp_path / "t")] == []


@pytest.mark.parametrize("step", spark_faults.STEPS)
def test_a_driver_that_is_killed_blocks_nobody(spark: Any, tmp_path: Path, url: str, source: str, step: str) -> None:
    driver = subprocess.run(
        [sys.executable, "-m", "support.spark_faults", step, url, source, "insert_overwrite"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert driver.returncode == -9, driver.stderr
    if step == "slot won":  # the overwrite is decided: whoever owns the table next completes it, and writes to its groups
        upsert(url, LATER)
        assert_all_agree(spark, tmp_path / "t", expected(KEPT, NEW, LATER))
        return
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))
    done = bulk_insert(spark.read.parquet(source), url, mode="insert_overwrite", tasks=2)
    assert_all_agree(spark, tmp_path / "t", expected(KEPT, NEW))
    assert [name for name in leftovers(tmp_path / "t", done.instant) if name not in committed(tmp_path / "t")] == []


def test_spark_upserts_compacts_and_cleans_an_overwritten_table(spark: Any, tmp_path: Path, url: str, source: str) -> None:
    bulk_insert(spark.read.parquet(source), url, mode="insert_overwrite", tasks=2)
    options = {"hoodie.datasource.write.partitionpath.urlencode": "true", "hoodie.clean.commits.retained": "1"}
    by_spark = SparkTable(spark, tmp_path, "t", ordering="ts", partition=["part"], options=options)
    steps = [KEPT, NEW, LATER]
    by_spark.upsert(pa.Table.from_pylist(LATER, schema=SCHEMA))
    assert_all_agree(spark, tmp_path / "t", expected(*steps), schema_by_spark=True)
    by_spark.call("run_compaction", op="schedule")
    by_spark.run_scheduled_compactions()
    by_spark.call("run_clean", retain_commits=1)
    assert_all_agree(spark, tmp_path / "t", expected(*steps), schema_by_spark=True)
    with hudi.open_table(url) as table:
        table.adopt()
    more = [{**each, "ts": 20_000} for each in ROWS[:30]]
    upsert(url, more)
    assert_all_agree(spark, tmp_path / "t", expected(*steps, more), schema_by_spark=True)
