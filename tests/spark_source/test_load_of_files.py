"""A bulk load of Parquet files on PySpark 4, which tasks read by Arrow as on PySpark 3.5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headgate_spark import bulk_insert, plan_bulk_insert
from headgate_tables import hudi
from support.bulk_rows import ROWS, expected, new_table, write
from support.readers import read_by_us
from support.same_rows import assert_same_rows


def test_files_are_read_by_arrow_and_what_is_more_by_spark(spark: Any, tmp_path: Path) -> None:
    frame, url = spark.read.parquet(write(tmp_path / "r.parquet", ROWS)), new_table(tmp_path / "t")
    with hudi.open_table(url) as table:
        plan = plan_bulk_insert(frame, table, tasks=2)
        assert (plan.read_by, plan.why, plan.files) == ("arrow", "", 1)
        assert plan_bulk_insert(frame.where("ts > 3"), table, tasks=2).read_by == "spark"
        assert plan_bulk_insert(frame, table).read_by == "spark", "which few rows are left to"
    bulk_insert(frame, url, tasks=2, read_by="arrow")
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")
