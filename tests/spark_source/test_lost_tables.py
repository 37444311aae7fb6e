"""On PySpark 4, too, a Spark job whose table has got another owner is cancelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate_spark import bulk_insert, loading, owned_jobs
from support import taken_tables
from support.bulk_rows import LATER, ROWS, expected, filled_table, write
from support.readers import read_by_us
from support.same_rows import assert_same_rows
from support.taken_tables import assert_cancelled_when_taken


def test_a_load_is_cancelled_and_nothing_of_it_is_visible(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_jobs, "_LOOK_S", 0.1)
    monkeypatch.setattr(loading, "Writing", taken_tables.LoadGoesOn)
    url = filled_table(tmp_path / "t", compacted=True)
    frame = spark.read.parquet(write(tmp_path / "later.parquet", LATER))
    assert_cancelled_when_taken(spark, url, lambda: bulk_insert(frame, url, mode="insert_overwrite_table", tasks=2))
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")
