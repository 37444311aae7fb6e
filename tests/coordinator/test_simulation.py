"""Exactly once under random faults: the real TableCoordinator in a cluster that is simulated around it.

``HEADGATE_WALKS``: how many walks (default 150, some seconds). A walk that fails is named by its seed; it repeats exactly.
"""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from headgate_coordinator.core.table_coordinator import TableCoordinator
from support.coordinator_sim import hasty, mutants
from support.coordinator_sim.failing import AllFailingWalk, FailingWalk
from support.coordinator_sim.forgetful import ForgetfulWalk
from support.coordinator_sim.lying import LyingWalk
from support.coordinator_sim.silent import SilentWalk
from support.coordinator_sim.slots import StuckError
from support.coordinator_sim.verdicts import is_wrong, naming
from support.coordinator_sim.walk import Walk

WALKS = int(os.environ.get("HEADGATE_WALKS", "150"))
STEPS = 3000
LOOKS = max(600, WALKS)

MUTANTS: dict[type[TableCoordinator], int] = {
    mutants.AbortsOneCheckpointOnly: 7,
    mutants.AnswersRightBehindAborts: 8,
    mutants.AnswersWhileUndecided: 8,
    mutants.BeginsWithLargeCheckpoints: 0,
    mutants.CommitsWithoutAllFiles: 8,
    mutants.EndsNoOlderWriter: 1,
    mutants.FencesBeforeTheSlot: 1,
    mutants.ForgetsSentCheckpoints: 33,
    mutants.GivesUpWhatGoesOn: 0,
    mutants.GoesOnWithoutTheLost: 27,
    mutants.HearsOldGenerations: 18,
    mutants.IssuesInstantsAsAsked: 0,
    mutants.KeepsUnusedInstants: 0,
    mutants.PublishesEmptyCheckpointsAtOnce: 88,
    mutants.RaisesBeforeDraining: 6,
    mutants.RefusesUnknownIncarnations: 1963,
    mutants.SendsBarriersEarly: 26,
    mutants.TakesAnyIncarnation: 0,
    mutants.TellsBeforeTheSlot: 0,
    mutants.TriesAgainAtOnce: 38,
    mutants.WaitsForNoCheckpoints: 26,
    mutants.WaitsForOneCheckpointLess: 38,
}
"""With a walk that finds each; when a change has moved it, others are tried: put the new one here, it saves seconds."""

LIARS_MUTANTS: dict[type[TableCoordinator], int] = {
    mutants.ComparesNoPairs: 0,
    mutants.ComparesNoWrites: 21,
    mutants.TakesForeignOffsets: 1,
    mutants.Trusting: 0,
}
"""The same, for walks with writers that lie."""

WRITERS_RULES = {
    "RO2: an order of an older generation is obeyed": ({"old orders"}, 105),
    "CH3: a late batch of an older stream is taken": ({"late batches"}, 398),
    "EX1: frames of an older generation are filed": ({"tags"}, 120),
    "EX2: a bucket side waits for one barrier only": ({"all barriers"}, 0),
    "EX5, EX2: a frame that is too early is dropped, and batches are not counted": ({"early frames", "counts"}, 142),
}


def is_false(walk: Walk) -> bool:
    return is_wrong(lambda: walk.run(STEPS))


def looks(first: int) -> Iterator[int]:
    yield first
    yield from range(LOOKS)


def test_every_walk_commits_everything_exactly_once_and_in_order_and_then_falls_idle() -> None:
    faults: Counter[str] = Counter()
    for seed in range(WALKS):
        walk = Walk(seed)
        with naming(f"walk {seed}"):
            walk.run(STEPS)
        faults.update(walk.faults)
    assert len(faults) == 9, f"the walks never saw some faults, only {sorted(faults)}"


def test_a_walk_repeats_exactly() -> None:
    first, second = Walk(7), Walk(7)
    first.run(STEPS)
    second.run(STEPS)
    assert [(slot.kind, slot.instant, slot.files, slot.channels) for slot in first.log.slots] == [
        (slot.kind, slot.instant, slot.files, slot.channels) for slot in second.log.slots
    ]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
def test_a_coordinator_that_breaks_one_rule_is_found(mutant: type[TableCoordinator]) -> None:
    assert any(is_false(Walk(seed, mutant)) for seed in looks(MUTANTS[mutant])), f"{mutant.__doc__} Nobody noticed."


@pytest.mark.parametrize(("broken", "first"), WRITERS_RULES.values(), ids=WRITERS_RULES.keys())
def test_a_writer_that_breaks_one_rule_is_found(broken: set[str], first: int) -> None:
    assert any(is_false(Walk(seed, mutants.Trusting, broken)) for seed in looks(first))


def test_ro8_a_writer_that_restarts_under_its_old_process_id_and_is_not_noticed_loses_rows() -> None:
    def walk(seed: int) -> Walk:
        return Walk(seed, mutants.IgnoresLosses, {"counts"}, same_process=True)

    assert any(is_false(walk(seed)) for seed in looks(484))


@pytest.mark.slow
def test_ro10_whatever_writers_report_every_row_whose_offset_is_committed_is_in_a_file() -> None:
    liars = excluded = 0
    for seed in range(WALKS):
        walk = LyingWalk(seed)
        with naming(f"walk {seed}"):
            walk.run(STEPS)
        liars += len(walk.false)
        excluded += len(walk.excluded & walk.false)
    assert excluded > WALKS / 5, f"{liars} liars, and only {excluded} of them were found out"


@pytest.mark.parametrize("mutant", LIARS_MUTANTS, ids=lambda each: each.__name__)
def test_ro10_a_coordinator_that_believes_writers_is_found(mutant: type[TableCoordinator]) -> None:
    assert any(is_false(LyingWalk(seed, mutant)) for seed in looks(LIARS_MUTANTS[mutant])), f"{mutant.__doc__} Nobody noticed."


def test_ro10_a_coordinator_that_keeps_false_writers_does_not_go_on() -> None:
    def walk_until_stuck() -> None:
        for seed in looks(0):
            LyingWalk(seed, mutants.ExcludesNobody).run(STEPS)

    with pytest.raises(StuckError, match="not everything was committed"):
        walk_until_stuck()


@pytest.mark.slow
def test_ro11_a_writer_that_passes_no_barrier_keeps_nothing_from_being_committed() -> None:
    silent = excluded = 0
    for seed in range(WALKS):
        walk = SilentWalk(seed)
        with naming(f"walk {seed}"):
            walk.run(STEPS)
        silent += len(walk.false)
        excluded += len(walk.excluded & walk.false)
    assert excluded > WALKS / 5, f"{silent} kept silent, and only {excluded} of them were found out"


@pytest.mark.slow
def test_ro11_a_coordinator_that_keeps_silent_writers_does_not_go_on() -> None:
    def walk_until_stuck() -> None:
        for seed in looks(0):
            SilentWalk(seed, mutants.ExcludesNobody).run(STEPS)

    with pytest.raises(StuckError, match="not everything was committed"):
        walk_until_stuck()


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [mutants.ExcludesTheSlow, mutants.BlamesOneOfMany])
def test_ro11_a_coordinator_that_excludes_writers_for_too_little_is_found(mutant: type[TableCoordinator]) -> None:
    assert any(is_false(SilentWalk(seed, mutant)) for seed in looks(0)), f"{mutant.__doc__} Nobody noticed."


@pytest.mark.slow
def test_ro13_a_writer_whose_flushes_fail_each_time_keeps_nothing_from_being_committed() -> None:
    failing = excluded = 0
    for seed in range(WALKS):
        walk = FailingWalk(seed)
        with naming(f"walk {seed}"):
            walk.run(STEPS)
        failing += len(walk.false)
        excluded += walk.paused > 0
    assert excluded > WALKS / 5, f"{failing} failed, and only in {excluded} walks any was found out"


@pytest.mark.slow
def test_ro13_an_error_that_every_writer_has_leaves_the_table_to_them_and_it_goes_on_when_the_cause_is_gone() -> None:
    for seed in range(WALKS):
        with naming(f"walk {seed}"):
            AllFailingWalk(seed).run(STEPS)


@pytest.mark.slow
def test_ro13_a_coordinator_that_keeps_failing_writers_does_not_go_on() -> None:
    def walk_until_stuck() -> None:
        for seed in looks(0):
            FailingWalk(seed, mutants.ExcludesNobody).run(STEPS)

    with pytest.raises(StuckError, match="not everything was committed"):
        walk_until_stuck()


@pytest.mark.parametrize("mutant", [hasty.ExcludesForOneFailure, hasty.ExcludesAllThatFail])
def test_ro13_a_coordinator_that_excludes_failing_writers_for_too_little_is_found(mutant: type[TableCoordinator]) -> None:
    walks = (walk for seed in looks(0) for walk in (FailingWalk(seed, mutant), AllFailingWalk(seed, mutant)))
    assert any(is_false(walk) for walk in walks), f"{mutant.__doc__} Nobody noticed."


def test_ro7_rows_that_ask_for_no_checkpoint_are_found() -> None:
    def walk_until_stuck() -> None:
        for seed in looks(0):
            Walk(seed, mutants.HearsNoLoads).run(STEPS)

    with pytest.raises(StuckError, match="not everything was committed"):
        walk_until_stuck()


@pytest.mark.slow
def test_r1_two_coordinators_whose_leases_are_lost_again_and_again_find_out_who_owns_the_table() -> None:
    forgotten = 0
    for seed in range(WALKS):
        walk = ForgetfulWalk(seed)
        with naming(f"walk {seed}"):
            walk.run(STEPS)
        forgotten += walk.faults.get("_forget", 0)
    assert forgotten > 5 * WALKS


@pytest.mark.parametrize("mutant", [mutants.NeverAsksTheLog, mutants.AsksOnlyBehindAborts])
def test_r1_an_owner_that_does_not_ask_who_owns_the_table_is_found(mutant: type[TableCoordinator]) -> None:
    def walk_until_stuck() -> None:
        for seed in looks(7):
            ForgetfulWalk(seed, mutant).run(STEPS)

    with pytest.raises(StuckError, match="not everything was committed"):
        walk_until_stuck()
