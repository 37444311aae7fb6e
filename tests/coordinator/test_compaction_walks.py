"""Compactors die, report late, twice and after takeovers: every operation ends finished once, or dropped with a reason.

``HEADGATE_WALKS``: how many walks (default 150). A walk that fails is named by its seed; it repeats exactly.
"""

import os
from collections import Counter
from dataclasses import replace

import pytest

from headgate_coordinator.core.compactions import Compactions
from headgate_coordinator.core.operations import (
    AttemptFailed,
    AttemptFinished,
    AttemptReturned,
    CompactionEvent,
    CompactionInstruction,
    CompactorLost,
    FinishPlan,
    FinishRefused,
)
from support.compaction_walk import Walk, WrongError
from support.operations import compacted

WALKS = int(os.environ.get("HEADGATE_WALKS", "150"))
STEPS = 1000


@pytest.mark.slow
def test_every_operation_ends_finished_once_or_dropped_and_nothing_is_stuck() -> None:
    faults: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for seed in range(WALKS):
        walk = Walk(seed)
        try:
            walk.run(STEPS)
        except WrongError as error:
            raise AssertionError(f"walk {seed}: {error}") from error
        faults.update(walk.faults)
        ended.update(plan.ended for plan in walk.plans.values())
        ended["dropped"] += sum(len(plan.dropped) for plan in walk.plans.values())
    assert len(faults) == 13, f"the walks never saw some faults, only {sorted(faults)}"
    assert ended["done"] > WALKS
    assert ended["dropped"] > WALKS / 3


class ForgetsLosses(Compactions):
    """A lost compactor's operation stays with it."""

    def handle_event(self, event: CompactionEvent, now: float) -> list[CompactionInstruction]:
        return [] if isinstance(event, CompactorLost) else super().handle_event(event, now)


class ForgetsReturns(Compactions):
    """What a draining compactor gives back is not handed out again. (Only its end brings it back.)"""

    def handle_event(self, event: CompactionEvent, now: float) -> list[CompactionInstruction]:
        return [] if isinstance(event, AttemptReturned) else super().handle_event(event, now)


class SwallowsRefusals(Compactions):
    """W5: a commit that failed is logged and forgotten."""

    def handle_event(self, event: CompactionEvent, now: float) -> list[CompactionInstruction]:
        return [] if isinstance(event, FinishRefused) else super().handle_event(event, now)


class DropsAtOnce(Compactions):
    """The store's troubles count as the operation's."""

    def handle_event(self, event: CompactionEvent, now: float) -> list[CompactionInstruction]:
        return super().handle_event(replace(event, transient=False) if isinstance(event, AttemptFailed) else event, now)


class LosesTheFirst(Compactions):
    """A plan goes to the committer without its first result."""

    def handle_event(self, event: CompactionEvent, now: float) -> list[CompactionInstruction]:
        done = super().handle_event(event, now)
        return [replace(each, finished=each.finished[1:]) if isinstance(each, FinishPlan) else each for each in done]


class CountsLossesAsFailures(Compactions):
    """A compactor that died is the operation's fault."""

    def handle_event(self, event: CompactionEvent, now: float) -> list[CompactionInstruction]:
        done: list[CompactionInstruction] = []
        if isinstance(event, CompactorLost):
            for each in self.running_attempts():
                if each.process == event.process:
                    done += super().handle_event(AttemptFailed(each.process, each.attempt, "lost", False), now)
        return done + super().handle_event(event, now)


class TakesOutputsUnseen(Compactions):
    """An attempt that is handed out counts as done when its compactor is lost."""

    def handle_event(self, event: CompactionEvent, now: float) -> list[CompactionInstruction]:
        done: list[CompactionInstruction] = []
        if isinstance(event, CompactorLost):
            for each in self.running_attempts():
                if each.process == event.process:
                    done += super().handle_event(AttemptFinished(each.process, each.attempt, compacted(each.operation)), now)
        return done + super().handle_event(event, now)


MUTANTS = [
    ForgetsLosses,
    ForgetsReturns,
    SwallowsRefusals,
    DropsAtOnce,
    LosesTheFirst,
    CountsLossesAsFailures,
    TakesOutputsUnseen,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_core_that_breaks_one_rule_is_found(mutant: type[Compactions]) -> None:
    def walk() -> None:
        for seed in range(WALKS):
            Walk(seed, mutant).run(STEPS)

    with pytest.raises(WrongError):
        walk()
