"""What the default settings come to: the pure decisions at work on tables without bytes. Goals are those of issue 5."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.services.planning.next_steps import BUNCH
from headgate_tables.hudi.services.planning.urgency import SMALL_LOGS
from support.simulated_table import Key, SimulatedTable

MIB = 1 << 20
KEYS: list[Key] = [(f"p{part}", f"{bucket:08d}-{part}-0") for part in range(4) for bucket in range(8)]


@dataclass
class Figures:
    """The worst of a run."""

    log_files: int = 0
    amplification: float = 0.0
    instants: int = 0
    files: int = 0


def run(made: SimulatedTable, commits: int, takes: int, touched: Callable[[int], Mapping[Key, int]]) -> Figures:
    """A plan is done ``takes`` commits after it was made."""
    worst = Figures()
    ready: list[int] = []
    for number in range(commits):
        made.commit(touched(number))
        while ready and ready[0] <= made.commits:
            made.finish(made.plans[0])
            ready.pop(0)
        made.maintain()
        ready += [made.commits + takes] * (len(made.plans) - len(ready))
        worst.log_files = max(worst.log_files, made.live.largest.log_files)
        worst.instants = max(worst.instants, len(made.timeline.completed))
        if number % 10 == 9:
            slices = [part for part in made.view.latest_slices() if part.base and part.log_bytes >= SMALL_LOGS]
            worst.amplification = max([worst.amplification, *(part.log_bytes / part.base_size for part in slices)])
            worst.files = max(worst.files, len(made.there()))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("size", [MIB // 16, 2 * MIB])
def test_upserts_of_every_group_are_written_at_most_four_times_in_200_commits(size: int) -> None:
    made = SimulatedTable(TableSettings(), growth=0.7)
    worst = run(made, 200, 3, lambda _: dict.fromkeys(KEYS, size))
    assert made.written <= 4 * made.ingested
    assert worst.log_files <= made.settings.compaction_commits + 3
    assert worst.amplification <= 2
    assert worst.instants <= made.settings.archive_max
    # At 10 s a commit each group keeps what 10 commits and 10 minutes need, and what one compaction is about to end.
    assert worst.files <= 110 * len(KEYS)
    assert made.read("9") == made.committed("9")


@pytest.mark.slow
def test_groups_that_fill_at_different_times_share_plans_and_none_gets_more_logs_for_that() -> None:
    made = SimulatedTable(TableSettings(compaction_first_commits=28), growth=0.7)
    worst = run(made, 300, 2, lambda number: {key: MIB // 16 for index, key in enumerate(KEYS) if number >= index})
    assert worst.log_files <= made.settings.compaction_commits + 2
    assert made.services.count("compaction") <= 300 // BUNCH


def test_groups_that_few_commits_touch_are_not_rewritten_for_the_archives_sake() -> None:
    made = SimulatedTable(TableSettings(), growth=0.7)
    worst = run(made, 300, 3, lambda number: {key: MIB for index, key in enumerate(KEYS) if (number * 7 + index) % 16 == 0})
    assert made.written <= 3 * made.ingested
    assert worst.log_files <= 31
    assert worst.instants <= made.settings.archive_max
    assert made.read("9", history=False) == made.committed("9")


def test_groups_of_one_early_commit_hold_archiving_back_until_they_are_compacted_and_are_never_half_archived() -> None:
    made = SimulatedTable(TableSettings(), step_ms=1_000)
    quiet: list[Key] = [(f"q{number}", f"{number:08d}-q-0") for number in range(60)]
    worst = run(made, 300, 3, lambda number: {KEYS[0]: MIB, **({quiet[number % 60]: 1000} if number < 60 else {})})
    assert worst.instants <= made.settings.archive_max
    assert worst.instants > made.settings.archive_min, "nothing is compacted earlier than that needs"
    made.commit(dict.fromkeys(quiet, 1000))
    assert made.read("9", history=False) == made.committed("9")


def test_compactors_that_were_away_find_the_worst_first_and_catch_up() -> None:
    made = SimulatedTable(TableSettings(compaction_target_io_mb=3200))
    for _ in range(80):
        made.commit(dict.fromkeys(KEYS, 2 * MIB))
    assert made.live.largest.log_files == 80
    assert made.live.urgent
    run(made, 40, 1, lambda _: dict.fromkeys(KEYS, MIB // 4))
    assert made.live.largest.log_files <= 25
