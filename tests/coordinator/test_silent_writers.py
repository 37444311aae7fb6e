"""A writer that lives and never passes a barrier: when it is excluded, and what excludes nobody (rule RO11)."""

import pytest

from headgate_coordinator.core.events import (
    InstantAsked,
    InstantRefused,
    Progressed,
    Tick,
    WaitsForRoom,
    WriterLost,
)
from headgate_coordinator.core.instructions import Alarm, Attach, CommitCheckpoint, Decided
from headgate_coordinator.core.writer_records import SILENT_AT
from support.one_table import OneTable, joined, loaded, only, orders

TIMEOUT_S = 30.0


def begin_flush(table: OneTable) -> int:
    """Ends a checkpoint with rows; returns its number. Behind an abort some time passes before."""
    number = table.core.checkpoint
    for _ in range(60):
        table.tell(loaded("a"), Tick(), after=1.0)
        if table.core.checkpoint > number:
            return number
    raise AssertionError("no checkpoint ends")


def hold_up(table: OneTable, *silent: str, others: str = "abc") -> list[Alarm]:
    """One checkpoint whose barrier these never pass, until it is given up; returns the alarms of that moment.

    No bucket side has all barriers, so nobody reports files.
    """
    number = begin_flush(table)
    table.tell(*[table.barrier(each, number) for each in others if each not in silent])
    return only(Alarm, table.tell(Tick(), after=TIMEOUT_S))


def excluded(table: OneTable) -> list[str]:
    """Processes in the alarms that stand."""
    return [alarm.text.split()[1] for alarm in table.core.alarms if "is excluded until it restarts" in alarm.text]


def test_ro11_a_writer_that_alone_holds_up_checkpoint_after_checkpoint_is_excluded_and_the_others_go_on() -> None:
    table = OneTable("a", "b", "c")
    for _ in range(SILENT_AT - 1):
        (alarm,) = hold_up(table, "b")
        assert "missing: the barrier of b, the files of" in alarm.text
        assert excluded(table) == []
    alarms = hold_up(table, "b")
    assert alarms[0].text == "writer b at b:1 is excluded: it alone did not pass the barriers of 3 checkpoints in a row"
    assert excluded(table) == ["b"]
    number = begin_flush(table)
    table.tell(InstantAsked("c", table.core.generation, number), table.issued(number))
    table.tell(table.barrier("a", number, handed={"c": 5}), table.barrier("c", number), table.flushed("a", number))
    assert only(CommitCheckpoint, table.tell(table.flushed("c", number, ["f"], received={"a": 5})))


def test_ro11_the_others_and_the_excluded_writer_hear_of_the_new_membership() -> None:
    table = OneTable("a", "b", "c")
    for _ in range(SILENT_AT - 1):
        hold_up(table, "c")
    number = begin_flush(table)
    table.tell(table.barrier("a", number), table.barrier("b", number))
    attached = orders(Attach, table.tell(Tick(), after=TIMEOUT_S))
    assert {process: order.membership.members for process, order in attached} == dict.fromkeys(
        ("a", "b", "c"), (("a", "a:1"), ("b", "b:1"))
    )


def test_ro11_a_writer_that_starves_and_passes_each_barrier_too_late_is_not_excluded() -> None:
    table = OneTable("a", "b", "c")
    for _ in range(3 * SILENT_AT):
        late = table.barrier("b", begin_flush(table))
        number = table.core.checkpoint - 1
        table.tell(table.barrier("a", number), table.barrier("c", number))
        assert table.tell(Tick(), after=TIMEOUT_S)
        assert table.tell(late) == [], "it belongs to a generation that is over"
    assert excluded(table) == []


def test_ro11_a_checkpoint_that_is_decided_in_between_begins_the_count_anew() -> None:
    table = OneTable("a", "b", "c")
    for _ in range(3):
        for _ in range(SILENT_AT - 1):
            hold_up(table, "b")
        table.pass_all(begin_flush(table), "a", "b", "c")
    assert excluded(table) == []


@pytest.mark.parametrize("between", [("a", "b"), ("a", "b", "c"), ("c",), ()], ids=["two", "all", "another", "none"])
def test_ro11_a_checkpoint_that_others_hold_up_begins_the_count_anew(between: tuple[str, ...]) -> None:
    """A store that does not answer, or a machine that starves, stops several; with no barrier missing, files are."""
    table = OneTable("a", "b", "c")
    for _ in range(SILENT_AT - 1):
        hold_up(table, "b")
    hold_up(table, *between)
    hold_up(table, "b")
    assert excluded(table) == []


@pytest.mark.parametrize("silent", [("a", "b"), ("a", "b", "c"), ()], ids=["two", "all", "files"])
def test_ro11_checkpoints_that_more_than_one_writer_or_the_store_holds_up_exclude_nobody(silent: tuple[str, ...]) -> None:
    table = OneTable("a", "b", "c")
    for _ in range(3 * SILENT_AT):
        assert all("excluded" not in alarm.text for alarm in hold_up(table, *silent))


def test_ro11_a_checkpoint_that_waits_for_its_instant_counts_against_nobody() -> None:
    """The store refuses the coordinator, so it may refuse the writer's files that keep it from its barrier."""
    table = OneTable("a", "b", "c")
    number = begin_flush(table)
    table.tell(InstantAsked("a", 1, number), table.barrier("a", number), table.barrier("c", number))
    for _ in range(3 * SILENT_AT):
        assert only(Attach, table.tell(InstantRefused(1, number, "no space left"), Tick(), after=TIMEOUT_S)) == []
    assert excluded(table) == []


def test_ro11_a_writer_whose_rows_wait_for_room_at_another_one_is_not_at_fault() -> None:
    table = OneTable("a", "b", "c")
    for _ in range(3 * SILENT_AT):
        number = begin_flush(table)
        waits = WaitsForRoom("b", table.core.generation, number)
        table.tell(waits, table.barrier("a", number), table.barrier("c", number))
        assert table.tell(waits, Tick(), after=TIMEOUT_S / 2) == []
        assert table.tell(waits, Tick(), after=TIMEOUT_S / 2), "it waits, which is no progress"
    assert excluded(table) == []


def test_ro11_a_slow_writer_that_goes_on_holds_nothing_up() -> None:
    table = OneTable("a", "b", "c")
    number = begin_flush(table)
    table.tell(table.barrier("a", number), table.barrier("c", number))
    for _ in range(3 * SILENT_AT):
        assert table.tell(Progressed("b", table.core.generation, number), Tick(), after=TIMEOUT_S - 1.0) == []


def test_ro11_a_writer_that_breaks_its_stream_in_between_does_not_begin_anew() -> None:
    table = OneTable("a", "b", "c")
    for _ in range(SILENT_AT):
        table.tell(WriterLost("b", "its stream broke"), joined("b"))
        table.pass_all(table.core.checkpoint - 1, "a", "c")
        hold_up(table, "b")
    assert excluded(table) == ["b"]


def test_ro11_a_restarted_writer_has_a_part_again() -> None:
    table = OneTable("a", "b", "c")
    for _ in range(SILENT_AT):
        hold_up(table, "b")
    table.tell(WriterLost("b", "killed"), joined("b2"))
    assert excluded(table) == []
    table.pass_all(table.core.checkpoint - 1, "a", "c")
    number = begin_flush(table)
    assert ("b2", Decided(number, queryable=False)) in orders(Decided, table.pass_all(number, "a", "c", "b2"))


def test_ro11_the_last_writer_is_not_excluded_before_there_is_another_one() -> None:
    table = OneTable("a")
    for _ in range(2 * SILENT_AT):
        assert hold_up(table, "a", others="a")
        assert excluded(table) == []
    table.tell(joined("z"))
    assert table.tell(Tick(), after=TIMEOUT_S), "the border for the new writer waits for the barrier of the silent one"
    assert excluded(table) == ["a"]
