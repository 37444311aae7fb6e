"""Dates and times outside of Python's years, which Parquet files and tables hold: every command shows them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from headgate_cli.table.export import csv_lines
from headgate_tables import hudi

UTC_TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("at", UTC_TIME), ("near", pa.date32())])
YEAR_10000_US = 253_402_300_800_000_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("far") / "t")
    columns = [pa.array([1], pa.int64()), pa.array([-800_000], pa.date32()), pa.array([YEAR_10000_US], UTC_TIME)]
    with hudi.create_table(url, SCHEMA, record_key="id", buckets=1) as made:
        made.upsert(pa.table([*columns, pa.array([0], pa.date32())], schema=SCHEMA))
    return url


@pytest.mark.parametrize("options", [[], ["--vertical"]])
def test_a_scan_shows_times_that_python_lacks_as_json_has_them(
    options: list[str], table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["table", "scan", table, "--json"]) == ExitCode.OK
    row = json.loads(capsys.readouterr().out)
    assert (row["day"], row["at"]) == ("-0221-09-04", "10000-01-01T00:00:00+00:00")
    assert run(["table", "scan", table, *options]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert all(text in shown for text in (row["day"], row["at"], "1970-01-01"))


def test_a_delete_shows_the_rows_that_it_would_delete(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "delete", table, "--where", "id = 1", "--dry-run"]) == ExitCode.OK
    assert "10000-01-01T00:00:00+00:00" in capsys.readouterr().out


def test_a_list_of_such_times_is_json_in_csv() -> None:
    days: pa.Array[Any] = pa.array([[2_932_897, None]], pa.list_(pa.date32()))
    assert csv_lines(pa.record_batch({"days": days})) == b'"[""10000-01-01"", null]"\n'


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
def test_a_dry_run_of_a_load_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "far.parquet"
    pq.write_table(pa.table({"id": [1], "day": pa.array([2_932_897], pa.date32())}), path)
    assert run(["load", str(path), "--table", "far", "--create", "--key", "id", "--dry-run"]) == ExitCode.OK
    assert "10000-01-01" in capsys.readouterr().out
