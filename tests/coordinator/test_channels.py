"""Who may send rows of a channel, and when the next may (rules CH3, CH4, CH5): what follows from which event."""

import pytest

from headgate_coordinator.core.events import (
    Broken,
    CheckpointAsked,
    OffsetsRefused,
    OffsetsWon,
    OpenRequested,
    Published,
    SlotWon,
    Tick,
    WriterLeaving,
)
from headgate_coordinator.core.instructions import (
    Alarm,
    Barrier,
    Decided,
    EndChannel,
    Evict,
    Grant,
    Instruction,
    OpenRefused,
    Send,
    WinOffsets,
)
from headgate_coordinator.core.refusals import FORBIDDEN, MOVED, NEVER_ISSUED, NOT_RECORDED, OPENED_AGAIN, TAKEN_OVER, USED_UP
from support.one_table import OneTable, membership, orders

KNOWN = {"orders": [3, 50, "ann", 0]}


def granted(out: list[Instruction]) -> list[tuple[str, int, int]]:
    """(writer, incarnation, committed offset) of each grant."""
    return [(process, order.incarnation, order.committed_offset) for process, order in orders(Grant, out)]


def refused(out: list[Instruction]) -> list[str]:
    return [order.refusal.code for _, order in orders(OpenRefused, out)]


def test_ch4_a_new_producer_is_answered_once_its_incarnation_is_in_a_slot() -> None:
    table = OneTable("a")
    assert table.tell(table.opens("a", "orders")) == [WinOffsets(1, {"orders": (1, 0, "ann")})]
    assert table.tell(OffsetsWon(1)) == [Send("a", 1, Grant(1, "orders", 1, 0, 1))]


def test_ch4_a_new_producer_of_a_known_channel_raises_its_incarnation_and_goes_on_behind_its_offset() -> None:
    table = OneTable("a", channels=KNOWN)
    assert table.tell(table.opens("a", "orders")) == [WinOffsets(1, {"orders": (4, 50, "ann")})]
    assert granted(table.tell(OffsetsWon(1))) == [("a", 4, 50)]


def test_ch4_opens_that_wait_together_share_one_slot() -> None:
    table = OneTable("a")
    assert table.tell(table.opens("a", "one")) == [WinOffsets(1, {"one": (1, 0, "ann")})]
    assert table.tell(table.opens("a", "two"), table.opens("a", "three")) == []
    first, second = table.tell(OffsetsWon(1))
    assert first == Send("a", 1, Grant(1, "one", 1, 0, 1))
    assert second == WinOffsets(2, {"two": (1, 0, "ann"), "three": (1, 0, "ann")})
    assert len(orders(Grant, table.tell(OffsetsWon(2)))) == 2


def test_ch4_a_reconnect_with_the_incarnation_that_holds_the_channel_needs_no_slot() -> None:
    table = OneTable("a", channels=KNOWN)
    assert table.tell(table.opens("a", "orders", incarnation=3)) == [Send("a", 1, Grant(1, "orders", 3, 50, 1))]


def test_ch4_a_reconnect_with_a_lower_incarnation_is_taken_over() -> None:
    table = OneTable("a", channels=KNOWN)
    assert table.tell(table.opens("a", "orders", incarnation=2)) == [Send("a", 1, OpenRefused(1, TAKEN_OVER))]


@pytest.mark.parametrize("channel", ["orders", "unknown"])
@pytest.mark.parametrize("incarnation", [9, 2**64 - 1])
def test_ch4_an_incarnation_that_this_owner_does_not_know_goes_through_a_slot_which_an_outdated_owner_never_wins(
    channel: str, incarnation: int
) -> None:
    table = OneTable("a", channels=KNOWN)
    assert table.tell(table.opens("a", channel, incarnation=incarnation)) == [WinOffsets(1, {})]
    assert table.tell(OffsetsWon(1)) == [Send("a", 1, OpenRefused(1, NEVER_ISSUED))]


def test_ch4_a_false_incarnation_changes_nothing_for_others() -> None:
    table = OneTable("a", channels=KNOWN)
    table.tell(table.opens("a", "orders", incarnation=2**64 - 1), OffsetsWon(1))
    assert granted(table.tell(table.opens("a", "orders", incarnation=3))) == [("a", 3, 50)]


def test_a_channel_whose_incarnations_are_used_up_opens_for_its_producer_and_for_no_new_one() -> None:
    table = OneTable("a", channels={"orders": [2**63 - 1, 50, "ann", 0]})
    assert table.tell(table.opens("a", "orders")) == [Send("a", 1, OpenRefused(1, USED_UP))]
    assert granted(table.tell(table.opens("a", "orders", incarnation=2**63 - 1))) == [("a", 2**63 - 1, 50)]


def test_ch4_when_the_slot_is_refused_the_producer_may_try_again_and_nothing_was_raised() -> None:
    table = OneTable("a", channels=KNOWN)
    table.tell(table.opens("a", "orders"))
    alarm, answer = table.tell(OffsetsRefused(1, "the store is full"))
    assert isinstance(alarm, Alarm)
    assert answer == Send("a", 1, OpenRefused(1, NOT_RECORDED))
    assert table.tell(table.opens("a", "orders")) == [WinOffsets(2, {"orders": (4, 50, "ann")})]


def test_ch4_a_reconnect_behind_a_new_producer_waits_for_its_slot_and_is_then_taken_over() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    table.tell(table.opens("a", "orders"))
    assert table.tell(table.opens("b", "orders", incarnation=3)) == []
    out = table.tell(OffsetsWon(1))
    assert (granted(out), refused(out)) == ([("a", 4, 50)], ["CODE_CHANNEL_TAKEN_OVER"])
    assert orders(EndChannel, out) == []


def test_ch4_a_producer_is_not_told_for_good_that_it_is_taken_over_before_a_slot_says_so() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    assert table.tell(table.opens("b", "orders")) == [Send("a", 1, EndChannel("orders", hold, OPENED_AGAIN))]


def test_ch5_a_channel_belongs_to_the_principal_that_opened_it_first() -> None:
    table = OneTable("a", channels=KNOWN)
    assert table.tell(table.opens("a", "orders", principal="eve")) == [Send("a", 1, OpenRefused(1, FORBIDDEN))]
    assert refused(table.tell(table.opens("a", "orders", incarnation=3, principal="eve"))) == ["CODE_CHANNEL_FORBIDDEN"]


def test_ch5_of_two_principals_that_open_a_new_channel_together_the_first_gets_it() -> None:
    table = OneTable("a")
    table.tell(table.opens("a", "orders", principal="ann"), table.opens("a", "orders", principal="eve"))
    out = table.tell(OffsetsWon(1))
    assert granted(out) == [("a", 1, 0)]
    assert refused(out) == ["CODE_CHANNEL_FORBIDDEN"]


def test_ch3_the_older_writer_is_ended_first_and_a_channel_without_uncommitted_rows_needs_no_checkpoint() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    assert table.tell(table.opens("b", "orders", incarnation=3)) == [Send("a", 1, EndChannel("orders", hold, OPENED_AGAIN))]
    assert granted(table.tell(table.ended("a", "orders", hold, uncommitted=False))) == [("b", 3, 50)]


def test_ch3_an_open_waits_until_every_checkpoint_that_can_hold_rows_of_the_older_writer_is_published() -> None:
    """The older writer need not have seen the barrier of checkpoint 1 when it lets the channel go: its rows may be in 1 or 2."""
    table = OneTable("a", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    table.tell(table.opens("a", "orders", incarnation=3))
    assert table.tell(table.ended("a", "orders", hold, uncommitted=True)) == []
    table.commit(1, "a", {"orders": 60})
    assert table.decide(1) == [
        Send("a", 1, Decided(1, queryable=False)),
        Send("a", 1, Barrier(2, membership(3, "a"))),
        Send("a", 1, Decided(1, queryable=True)),
    ]
    table.commit(2, "a", {"orders": 70})
    assert orders(Grant, table.tell(SlotWon(1, 2))) == []
    assert granted(table.tell(Published(1, 2))) == [("a", 3, 70)]


def test_an_open_is_answered_with_an_offset_that_readers_see() -> None:
    """A client that reconnects takes what is committed for queryable: the writer that would have said so is another."""
    table = OneTable("a", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    table.commit(1, "a", {"orders": 60})
    table.tell(SlotWon(1, 1), table.ended("a", "orders", hold, uncommitted=False))
    assert table.tell(table.opens("a", "orders", incarnation=3)) == []
    assert granted(table.tell(Published(1, 1))) == [("a", 3, 60)]


def test_an_open_that_waited_in_an_older_generation_asks_for_no_checkpoint_in_this_one() -> None:
    table = OneTable("a", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    table.tell(table.ended("a", "orders", hold, uncommitted=True), table.opens("a", "orders", incarnation=3))
    assert orders(Barrier, table.tell(Broken("a", 1, "its disk is full"))) == []
    assert table.core.deadline() == 30.0, "nothing is due but the end of the alarm"


def test_an_answer_to_another_slot_than_the_one_under_way_raises_nothing() -> None:
    table = OneTable("a", channels=KNOWN)
    table.tell(table.opens("a", "orders"))
    assert table.tell(OffsetsWon(2)) == []
    assert granted(table.tell(OffsetsWon(1))) == [("a", 4, 50)]


def test_ch3_ch4_the_slot_of_a_new_incarnation_is_written_when_the_older_rows_are_decided() -> None:
    """Its record holds the committed offset: an earlier one would take the channel back behind rows that are committed."""
    table = OneTable("a", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    table.tell(table.opens("a", "orders"))
    assert orders(Barrier, table.tell(table.ended("a", "orders", hold, uncommitted=True))) == [
        ("a", Barrier(1, membership(2, "a")))
    ]
    table.commit(1, "a", {"orders": 60})
    table.tell(SlotWon(1, 1))
    assert table.tell(Published(1, 1))[1:] == [WinOffsets(1, {"orders": (4, 60, "ann")})]


def test_ch3_rows_of_a_client_that_went_away_ask_for_no_checkpoint_before_somebody_waits_for_them() -> None:
    table = OneTable("a", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    assert table.tell(table.ended("a", "orders", hold, uncommitted=True)) == []
    assert table.core.deadline() is None
    assert table.tell(table.opens("a", "orders", incarnation=3)) == [Send("a", 1, Barrier(1, membership(2, "a")))]


def test_ch3_even_at_the_same_writer_a_channel_is_ended_before_it_is_granted_again() -> None:
    table = OneTable("a", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    assert orders(EndChannel, table.tell(table.opens("a", "orders", incarnation=3))) == [
        ("a", EndChannel("orders", hold, OPENED_AGAIN))
    ]
    assert granted(table.tell(table.ended("a", "orders", hold, uncommitted=False))) == [("a", 3, 50)]


def test_ch3_the_end_of_an_older_hold_says_nothing_of_the_present_one() -> None:
    table = OneTable("a", channels=KNOWN)
    first = table.grant("a", "orders", incarnation=3)
    table.tell(table.ended("a", "orders", first, uncommitted=False))
    second = table.grant("a", "orders", incarnation=3)
    table.tell(table.ended("a", "orders", first, uncommitted=True))
    assert first != second
    assert table.core.channels == 1


def test_ch3_a_writer_that_does_not_let_a_channel_go_in_time_is_cut_off_once() -> None:
    table = OneTable("a", "b", channels={**KNOWN, "other": [1, 1, "ann", 0]})
    table.grant("a", "orders", incarnation=3)
    table.grant("a", "other", incarnation=1)
    table.tell(table.opens("b", "orders", incarnation=3))
    table.tell(table.opens("b", "other", incarnation=1), after=1.0)
    assert table.core.deadline() == 1.5
    (evict,) = table.tell(Tick(), after=0.5)
    assert isinstance(evict, Evict)
    assert evict.process == "a"
    assert table.tell(Tick(), after=10.0) == []
    assert table.core.deadline() is None


def test_ch3_the_time_for_letting_a_channel_go_is_not_made_longer_by_others_that_want_it() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    table.grant("a", "orders", incarnation=3)
    table.tell(table.opens("b", "orders", incarnation=3))
    assert table.tell(table.opens("b", "orders", incarnation=3), after=1.0) == [], "it was told so already"
    assert table.core.deadline() == 1.5


def test_ch3_a_writer_that_lets_a_channel_go_in_time_is_not_cut_off() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    table.tell(table.opens("b", "orders", incarnation=3))
    table.tell(table.ended("a", "orders", hold, uncommitted=False), after=1.0)
    assert table.core.deadline() is None
    assert table.tell(Tick(), after=10.0) == []


def test_ch3_the_registry_is_empty_in_a_new_generation_and_waiting_opens_are_asked_again_by_the_writers() -> None:
    table = OneTable("a", channels=KNOWN)
    table.grant("a", "orders", incarnation=3)
    table.tell(table.opens("a", "orders", incarnation=3), Broken("a", 1, "its disk is full"))
    assert table.core.channels == 0
    assert granted(table.tell(table.opens("a", "orders", incarnation=3))) == [("a", 3, 50)]


def test_ch4_a_slot_that_was_under_way_at_an_abort_is_waited_for_and_counts() -> None:
    table = OneTable("a", channels=KNOWN)
    table.tell(table.opens("a", "orders"), Broken("a", 1, "its disk is full"))
    assert table.tell(table.opens("a", "orders", incarnation=3)) == []
    assert refused(table.tell(OffsetsWon(1))) == ["CODE_CHANNEL_TAKEN_OVER"]


def test_an_open_at_a_writer_that_leaves_is_sent_elsewhere() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    table.tell(WriterLeaving("b"))
    assert table.tell(table.opens("b", "orders", incarnation=3)) == [Send("b", 1, OpenRefused(1, MOVED))]


def test_an_open_that_waits_at_a_writer_which_then_leaves_is_sent_elsewhere() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    table.grant("a", "orders", incarnation=3)
    table.tell(table.opens("b", "orders", incarnation=3))
    assert refused(table.tell(WriterLeaving("b"))) == ["CODE_MOVED"]


def test_an_open_whose_slot_is_under_way_when_its_writer_leaves_is_sent_elsewhere() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    table.tell(table.opens("b", "orders"), WriterLeaving("b"))
    assert refused(table.tell(OffsetsWon(1))) == ["CODE_MOVED"]


def test_a_repeated_open_is_one_open() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    again = OpenRequested("b", 1, 77, "orders", 3, "ann")
    table.tell(again, again)
    out = table.tell(table.ended("a", "orders", hold, uncommitted=False))
    assert granted(out) == [("b", 3, 50)]
    assert orders(EndChannel, out) == []
