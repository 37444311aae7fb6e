"""What benches found is kept by section, and stands on one page."""

from pathlib import Path

from bench.report.kept import Origin, keep, kept
from bench.report.page import page
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
    keep(tmp_path, "tables", measured("loads", (300e3, 100e3), (200e3, 200e3), (240e3, 120e3)).as_json([GOAL, UNMEASURED]), OLD)
    lines = page(list(kept(tmp_path))).splitlines()
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
    keep(tmp_path, "tables", measured("loads", (3.0, 1.0), (1.0, 1.0)).as_json([]), OLD)
    assert "| 2.00 (1.00 to 3.00) |" in page(list(kept(tmp_path)))


def test_a_run_of_some_sections_replaces_these_alone(tmp_path: Path) -> None:
    both = measured("loads", (3.0, 1.0))
    both.rows |= measured("reads", (5.0, 1.0)).rows
    keep(tmp_path, "tables", both.as_json([GOAL]), OLD)
    keep(tmp_path, "tables", measured("loads", (1.0, 1.0)).as_json([GOAL]), NEW)
    [(name, sections)] = kept(tmp_path)
    assert name == "tables"
    assert [(each.title, each.origin) for each in sections] == [("loads", NEW), ("reads", OLD)]
    assert [goal["met"] for goal in sections[0].goals] == [False]
    assert "**missed**" in page([(name, sections)])
