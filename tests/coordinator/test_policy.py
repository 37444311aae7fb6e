"""When a checkpoint ends (rule RO7): the decision alone, without checkpoints."""

from dataclasses import replace

import pytest

from headgate_coordinator.core.policy import CheckpointPolicy, TriggerConditions
from headgate_coordinator.core.retry import Retry

POLICY = CheckpointPolicy(checkpoint_interval=10.0, checkpoint_min_interval=0.5, checkpoint_bytes=1000)
NOTHING = TriggerConditions(
    at_once=False, requested=False, uncommitted_since=None, fullest=0, last_barrier_at=100.0, recovering=False
)


def test_an_idle_table_wants_no_checkpoint() -> None:
    assert POLICY.barrier_due_at(NOTHING) is None


def test_rows_wait_for_the_interval_since_the_last_barrier() -> None:
    assert POLICY.barrier_due_at(replace(NOTHING, uncommitted_since=103.0)) == 110.0


def test_rows_that_come_after_the_interval_do_not_wait() -> None:
    assert POLICY.barrier_due_at(replace(NOTHING, uncommitted_since=150.0)) == 110.0


def test_a_flush_waits_for_the_min_interval_only() -> None:
    assert POLICY.barrier_due_at(replace(NOTHING, requested=True, uncommitted_since=100.0)) == 100.5


@pytest.mark.parametrize(("fullest", "due"), [(999, 110.0), (1000, 100.5)])
def test_the_bytes_of_one_writer_end_a_checkpoint(fullest: int, due: float) -> None:
    assert POLICY.barrier_due_at(replace(NOTHING, uncommitted_since=100.0, fullest=fullest)) == due


def test_a_join_a_leave_and_a_waiting_open_wait_for_nothing() -> None:
    assert POLICY.barrier_due_at(replace(NOTHING, at_once=True)) == 100.0


def test_behind_an_abort_or_a_takeover_the_first_rows_wait_half_the_min_interval_so_that_others_can_come_along() -> None:
    assert POLICY.barrier_due_at(replace(NOTHING, recovering=True, uncommitted_since=101.0)) == 101.25


def test_failures_in_a_row_make_the_next_try_wait_longer_up_to_the_interval() -> None:
    assert [POLICY.retry_pause(failures) for failures in (0, 1, 2, 3, 5, 6, 1000)] == [0.0, 0.5, 1.0, 2.0, 8.0, 10.0, 10.0]


def test_after_a_success_the_next_failure_is_a_first_one_again() -> None:
    retry = Retry(POLICY)
    retry.note_refusal("busy", 100.0)
    retry.note_refusal("busy", 101.0)
    retry.note_success()
    assert (retry.waits, retry.why) == (False, "")
    retry.note_refusal("full", 200.0)
    assert (retry.retry_at, retry.why) == (200.5, "full")
    retry.end_pause(200.5)
    assert not retry.waits
    assert retry.why == "full", "it has not succeeded yet"


@pytest.mark.parametrize(
    ("interval", "timeout", "target"), [(10.0, 30.0, 5.0), (2.0, 30.0, 2.0), (0.1, 30.0, 1.0), (10.0, 1.6, 0.8)]
)
def test_checkpoints_keep_to_flushes_that_hold_up_neither_commits_nor_drains(
    interval: float, timeout: float, target: float
) -> None:
    assert CheckpointPolicy(checkpoint_interval=interval, checkpoint_timeout=timeout).flush_target == target
