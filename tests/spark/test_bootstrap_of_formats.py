"""Copies of tables of Delta and Iceberg, which their own writers have updated and deleted from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headgate_cli.exits import ExitCode
from support.bulk_rows import ROWS, expected, write
from support.readers import assert_all_agree

KEPT = [{**each, "v": -1 if each["ts"] % 5 == 0 else each["v"]} for each in ROWS if each["ts"] % 7]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_version_of_a_table_is_copied_as_its_own_reader_shows_it(spark: Any, tmp_path: Path, kind: str) -> None:
    rows = write(tmp_path / "rows.parquet", ROWS)
    command = [sys.executable, "-m", "support.spark_formats", kind, rows, str(tmp_path)]
    copy = subprocess.run(command, check=False, capture_output=True, text=True)
    assert copy.returncode == ExitCode.OK, copy.stderr
    copied = json.loads(copy.stdout.splitlines()[-1])
    assert (copied["event"], copied["rows"] + copied["superseded"]) == ("copied", len(KEPT))
    assert_all_agree(spark, tmp_path / "ours", expected(KEPT))
