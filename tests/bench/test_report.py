"""What benches found is kept by section, and stands on one page."""

import subprocess
from argparse import Namespace
from pathlib import Path

import pytest

from bench.report.page import page
from bench.report.results import Origin, commit, keep, results
from bench.tables import command
from bench.tables.figures import OURS, Figures, Goal

OLD = Origin("0ld", "2026-01-01", "a processor", 2, 3, 0.2)
NEW = Origin("new with changes", "2026-02-02", "a processor", 2, 1, 1.0)
GOAL = Goal("loads: >= 1.5x the peer", "loads", "1 M rows", "rows/CPU-s", 1.5, peer="Peer")
UNMEASURED = Goal("reads: >= 2x the peer", "reads", "all", "s", 2, peer="Peer")


def measured(section: str, *rounds: tuple[float, float]) -> Figures:
    figures = Figures()
    for ours, theirs in rounds:
        figures.add(section, "1 M rows", "rows/CPU-s", OURS, ours, more_is_better=True)
        figures.add(section, "1 M rows", "rows/CPU-s", "Peer", theirs, more_is_better=True)
    figures.add(section, "1 M rows", "s, p99", OURS, 0.25)
    figures.note(section, "a peer without a server")
    return figures


def test_a_section_shows_medians_ratios_round_by_round_its_goals_and_where_it_was_measured(tmp_path: Path) -> None:
    keep(
        tmp_path,
        "tables",
        measured("loads", (300e3, 100e3), (200e3, 200e3), (240e3, 120e3)).as_json([GOAL, UNMEASURED]),
        {"loads"},
        OLD,
    )
    lines = page(list(results(tmp_path))).splitlines()
    assert "## ./task bench tables" in lines
    assert "### Loads" in lines
    assert "| 1 M rows | rows/CPU-s | 240 k | 120 k | 2.00 (1.00 to 3.00) |" in lines
    assert "| 1 M rows | s, p99 | 0.25 |  |  |" in lines, "of which the peer has none"
    assert (
        "A peer without a server. Commit 0ld, 2026-01-01, a processor, 2 processors, medians of 3 runs, load at the end 0.2."
        in lines
    )
    assert "- loads: &gt;= 1.5x the peer: 2, met" in lines
    assert not any("reads:" in line for line in lines), "what was not measured is not on the page"


def test_the_ratio_of_an_even_number_of_rounds_is_the_mean_of_the_middle_two(tmp_path: Path) -> None:
    keep(tmp_path, "tables", measured("loads", (3.0, 1.0), (1.0, 1.0)).as_json([]), {"loads"}, OLD)
    assert "| 2.00 (1.00 to 3.00) |" in page(list(results(tmp_path)))


def test_a_section_that_was_measured_replaces_its_older_results_alone(tmp_path: Path) -> None:
    both = measured("loads", (3.0, 1.0))
    both.rows |= measured("reads", (5.0, 1.0)).rows
    keep(tmp_path, "tables", both.as_json([GOAL]), {"loads", "reads"}, OLD)
    both = measured("loads", (1.0, 1.0))
    both.rows |= measured("reads", (7.0, 1.0)).rows
    keep(tmp_path, "tables", both.as_json([GOAL]), {"loads"}, NEW)
    [(name, sections)] = results(tmp_path)
    assert name == "tables"
    assert [(each.title, each.origin) for each in sections] == [("loads", NEW), ("reads", OLD)]
    assert sections[1].figures[0]["median"][OURS] == 5.0
    assert [goal["met"] for goal in sections[0].goals] == [False]
    assert "**missed**" in page([(name, sections)])


def test_a_section_that_fails_loses_no_results_of_those_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    figures = Figures()

    def loads() -> None:
        figures.rows |= measured("loads", (3.0, 1.0)).rows

    def reads() -> None:
        figures.rows |= measured("reads", (3.0, 1.0)).rows
        raise AssertionError("the table is not what was sent")

    options = Namespace(only=["loads", "reads"], commit="1234567", bench="tables", rounds=1)
    with pytest.raises(AssertionError, match="not what was sent"):
        command.measure(figures, [GOAL], options, {"loads": loads, "reads": reads})
    [(name, [section])] = results(tmp_path)
    assert (name, section.title, section.origin.commit) == ("tables", "loads", "1234567")
    assert [goal["value"] for goal in section.goals] == [3.0]


def test_a_quick_run_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    options = Namespace(only=["loads"], commit="", bench="tables", rounds=1)
    command.measure(Figures(), [GOAL], options, {"loads": lambda: None})
    assert not list(results(tmp_path))


def test_results_of_another_bench_are_no_change_of_what_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("code.py", "bench/results/tables.json"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("1\n")
    author = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    for arguments in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "Begin")):
        subprocess.run(["git", *arguments], check=True)
    clean = commit()
    assert clean.isalnum()
    Path("bench/results/tables.json").write_text("2\n")
    assert commit() == clean
    Path("code.py").write_text("2\n")
    assert commit() == f"{clean} with changes"
