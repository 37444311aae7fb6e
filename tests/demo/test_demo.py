"""The demo itself: January's flights, real processes, all kills, the whole verdict."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from demo.ports import free_port
from headgate_tables import hudi

pytestmark = pytest.mark.slow


def run_demo(folder: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    # A port of its own: two workers of pytest may run a demo each, and both would find the usual one free.
    command = [sys.executable, "-m", "demo", "--quick", "--json", "--folder", str(folder), "--port", str(free_port()), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=300)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What one run tells; the report is the last line."""
    code, said = run_demo(tmp_path_factory.mktemp("demo") / "demo")
    assert code == 0, said[-1]
    return said


def test_nothing_is_lost_or_doubled_when_one_process_of_each_kind_is_killed(said: list[dict[str, Any]]) -> None:
    report = said[-1]
    assert [line["name"] for line in said if line["event"] == "killed"] == ["writer-1", "compactor-1", "coordinator-1"]
    assert (report["lost"], report["doubled"], report["wrong"], report["ghosts"]) == (0, 0, 0, 0)
    assert report["rows"] == report["rows_before_last_compaction"] == report["rows_expected"] == 26_483
    assert (report["log_files_unread"], report["log_files_hidden"], report["findings"]) == (0, 0, [])
    assert Path(str(report["table"]).removeprefix("file://"), ".hoodie").is_dir(), "the table stays"


def test_the_table_is_compacted_in_the_end_though_the_compactor_was_killed(said: list[dict[str, Any]]) -> None:
    report = said[-1]
    [killed] = [kill for kill in report["kills"] if kill["name"] == "compactor-1"]
    assert killed["process_back_s"] > 0
    assert killed["compacted_again_s"] > 0
    assert (report["log_files_at_end"], report["operations_dropped"]) == (0, 0)
    files = [files for _, files in report["log_files_of_fullest_slice"]]
    assert (max(files), files[-1]) == (report["most_log_files"], 0)
    with hudi.open_table(str(report["table"])) as table:
        newest = [group.slices()[-1] for group in table.file_groups()]
    assert newest
    assert all(part.base and not part.logs for part in newest)


def test_what_the_report_says_of_the_services_is_on_the_timeline(said: list[dict[str, Any]]) -> None:
    report = said[-1]
    assert report["compactions"] > 1
    assert report["files_cleaned"] > 0
    assert report["instants_archived"] > 0
    with hudi.open_table(str(report["table"])) as table:
        shown = [commit for commit in table.commits() if commit.action == "commit"]
    assert 0 < len(shown) <= report["compactions"]
