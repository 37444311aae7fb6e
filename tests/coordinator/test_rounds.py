"""Rounds of one table from barrier to decision: what follows from which event, in which order."""

import pytest

from headgate_coordinator.events import (
    Broken,
    CommitRefused,
    InstantAsked,
    InstantIssued,
    OpenRequested,
    Published,
    RoundAsked,
    SlotWon,
    Tick,
    WriterLeaving,
    WriterLost,
)
from headgate_coordinator.instructions import (
    Adopt,
    Alarm,
    Barrier,
    Commit,
    Decided,
    DropRound,
    Instant,
    IssueInstant,
    Send,
)
from support.one_table import OneTable, joined, loaded, only, orders, plan


def test_the_first_writer_gets_a_plan_at_once() -> None:
    assert OneTable().tell(joined("a")) == [Send("a", 1, Adopt(plan(1, "a")))]


def test_a_round_with_rows_is_issued_ended_committed_and_told_in_this_order() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    assert table.tell(loaded("a")) == []
    assert table.tell(InstantAsked("a", 1, 1)) == [IssueInstant(1, 1)]
    assert table.tell(table.issued(1)) == [Send("a", 1, Instant(1, "instant 1"))]
    assert table.core.deadline() == 0.5
    assert table.tell(Tick(), after=0.5) == [Send("a", 1, Barrier(1, plan(2, "a")))]
    assert table.tell(table.barrier("a", 1, {"orders": 9}, 100)) == []
    assert table.tell(table.flushed("a", 1, ["one", "two"])) == [Commit(1, 1, ["one", "two"], {"orders": (1, 9, "ann")})]
    assert table.tell(SlotWon(1, 1)) == [Send("a", 1, Decided(1, queryable=False))]
    assert table.tell(Published(1, 1), after=0.25) == [Send("a", 1, Decided(1, queryable=True))]
    assert (table.core.last_round_seconds, table.core.last_round_files, table.core.last_round_bytes) == (0.25, 2, 100)


def test_ro5_offsets_without_rows_are_committed_without_an_instant() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(RoundAsked("a", 1), after=0.5)
    out = table.tell(table.barrier("a", 1, {"orders": 9}), table.flushed("a", 1))
    assert out == [Commit(1, 1, [], {"orders": (1, 9, "ann")})]


def test_ro5_a_round_with_nothing_writes_nothing_and_is_decided_for_those_who_wait() -> None:
    table = OneTable("a")
    table.tell(RoundAsked("a", 1), after=0.5)
    out = table.tell(table.barrier("a", 1), table.flushed("a", 1))
    assert out == [Send("a", 1, Decided(1, queryable=False)), Send("a", 1, Decided(1, queryable=True))]


def test_ro5_a_round_with_nothing_is_not_told_as_queryable_before_the_rounds_behind_it_are() -> None:
    """Writers take it for every round up to it; a flush was answered 10 ms before readers saw its rows."""
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(RoundAsked("a", 1), after=0.5)
    table.commit(1, "a", {"orders": 9})
    table.tell(SlotWon(1, 1))
    for empty in (2, 3):
        table.tell(RoundAsked("a", 1), Tick(), after=0.5)
        assert table.pass_all(empty, "a") == [Send("a", 1, Decided(empty, queryable=False))]
    assert table.tell(Published(1, 1)) == [Send("a", 1, Decided(number, queryable=True)) for number in (1, 2, 3)]


def test_ro5_an_instant_that_no_file_needs_is_dropped_before_the_offsets_are_committed() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(InstantAsked("a", 1, 1), table.issued(1), RoundAsked("a", 1), Tick(), after=0.5)
    out = table.tell(table.barrier("a", 1, {"orders": 9}), table.flushed("a", 1))
    assert out == [DropRound(1, 1), Commit(1, 1, [], {"orders": (1, 9, "ann")})]


def test_a_round_waits_for_its_instant_so_that_a_refusal_is_never_mistaken() -> None:
    """A refused IssueInstant behind a Commit of the same round would look as if the commit had been refused."""
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(InstantAsked("a", 1, 1), RoundAsked("a", 1), Tick(), after=0.5)
    assert table.tell(table.barrier("a", 1, {"orders": 9}), table.flushed("a", 1)) == []
    assert only(Commit, table.tell(table.issued(1))) == [Commit(1, 1, [], {"orders": (1, 9, "ann")})]


def test_only_channels_whose_offset_grew_are_in_the_commit() -> None:
    table = OneTable("a", channels={"orders": [3, 50, "ann", 0], "idle": [1, 5, "ann", 0]})
    table.tell(RoundAsked("a", 1), after=0.5)
    out = table.tell(table.barrier("a", 1, {"orders": 60, "idle": 5}), table.flushed("a", 1))
    assert out == [Commit(1, 1, [], {"orders": (3, 60, "ann")})]


def test_ex2_ro3_a_round_is_complete_when_every_member_reported_as_both_sides() -> None:
    table = OneTable("a", "b")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    assert table.tell(table.barrier("a", 2), table.barrier("b", 2), table.flushed("b", 2)) == []
    assert [order.queryable for _, order in orders(Decided, table.tell(table.flushed("a", 2)))] == [False, False, True, True]


def test_ro1_the_next_barrier_waits_until_the_older_round_is_decided() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    assert table.tell(RoundAsked("a", 1), Tick(), after=29.0) == []
    assert only(Commit, table.tell(table.barrier("a", 1, {"orders": 1}), table.flushed("a", 1)))
    assert table.tell(SlotWon(1, 1)) == [Send("a", 1, Decided(1, queryable=False)), Send("a", 1, Barrier(2, plan(3, "a")))]


def test_tm5_instants_are_issued_in_round_order_though_the_younger_round_asks_first() -> None:
    table = OneTable("a", "b")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    assert table.tell(InstantAsked("b", 1, 3)) == [IssueInstant(1, 2), IssueInstant(1, 3)]
    assert table.tell(InstantAsked("a", 1, 2), InstantAsked("a", 1, 3)) == []


def test_the_instant_is_told_to_all_members_of_the_round() -> None:
    table = OneTable("a", "b")
    table.tell(InstantAsked("b", 1, 2))
    assert table.tell(InstantIssued(1, 2, "007")) == [Send("a", 1, Instant(2, "007")), Send("b", 1, Instant(2, "007"))]


def test_ro7_a_writer_that_joins_gets_the_next_round_and_the_others_learn_it_with_their_barrier() -> None:
    table = OneTable("a")
    following = plan(2, "a", "b")
    assert table.tell(joined("b")) == [Send("a", 1, Barrier(1, following)), Send("b", 1, Adopt(following))]


def test_ro7_a_writer_that_joins_while_a_round_flushes_waits_for_the_next_border() -> None:
    table = OneTable("a")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    assert table.tell(joined("b")) == []
    out = table.pass_all(1, "a")
    assert out[-2:] == [Send("a", 1, Barrier(2, plan(3, "a", "b"))), Send("b", 1, Adopt(plan(3, "a", "b")))]


def test_ro7_an_idle_table_does_nothing() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    assert table.core.deadline() is None
    assert table.tell(loaded("a", 0), Tick(), after=3600.0) == []


def test_ro7_rows_wait_for_the_interval_and_what_was_committed_asks_for_no_further_round() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(loaded("a"), Tick())
    table.tell(Tick(), after=0.5)
    table.commit(1, "a", {"orders": 1})
    table.decide(1)
    assert table.core.deadline() is None
    table.tell(loaded("a", 40))
    assert table.core.deadline() == 10.5


def test_ro7_rows_at_a_bucket_side_get_a_round_though_no_load_was_reported() -> None:
    table = OneTable("a")
    table.tell(InstantAsked("a", 1, 1))
    assert table.core.deadline() == 0.5


def test_ro7_rows_that_came_behind_the_barrier_get_a_round_though_the_report_of_them_came_before_the_decision() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(loaded("a", 100))
    table.tell(Tick(), after=0.5)
    table.tell(loaded("a", 130))
    table.commit(1, "a", {"orders": 1}, size=100)
    table.decide(1)
    assert table.core.uncommitted_bytes == 30
    assert table.core.deadline() == 10.5


def test_ro7_bytes_of_the_flushing_round_do_not_end_the_next_one() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(loaded("a", 300 << 20), Tick(), after=0.5)
    table.tell(table.barrier("a", 1, {"orders": 1}, 300 << 20), table.flushed("a", 1))
    table.tell(loaded("a", (300 << 20) + 1), SlotWon(1, 1), Published(1, 1), after=5.0)
    assert table.core.deadline() == 10.5


def test_ro7_a_round_that_is_not_complete_in_time_is_aborted_and_the_missing_parts_are_named() -> None:
    table = OneTable("a", "b")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    table.tell(table.barrier("a", 2), table.flushed("a", 2), table.flushed("b", 2))
    assert table.core.deadline() == 30.5
    (alarm,) = only(Alarm, table.tell(Tick(), after=30.0))
    assert "missing: the barrier of b" in alarm.text


def test_ro2_an_abort_gives_up_every_round_that_is_not_sent_and_tells_all_writers_of_a_new_generation() -> None:
    table = OneTable("a", "b")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    table.tell(InstantAsked("a", 1, 3))
    out = table.tell(Broken("b", 1, "its disk is full"))
    adopt = plan(1, "a", "b")
    assert out[2:] == [DropRound(1, 2), DropRound(1, 3), Send("a", 2, Adopt(adopt)), Send("b", 2, Adopt(adopt))]
    assert (table.core.generation, table.core.round) == (2, 1)


def test_ro2_messages_of_older_generations_are_refused() -> None:
    table = OneTable("a")
    late = [table.barrier("a", 1), table.flushed("a", 1), InstantAsked("a", 1, 1), RoundAsked("a", 1), Broken("a", 1, "")]
    table.tell(Broken("a", 1, "its disk is full"))
    assert table.tell(*late, OpenRequested("a", 1, 1, "orders", 0, "ann")) == []
    assert table.core.deadline() is None


def test_ro2_a_round_whose_slot_is_sent_is_decided_though_its_generation_is_over() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    table.commit(1, "a", {"orders": 9})
    out = table.tell(Broken("a", 1, "its disk is full"))
    assert out[2:] == [Send("a", 2, Adopt(plan(1, "a")))]  # nothing is dropped
    assert table.tell(table.opens("a", "orders", incarnation=1)) == []
    assert table.tell(SlotWon(1, 1)) == []
    (granted,) = only(Send, table.tell(Published(1, 1)))
    assert granted.order.committed_offset == 9  # type: ignore[union-attr]


def test_ro2_no_barrier_is_sent_while_a_round_of_an_older_generation_is_undecided() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    table.commit(1, "a", {"orders": 9})
    table.tell(Broken("a", 1, "its disk is full"))
    assert table.tell(RoundAsked("a", 2), Tick(), after=0.5) == []
    assert orders(Barrier, table.decide(1, generation=1)) == [("a", Barrier(1, plan(2, "a")))]


def test_a_refused_commit_aborts_and_its_instant_is_dropped() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    table.commit(1, "a", {"orders": 9})
    out = table.tell(CommitRefused(1, 1, "the store is full"))
    assert out[2:] == [DropRound(1, 1), Send("a", 2, Adopt(plan(1, "a")))]
    assert table.grant("a", "orders", incarnation=1) == 2


def test_a_refused_commit_of_an_older_generation_lets_opens_go_on_with_the_older_offset() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    table.commit(1, "a", {"orders": 9})
    table.tell(Broken("a", 1, "its disk is full"), OpenRequested("a", 2, 9, "orders", 1, "ann"))
    dropped, granted = table.tell(CommitRefused(1, 1, "the store is full"))
    assert dropped == DropRound(1, 1)
    assert granted.order.committed_offset == 0  # type: ignore[union-attr]


def test_after_an_abort_the_first_rows_get_a_round_soon_and_later_aborts_wait_longer() -> None:
    table = OneTable("a")
    for generation, wait in ((1, 0.5), (2, 0.5), (3, 1.0), (4, 2.0)):
        table.tell(loaded("a"))
        assert table.core.deadline() == table.now + wait
        table.tell(Broken("a", generation, "its disk is full"))
    assert "4 were given up" in table.core.alarms[0]
    table.tell(RoundAsked("a", 5), Tick(), after=0.5)
    table.pass_all(1, "a")
    assert table.core.alarms == []
    table.tell(Broken("a", 5, "its disk is full"), loaded("a"))
    assert table.core.deadline() == table.now + 0.5


def test_ro2_what_was_uncommitted_is_dropped_with_its_generation_and_asks_for_no_round() -> None:
    table = OneTable("a")
    table.tell(loaded("a"), Broken("a", 1, "its disk is full"))
    assert (table.core.uncommitted_bytes, table.core.deadline()) == (0, None)


def test_ro8_a_lost_member_aborts_and_the_others_share_its_key_groups() -> None:
    table = OneTable("a", "b")
    out = table.tell(WriterLost("b", "silent"))
    assert out[2:] == [Send("a", 2, Adopt(plan(1, "a")))]


def test_ro8_a_process_that_comes_back_on_another_stream_aborts() -> None:
    table = OneTable("a", "b")
    table.tell(joined("b"))
    assert table.core.generation == 2


def test_ro8_a_process_that_comes_back_after_its_release_had_a_part_in_this_generation() -> None:
    """Its exchange streams of this generation have been numbered (rule EX1): it must not begin them again."""
    table = OneTable("a", "b")
    table.tell(WriterLeaving("b"))
    table.pass_all(2, "a", "b")
    table.tell(joined("b"))
    assert table.core.generation == 2


def test_a_writer_that_is_lost_before_it_had_a_part_aborts_nothing() -> None:
    table = OneTable("a")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    assert table.tell(joined("b"), WriterLost("b", "silent")) == []
    assert table.core.generation == 1


def test_a_report_of_a_channel_that_nobody_opened_is_never_committed() -> None:
    table = OneTable("a")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    out = table.tell(table.barrier("a", 1, {"ghost": 9}), table.flushed("a", 1, ["file"]))
    assert only(Commit, out) == []
    assert table.core.generation == 2


@pytest.mark.parametrize("round_", [1, 3])
def test_reports_for_a_round_that_is_not_flushing_change_nothing(round_: int) -> None:
    table = OneTable("a", "b")
    table.tell(RoundAsked("a", 1), Tick(), after=0.5)
    reports = [table.barrier("a", round_), table.barrier("b", round_), table.flushed("a", round_), table.flushed("b", round_)]
    assert table.tell(*reports) == []
