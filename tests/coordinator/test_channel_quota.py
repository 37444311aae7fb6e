"""How many channels of a table a principal may have: its owner counts those that slots record."""

from headgate_coordinator.core.events import OffsetsRefused, OffsetsWon
from headgate_coordinator.core.instructions import Instruction, OpenRefused, Send, WinOffsets
from support.one_table import OneTable


def refusals(out: list[Instruction]) -> list[str]:
    return [each.order.refusal.code for each in out if isinstance(each, Send) and isinstance(each.order, OpenRefused)]


def full(out: list[Instruction]) -> bool:
    return refusals(out) == ["CODE_QUOTA"]


def test_a_principal_with_all_its_channels_opens_those_and_no_other() -> None:
    table = OneTable("a", channels={"one": [1, 50, "ann", 0], "two": [1, 50, "ann", 0]})
    assert full(table.tell(table.opens("a", "three", channels=2)))
    assert not refusals(table.tell(table.opens("a", "one", incarnation=1, channels=2)))
    assert not refusals(table.tell(table.opens("a", "two", channels=2)))


def test_the_refusal_says_which_quota_it_is_and_what_to_do() -> None:
    table = OneTable("a", channels={"one": [1, 50, "ann", 0]})
    [sent] = table.tell(table.opens("a", "two", channels=1))
    assert isinstance(sent, Send)
    assert isinstance(sent.order, OpenRefused)
    assert "1 channels of this table, and its quota `channels` is 1" in sent.order.refusal.message
    assert "Use one of its channels again" in sent.order.refusal.fix


def test_others_channels_do_not_count_and_without_a_quota_none_do() -> None:
    table = OneTable("a", channels={"one": [1, 50, "bob", 0], "two": [1, 50, "ann", 0]})
    assert not refusals(table.tell(table.opens("a", "three", channels=2)))
    table.tell(OffsetsWon(1))
    assert not refusals(table.tell(table.opens("a", "four", channels=0)))


def test_channels_whose_slot_is_under_way_count_too() -> None:
    table = OneTable("a")
    out = table.tell(*(table.opens("a", f"c{number}", channels=3) for number in range(5)))
    assert refusals(out) == ["CODE_QUOTA", "CODE_QUOTA"]
    out = table.tell(OffsetsWon(1))
    assert any(isinstance(each, WinOffsets) for each in out)
    table.tell(OffsetsWon(2))
    assert full(table.tell(table.opens("a", "last", channels=3)))


def test_a_channel_that_no_slot_took_does_not_count() -> None:
    table = OneTable("a")
    table.tell(table.opens("a", "one", channels=1), OffsetsRefused(1, "the store is full"))
    assert not refusals(table.tell(table.opens("a", "two", channels=1)))


def test_a_new_producer_of_a_channel_does_not_count_it_again() -> None:
    table = OneTable("a", channels={"one": [1, 50, "ann", 0]})
    table.tell(table.opens("a", "one", channels=2), OffsetsWon(1))
    assert not refusals(table.tell(table.opens("a", "two", channels=2)))


def test_a_channel_that_is_opened_anew_does_not_count_twice_while_its_slot_is_under_way() -> None:
    table = OneTable("a", channels={"one": [1, 50, "ann", 0]})
    assert not refusals(table.tell(table.opens("a", "one", channels=2), table.opens("a", "two", channels=2)))
    assert full(table.tell(table.opens("a", "three", channels=2)))


def test_an_incarnation_that_was_never_issued_takes_nobodys_place() -> None:
    table = OneTable("a")
    out = table.tell(table.opens("a", "lost", incarnation=7, channels=1), table.opens("a", "one", channels=1))
    assert not refusals(out)
