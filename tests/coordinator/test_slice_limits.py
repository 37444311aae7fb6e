"""No slice ever gets more log files than its limit, under random faults and with compaction that comes seldom or never."""

import os
from collections.abc import Iterator

import pytest

from headgate_coordinator.table_coordinator import TableCoordinator
from support.coordinator_sim import mutants
from support.coordinator_sim.pressed import PressedWalk
from support.coordinator_sim.slots import StuckError, ViolationError

WALKS = int(os.environ.get("HEADGATE_WALKS", "150"))
STEPS = 3000
LOOKS = max(600, WALKS)

MUTANTS: dict[type[TableCoordinator], int] = {
    mutants.CountsNoRoundsUnderWay: 0,
    mutants.StopsBehindTheBarrier: 0,
    mutants.CommitsUncounted: 0,
}
"""With a walk that finds each; when a change has moved it, others are tried."""

WRITERS_RULES = {
    "rows are taken though the owner stopped the table": ({"stops"}, 0),
    "a bucket side flushes early as often as it likes": ({"early files"}, 0),
}


def test_no_slice_passes_its_limit_and_everything_is_committed_once_compaction_comes() -> None:
    full = stopped = 0
    for seed in range(WALKS):
        walk = PressedWalk(seed)
        try:
            walk.run(STEPS)
        except ViolationError as error:
            raise AssertionError(f"walk {seed}, limit {walk.limit}: {error}") from error
        full += walk.fullest >= walk.limit - 1
        stopped += walk.stops > 0
    assert full > WALKS // 10, "hardly a walk came near its limit"
    assert stopped > WALKS // 10, "hardly a walk was stopped"


@pytest.mark.parametrize(("mutant", "first"), MUTANTS.items(), ids=lambda each: getattr(each, "__name__", None))
def test_a_coordinator_that_breaks_one_rule_is_found(mutant: type[TableCoordinator], first: int) -> None:
    assert any(passes_the_limit(PressedWalk(seed, mutant)) for seed in looks(first)), f"{mutant.__doc__} Nobody noticed."


@pytest.mark.parametrize(("broken", "first"), WRITERS_RULES.values(), ids=WRITERS_RULES.keys())
def test_a_writer_that_breaks_one_rule_is_found(broken: set[str], first: int) -> None:
    assert any(passes_the_limit(PressedWalk(seed, broken=broken)) for seed in looks(first))


def looks(first: int) -> Iterator[int]:
    yield first
    yield from range(LOOKS)


def passes_the_limit(walk: PressedWalk) -> bool:
    try:
        walk.run(STEPS)
    except StuckError:
        return False
    except ViolationError as error:
        assert "the limit is" in str(error), "only that rule is broken"
        return True
    return False
