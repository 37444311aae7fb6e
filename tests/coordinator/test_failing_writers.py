"""A writer that reports again and again that it could not go on: when it is excluded, and what excludes nobody (rule RO13)."""

import pytest

from headgate_coordinator.core.events import Broken, InstantAsked, InstantRefused, Tick, WriterLost
from headgate_coordinator.core.failing_writers import FAILING_AT, FAILING_SPAN_S, PAUSES, FailingWriters
from headgate_coordinator.core.instructions import Alarm, Attach, Barrier, Decided
from support.one_table import OneTable, joined, loaded, only, orders

FIRST_S = PAUSES.first
WHY = "KeyError: 'ts'"


def fail(table: OneTable, *writers: str, own: bool = True, after: float = 1.0) -> list[Alarm]:
    """One generation in which these fail, in this order, so that all but the first report too late; the alarms."""
    generation = table.core.generation
    return only(Alarm, table.tell(*[Broken(each, generation, WHY, own) for each in writers], after=after))


def fail_often(table: OneTable, *writers: str, times: int = FAILING_AT) -> None:
    for _ in range(times):
        fail(table, *writers)


def excluded(table: OneTable) -> list[str]:
    """Processes in the alarms that stand."""
    return [alarm.text.split()[1] for alarm in table.core.alarms if " is excluded " in alarm.text]


def members(table: OneTable) -> set[str]:
    """Of the checkpoint that fills."""
    return set(table.core._state.checkpoints.filling.members)


def test_ro13_a_writer_that_fails_again_and_again_is_excluded_and_the_others_go_on() -> None:
    table = OneTable("a", "b")
    fail_often(table, "b", times=FAILING_AT - 1)
    assert excluded(table) == []
    first, second = fail(table, "b")
    why = f"it could not go on 3 times within 300 s, and others could; the last time: {WHY}. "
    assert first.text == f"writer b at b:1 is excluded: {why}Keep its log; if it fails again, restart or replace it"
    assert "generation 3 was aborted: writer b could not go on" in second.text
    (alarm,) = [alarm.text for alarm in table.core.alarms if "excluded" in alarm.text]
    assert alarm.startswith(f"writer b at b:1 is excluded for 60 s more, or until it restarts: {why}")
    assert members(table) == {"a"}
    number = table.core.checkpoint
    table.tell(loaded("a"), Tick())
    table.tell(Tick(), after=1.0)
    assert ("a", Decided(number, queryable=False)) in orders(Decided, table.pass_all(number, "a"))


def test_ro13_behind_its_time_the_writer_has_a_part_again_without_an_abort() -> None:
    table = OneTable("a", "b")
    fail_often(table, "b")
    generation, number = table.core.generation, table.core.checkpoint
    assert table.tell(Tick(), after=FIRST_S - 1.0) == []
    due = table.core.deadline()
    assert due is not None
    assert due - table.now == pytest.approx(1.0)
    out = table.tell(Tick(), after=1.0)
    assert [(to, order.next.members) for to, order in orders(Barrier, out)] == [("a", (("a", "a:1"), ("b", "b:1")))]
    assert [(to, order.membership.checkpoint) for to, order in orders(Attach, out)] == [("b", number + 1)]
    assert table.core.generation == generation
    assert excluded(table) == []
    table.pass_all(number, "a")
    assert table.core.deadline() is None


def test_ro13_each_exclusion_is_twice_as_long_as_the_one_before_unless_the_writer_held_out_in_between() -> None:
    table, spans = OneTable("a", "b"), []
    for _ in range(5):
        while "b" in members(table):
            fail(table, "b")
        until = table.core._state.members.readmission_at
        assert until is not None
        spans.append(until - table.now)
        table.tell(Tick(), after=spans[-1])
        table.pass_all(table.core.checkpoint - 1, "a")
    assert spans == [60.0, 120.0, 240.0, 480.0, 960.0]
    table.tell(Tick(), after=FAILING_SPAN_S + 1.0)
    fail_often(table, "b")
    assert table.core._state.members.readmission_at == table.now + FIRST_S


def test_ro13_a_writer_that_fails_less_often_is_not_excluded() -> None:
    table = OneTable("a", "b")
    for _ in range(3 * FAILING_AT):
        fail(table, "b", after=FAILING_SPAN_S / (FAILING_AT - 1) + 1.0)
        assert excluded(table) == []


def test_ro13_what_cannot_be_the_writers_own_error_excludes_nobody() -> None:
    """The store denies access, or rows do not reach another writer."""
    table = OneTable("a", "b")
    for _ in range(3 * FAILING_AT):
        fail(table, "b", own=False)
    assert excluded(table) == []


def test_ro13_while_the_store_refuses_the_owner_nothing_is_a_writers_own_error() -> None:
    table = OneTable("a", "b")
    for _ in range(3 * FAILING_AT):
        number = table.core.checkpoint
        table.tell(InstantAsked("a", table.core.generation, number), InstantRefused(table.core.generation, number, "it is full"))
        fail(table, "b")
    assert excluded(table) == []


@pytest.mark.parametrize("writers", ["a", "ab", "abc", "abcde"])
def test_ro13_an_error_that_every_writer_has_excludes_nobody(writers: str) -> None:
    """Each generation is aborted by the same report: those of the others come too late, and count all the same."""
    table = OneTable(*writers)
    for _ in range(4 * FAILING_AT):
        fail(table, *writers)
        assert excluded(table) == []


def test_ro13_an_error_that_moves_on_with_the_key_groups_excludes_at_most_half_and_then_nobody() -> None:
    table, most = OneTable(*"abcde"), 0
    for _ in range(20 * FAILING_AT):
        before = excluded(table)
        alarms = fail(table, min(members(table)))
        most = max(most, len(excluded(table)))
        if before and not excluded(table):
            break
    assert most == 2
    assert alarms[0].text == f"excluded writers have a part again (a, b), because writer c could not go on either: {WHY}"
    assert members(table) == set("abcde")


def test_ro13_two_writers_that_fail_in_turns_are_both_kept() -> None:
    """A row that fails at whichever writer its client chooses."""
    table = OneTable("a", "b")
    for number in range(8 * FAILING_AT):
        fail(table, "ab"[number % 2])
        assert excluded(table) == []


def test_ro13_a_failure_of_another_writer_now_and_then_does_not_keep_one_that_always_fails() -> None:
    table = OneTable("a", "b")
    fail(table, "a")
    fail_often(table, "b")
    assert excluded(table) == ["b"]


def test_ro13_a_writer_that_is_lost_and_comes_back_on_another_stream_is_still_excluded_and_a_restarted_one_is_not() -> None:
    table = OneTable("a", "b")
    fail_often(table, "b")
    table.tell(WriterLost("b", "its stream broke"))
    table.tell(Tick(), after=5.0)
    assert table.core.deadline() == table.now + 30.0, "nobody waits for its time, only for the end of the alarm of aborts"
    table.tell(joined("b"))
    assert excluded(table) == ["b"]
    table.tell(WriterLost("b", "killed"), joined("b2"))
    table.pass_all(table.core.checkpoint - 1, "a")
    assert members(table) == {"a", "b2"}
    table.tell(joined("b"), after=FIRST_S)
    table.pass_all(table.core.checkpoint - 1, "a", "b2")
    assert members(table) == {"a", "b2", "b"}, "its time was over when it came back"


def test_ro13_an_excluded_writer_that_fails_aborts_nothing() -> None:
    table = OneTable("a", "b")
    fail_often(table, "b")
    generation = table.core.generation
    assert fail(table, "b") == []
    assert table.core.generation == generation


def test_ro13_nothing_is_kept_of_failures_that_count_no_more() -> None:
    failing = FailingWriters()
    for number in range(1_000):
        failing.note_failure(f"w{number}", WHY, float(number))
    failing.note_exclusion("w999", 999.0)
    assert failing.find_failing(["w999"], 0, 1_000.0) is None
    assert len(failing._records) == FAILING_SPAN_S - 1
    failing.find_failing([], 0, 1_000.0 + FAILING_SPAN_S + FIRST_S)
    assert not failing._records
