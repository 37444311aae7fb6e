"""No slice ever gets more log files than its limit, under random faults and with compaction that comes seldom or never."""

import os
from collections.abc import Iterator

import pytest

from support.coordinator_sim import mutants
from support.coordinator_sim.pressed import PressedWalk
from support.coordinator_sim.slots import StuckError, ViolationError
from support.coordinator_sim.verdicts import naming

WALKS = int(os.environ.get("HEADGATE_WALKS", "150"))
STEPS = 3000
LOOKS = max(600, WALKS)


WRITERS_RULES = {
    "rows are taken though the owner stopped the table": ({"stops"}, 58),
    "a bucket side flushes early as often as it likes": ({"early files"}, 0),
}
"""With a walk that finds each, as in test_simulation.py."""


def looks(first: int) -> Iterator[int]:
    yield first
    yield from range(LOOKS)


@pytest.mark.slow
def test_no_slice_passes_its_limit_and_everything_is_committed_once_compaction_comes() -> None:
    full = stopped = 0
    for seed in range(WALKS):
        walk = PressedWalk(seed)
        with naming(f"walk {seed}, limit {walk.limit}"):
            walk.run(STEPS)
        full += walk.log.fullest >= walk.limit - 1
        stopped += walk.stops > 0
    assert full > WALKS // 10, "hardly a walk came near its limit"
    assert stopped > WALKS // 10, "hardly a walk was stopped"


@pytest.mark.slow
def test_rows_that_were_taken_are_committed_without_any_compaction() -> None:
    stopped = 0
    for seed in range(WALKS):
        walk = PressedWalk(seed, compactors=False)
        with naming(f"walk {seed}, limit {walk.limit}"):
            walk.run(STEPS)
        stopped += walk.stops > 0
    assert stopped > WALKS // 4, "hardly a walk was stopped"


def test_a_coordinator_that_lets_rows_come_for_which_there_is_no_room_is_found() -> None:
    assert any(passes_the_limit(PressedWalk(seed, mutants.CountsNoCheckpointsUnderWay)) for seed in looks(56))


def test_a_coordinator_that_commits_before_the_slices_are_counted_is_found() -> None:
    assert any(passes_the_limit(PressedWalk(seed, mutants.CommitsUncounted)) for seed in looks(53))


@pytest.mark.parametrize(("broken", "first"), WRITERS_RULES.values(), ids=WRITERS_RULES.keys())
def test_a_writer_that_breaks_one_rule_is_found(broken: set[str], first: int) -> None:
    assert any(passes_the_limit(PressedWalk(seed, broken=broken)) for seed in looks(first))


def passes_the_limit(walk: PressedWalk) -> bool:
    try:
        walk.run(STEPS)
    except StuckError:
        return False
    except ViolationError as error:
        return "the limit is" in str(error)
    return False
