"""Executors that are killed while tasks write: a driver beside two of them loses both, and the table is what it was to be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headgate_tables import hudi
from support import spark_faults
from support.bulk_rows import ROWS, committed, expected, filled_table, leftovers, new_table, write
from support.readers import assert_all_agree


@pytest.mark.parametrize("load", ["into_empty", "upsert", spark_faults.RESCALE])
def test_executors_that_are_killed_cost_time_alone(spark: Any, tmp_path: Path, load: str) -> None:
    folder, killed = tmp_path / "t", tmp_path / "killed"
    killed.mkdir()
    if load == spark_faults.RESCALE:
        url, source = filled_table(folder, compacted=True), "6"
    else:
        url, source = new_table(folder), write(tmp_path / "rows.parquet", ROWS)
    driver = subprocess.run(
        [sys.executable, "-m", "support.spark_faults", spark_faults.LOST, url, source, load],
        env={**os.environ, "HEADGATE_KILLED": str(killed)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert driver.returncode == 0, driver.stderr
    assert sorted(path.name for path in killed.iterdir()) == ["0", "1"]
    assert_all_agree(spark, folder, expected(ROWS))
    with hudi.open_table(url) as table:
        assert not table.verify().findings
    before = committed(folder)
    assert [name for name in leftovers(folder, "no other instant") if name not in before] == []
