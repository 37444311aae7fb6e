"""The core of a table's compactions: who gets which operation, what failure means, when a plan goes to the committer."""

import pytest

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.compactions import LONGEST_PAUSE, LOSSES, REMEMBERED, CompactionPolicy, Compactions
from headgate_coordinator.core.instructions import Alarm
from headgate_coordinator.core.operations import (
    Attempt,
    AttemptFailed,
    AttemptFinished,
    AttemptProgressed,
    AttemptReturned,
    CapacityOffered,
    CompactionEvent,
    CompactionInstruction,
    CompactorLost,
    Drop,
    FinishPlan,
    FinishRefused,
    PlanClosed,
    PlanOpened,
    PlanOutcome,
    PlanProgress,
    Run,
    Tick,
)
from support.operations import compacted, operation

POLICY = CompactionPolicy(timeout=100.0, pause=4.0)
A, B = operation(0, 100), operation(1, 300)
PLAN = PlanOpened("i1", [A, B], attempts=3)


class Owner:
    """A core and its clock."""

    def __init__(self, *plans: PlanOpened) -> None:
        self.now = 10.0
        self.core = Compactions(POLICY, self.now)
        for plan in plans:
            assert self.tell(plan) == []

    def tell(self, event: CompactionEvent, after: float = 0.0) -> list[CompactionInstruction]:
        self.now += after
        done = self.core.handle_event(event, self.now)
        due = self.core.deadline()
        assert due is None or due > self.now, "a deadline that has passed already would spin"
        return done

    def run(self, process: str = "p", after: float = 0.0) -> Run:
        """What the process gets."""
        [order] = self.tell(CapacityOffered(process), after)
        assert isinstance(order, Run)
        assert order.process == process
        return order

    def finish(self, order: Run) -> list[CompactionInstruction]:
        return self.tell(AttemptFinished(order.process, order.attempt, compacted(order.operation)))

    def fail(self, order: Run, *, transient: bool = False) -> list[CompactionInstruction]:
        return self.tell(AttemptFailed(order.process, order.attempt, "it is broken", transient))


def test_the_largest_is_handed_out_first_and_each_once() -> None:
    owner = Owner(PLAN)
    assert owner.run("p") == Run("p", Attempt("i1", 1, 1), B)
    assert owner.run("q") == Run("q", Attempt("i1", 0, 1), A)
    assert not owner.core.wants_compactor(owner.now)
    assert owner.tell(CapacityOffered("r")) == []


def test_an_older_plan_goes_first_however_small() -> None:
    owner = Owner(PlanOpened("i2", [B], 3), PlanOpened("i1", [A], 3))
    assert owner.run().attempt.instant == "i1"


def test_a_plan_with_all_operations_finished_goes_to_the_committer_once() -> None:
    owner = Owner(PLAN)
    large, small = owner.run(), owner.run()
    assert owner.finish(small) == []
    assert owner.finish(large) == [FinishPlan("i1", [compacted(A), compacted(B)], {})]
    assert owner.tell(Tick(), after=1000) == []
    assert owner.tell(PlanClosed("i1", done=True)) == []
    assert owner.core.outcomes == {"i1": PlanOutcome(2, [], cancelled=False)}
    assert owner.core.plans == {}


def test_a_plan_that_is_reported_again_goes_on_as_it_is() -> None:
    owner = Owner(PLAN)
    first = owner.run()
    owner.tell(PLAN)
    assert owner.run().operation is not first.operation


def test_a_lost_compactors_operation_goes_to_another_at_once_and_did_not_fail() -> None:
    owner = Owner(PlanOpened("i1", [A], attempts=1))
    owner.run("p")
    assert owner.tell(CompactorLost("q")) == []
    assert not owner.core.wants_compactor(owner.now)
    assert owner.tell(CompactorLost("p")) == []
    assert owner.run("q").attempt == Attempt("i1", 0, 2)
    assert owner.core.counts.lost == 1
    assert owner.core.counts.failed == 0


def test_an_operation_that_takes_its_compactors_with_it_is_dropped() -> None:
    """Out of memory: nobody ever says that it failed."""
    owner = Owner(PLAN)
    owner.finish(owner.run("p"))
    for number in range(3 * LOSSES):
        owner.run(f"p{number}")
        done = owner.tell(CompactorLost(f"p{number}"))
        assert bool(done) == (number == 3 * LOSSES - 1)
    alarm, finish = done
    assert isinstance(alarm, Alarm)
    assert "its compactor was lost 9 times" in alarm.text
    assert finish == FinishPlan("i1", [compacted(B)], {A: "its compactor was lost 9 times"})


def test_a_failed_operation_is_tried_again_after_a_pause_and_dropped_after_its_attempts() -> None:
    owner = Owner(PlanOpened("i1", [A, B], attempts=2))
    first = owner.run()
    other = owner.run()
    assert owner.fail(first) == []
    assert not owner.core.wants_compactor(owner.now), "not before the pause is over"
    assert owner.core.deadline() == owner.now + POLICY.pause
    second = owner.run(after=POLICY.pause)
    assert second.attempt == Attempt("i1", 1, 2)
    [alarm] = owner.fail(second)
    why = "it failed 2 times, the last time because it is broken"
    assert alarm == Alarm(f"compaction i1 goes on without p/group-1: {why}")
    assert owner.finish(other) == [FinishPlan("i1", [compacted(A)], {B: why})]
    owner.tell(PlanClosed("i1", done=True))
    assert owner.core.outcomes["i1"] == PlanOutcome(1, [B], cancelled=False)


def test_an_operation_whose_input_is_damaged_is_dropped_at_once_and_the_plan_does_not_wait_for_it() -> None:
    owner = Owner(PlanOpened("i1", [A, B], attempts=3))
    damaged = owner.run()
    other = owner.run()
    why = "p/log is damaged from byte 7 on. Restore it"
    [alarm] = owner.tell(AttemptFailed(damaged.process, damaged.attempt, why, transient=False, damage=True))
    assert alarm == Alarm(f"compaction i1 goes on without p/group-1: {why}")
    assert owner.finish(other) == [FinishPlan("i1", [compacted(A)], {B: why})]


def test_a_store_that_does_not_answer_counts_for_nothing_and_the_pauses_grow() -> None:
    owner = Owner(PlanOpened("i1", [A], attempts=1))
    pauses = []
    for _ in range(9):
        assert owner.fail(owner.run(), transient=True) == []
        due = owner.core.deadline()
        assert due is not None
        pauses.append((due - owner.now) / POLICY.pause)
        owner.tell(Tick(), after=due - owner.now)
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    (alarm,) = owner.core.alarms
    assert alarm.text.endswith("is tried again, 9 times so far: it is broken")
    order = owner.run()
    owner.tell(AttemptProgressed("p", order.attempt, 5, 5))
    assert owner.core.alarms == []
    owner.fail(order, transient=True)
    assert owner.core.deadline() == owner.now + POLICY.pause, "it answered in between"


def test_an_operation_that_is_returned_may_be_handed_out_at_once() -> None:
    owner = Owner(PlanOpened("i1", [A], attempts=1))
    order = owner.run("p")
    assert owner.tell(AttemptReturned("p", order.attempt)) == []
    assert owner.run("q").attempt.number == 2


def test_a_slow_attempt_is_left_alone_and_one_that_stands_still_has_failed() -> None:
    owner = Owner(PlanOpened("i1", [A], attempts=2))
    slow = owner.run()
    for rows in range(1, 6):
        assert owner.tell(AttemptProgressed("p", slow.attempt, rows, 0), after=POLICY.timeout - 1) == []
    assert owner.tell(AttemptProgressed("p", slow.attempt, 5, 0), after=POLICY.timeout - 1) == [], "alive, but nothing grew"
    assert owner.core.deadline() == owner.now + 1
    assert owner.tell(Tick(), after=1) == [Drop("p", slow.attempt)]
    assert owner.core.counts.failed == 1
    again = owner.run("q", after=POLICY.pause)
    stopped = owner.tell(Tick(), after=POLICY.timeout)
    assert stopped[0] == Drop("q", again.attempt)
    assert "compactor q made no progress for 100 s" in str(stopped[1])
    assert stopped[2] == FinishPlan("i1", [], {A: str(stopped[1]).partition("p/group-0: ")[2].removesuffix("')")})


def test_what_a_given_up_attempt_says_about_itself_counts_for_nothing() -> None:
    owner = Owner(PlanOpened("i1", [A], attempts=1))
    old = owner.run("p")
    owner.tell(CompactorLost("p"))
    new = owner.run("q")
    for late in (
        AttemptFailed("p", old.attempt, "late", False),
        AttemptReturned("p", old.attempt),
        AttemptProgressed("p", old.attempt, 9, 9),
        AttemptFailed("p", new.attempt, "not mine", False),
        AttemptFailed("q", old.attempt, "not this one", False),
        AttemptFailed("q", Attempt("i1", 7, 1), "no such operation", False),
        AttemptFailed("q", Attempt("i9", 0, 1), "no such plan", False),
        AttemptFinished("q", Attempt("i1", 0, 3), compacted(A)),
    ):
        assert owner.tell(late) == []
    assert [(each.process, each.rows) for each in owner.core.running_attempts()] == [("q", 0)]


def test_a_late_output_is_as_good_as_any_and_ends_the_newer_attempt() -> None:
    """Rule W4: one name, one content, whoever wrote it."""
    owner = Owner(PlanOpened("i1", [A], attempts=1))
    old = owner.run("p")
    owner.tell(CompactorLost("p"))
    new = owner.run("q")
    done = owner.tell(AttemptFinished("p", old.attempt, compacted(A)))
    assert done == [Drop("q", new.attempt), FinishPlan("i1", [compacted(A)], {})]
    assert owner.finish(new) == [], "the same once more"
    assert owner.core.counts.finished == 1


def test_an_output_that_comes_after_the_drop_changes_nothing() -> None:
    owner = Owner(PlanOpened("i1", [A], attempts=1))
    order = owner.run()
    owner.fail(order)
    assert owner.finish(order) == []
    assert owner.core.counts.finished == 0


def test_a_plan_that_the_store_does_not_take_is_kept_and_tried_again() -> None:
    """Rule W5: a commit that fails is never swallowed."""
    owner = Owner(PlanOpened("i1", [A], attempts=1))
    [finish] = owner.finish(owner.run())
    [alarm] = owner.tell(FinishRefused("i1", "busy"))
    assert alarm == Alarm("compaction i1 could not be committed: busy")
    assert owner.core.alarms == [StandingAlarm(AlarmKind.COMPACTION_REFUSED, "compaction i1 was refused 1 times: busy")]
    assert owner.tell(Tick(), after=POLICY.pause - 1) == []
    assert owner.tell(Tick(), after=1) == [finish]
    owner.tell(FinishRefused("i1", "busy"))
    assert owner.tell(Tick(), after=POLICY.pause) == []
    assert owner.tell(Tick(), after=POLICY.pause) == [finish]
    owner.tell(PlanClosed("i1", done=True))
    assert owner.tell(FinishRefused("i1", "late")) == []
    assert owner.core.alarms == []


def test_a_cancelled_plan_drops_its_attempts_and_its_late_results() -> None:
    owner = Owner(PLAN)
    first, second = owner.run("p"), owner.run("q")
    owner.finish(first)
    assert owner.tell(PlanClosed("i1", done=False)) == [Drop("q", second.attempt)]
    assert owner.finish(second) == []
    assert owner.core.outcomes["i1"] == PlanOutcome(1, [], cancelled=True)
    assert owner.core.deadline() is None


def test_a_plan_without_operations_is_done_at_once() -> None:
    owner = Owner()
    assert owner.tell(PlanOpened("i1", [], 3)) == [FinishPlan("i1", [], {})]


def test_progress_counts_what_is_read_of_what_there_is() -> None:
    owner = Owner(PLAN)
    large = owner.run("p")
    owner.tell(AttemptProgressed("p", large.attempt, 7, 120))
    assert owner.core.plans == {"i1": PlanProgress(2, 0, 0, 1, bytes=400, bytes_done=120)}
    owner.tell(AttemptProgressed("p", large.attempt, 8, 999))
    assert owner.core.plans["i1"].bytes_done == 300, "never more than there is"
    owner.finish(large)
    assert owner.core.plans == {"i1": PlanProgress(2, 1, 0, 0, bytes=400, bytes_done=300)}
    assert owner.core.queued_operations == 1


def test_old_outcomes_are_forgotten() -> None:
    owner = Owner()
    for number in range(REMEMBERED + 5):
        owner.tell(PlanOpened(f"i{number}", [], 3))
        owner.tell(PlanClosed(f"i{number}", done=True))
    assert list(owner.core.outcomes) == [f"i{number}" for number in range(5, REMEMBERED + 5)]


@pytest.mark.parametrize("back", [0.0, 5.0])
def test_a_clock_that_stands_still_does_no_harm(back: float) -> None:
    owner = Owner(PLAN)
    owner.run()
    owner.now -= back
    assert owner.core.handle_event(Tick(), owner.now) == []
