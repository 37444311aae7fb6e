"""A table that somebody needs for himself: every channel ends, what is not sent is given up, a sent slot is decided (CH8)."""

from headgate_coordinator.core.events import CheckpointAsked, EndAsked, InstantAsked, OffsetsWon, Published, SlotWon, Tick
from headgate_coordinator.core.instructions import (
    CommitCheckpoint,
    Decided,
    Detach,
    Drained,
    DropCheckpoint,
    Send,
    WinOffsets,
)
from headgate_coordinator.core.refusals import RESTORED
from support.one_table import OneTable, joined, only, orders

KNOWN = {"orders": [3, 50, "ann", 0]}
END = EndAsked(RESTORED)


def test_every_writer_is_released_with_the_reason_under_the_generation_that_it_knows() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    table.grant("b", "orders", incarnation=3)
    assert table.tell(END) == [Send("a", 1, Detach(RESTORED)), Send("b", 1, Detach(RESTORED)), Drained()]


def test_checkpoints_that_are_not_sent_are_given_up() -> None:
    table = OneTable("a", channels=KNOWN)
    table.grant("a", "orders", incarnation=3)
    table.tell(InstantAsked("a", 1, 1), table.issued(1), CheckpointAsked("a", 1))
    table.tell(Tick(), after=1)
    table.tell(InstantAsked("a", 1, 2), table.issued(2))
    out = table.tell(table.barrier("a", 1, {"orders": 60}), END)
    assert only(DropCheckpoint, out) == [DropCheckpoint(1, 1), DropCheckpoint(1, 2)]
    assert only(CommitCheckpoint, out) == []
    assert out[-1] == Drained()


def test_ro2_a_checkpoint_whose_slot_is_sent_is_decided_first_and_nobody_hears_of_it_any_more() -> None:
    table = OneTable("a", channels=KNOWN)
    table.grant("a", "orders", incarnation=3)
    table.tell(CheckpointAsked("a", 1), after=1)
    assert only(CommitCheckpoint, table.commit(1, "a", {"orders": 60}))
    assert only(Drained, table.tell(END)) == []
    assert only(Drained, table.tell(SlotWon(1, 1))) == []
    out = table.tell(Published(1, 1))
    assert orders(Decided, out) == []
    assert only(Drained, out) == [Drained()]


def test_an_incarnation_that_is_being_made_durable_is_awaited() -> None:
    table = OneTable("a")
    (slot,) = only(WinOffsets, table.tell(table.opens("a", "orders")))
    assert only(Drained, table.tell(END)) == []
    out = table.tell(OffsetsWon(slot.number))
    assert out == [Drained()], "a channel was granted of a table that nobody has any more"


def test_a_writer_that_comes_afterwards_gets_no_part() -> None:
    table = OneTable("a")
    (slot,) = only(WinOffsets, table.tell(table.opens("a", "orders")))
    table.tell(END)
    assert table.tell(joined("b")) == [Send("b", 2, Detach())]
    assert table.tell(OffsetsWon(slot.number)) == [Drained()]
