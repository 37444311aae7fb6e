"""Checkpoints of one table from barrier to decision: what follows from which event, in which order."""

import pytest

from headgate_coordinator.core.checkpoint_commits import LastCheckpoint
from headgate_coordinator.core.events import (
    Broken,
    CheckpointAsked,
    CommitRefused,
    InstantAsked,
    InstantIssued,
    InstantRefused,
    OpenRequested,
    Progressed,
    Published,
    SlotWon,
    Tick,
    WriterLeaving,
    WriterLost,
)
from headgate_coordinator.core.instructions import (
    Alarm,
    Attach,
    Barrier,
    CommitCheckpoint,
    Decided,
    DropCheckpoint,
    Grant,
    IssueInstant,
    Send,
    UseInstant,
)
from headgate_coordinator.core.policy import CheckpointPolicy
from support.one_table import OneTable, joined, loaded, membership, only, orders


def test_the_first_writer_gets_a_plan_at_once() -> None:
    assert OneTable().tell(joined("a")) == [Send("a", 1, Attach(membership(1, "a")))]


def test_a_checkpoint_with_rows_is_issued_ended_committed_and_told_in_this_order() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    assert table.tell(loaded("a")) == []
    assert table.tell(InstantAsked("a", 1, 1)) == [IssueInstant(1, 1)]
    assert table.tell(table.issued(1)) == [Send("a", 1, UseInstant(1, "instant 1"))]
    assert table.core.deadline() == 0.25
    assert table.tell(Tick(), after=0.25) == [Send("a", 1, Barrier(1, membership(2, "a")))]
    assert table.tell(table.barrier("a", 1, {"orders": 9}, 100)) == []
    assert table.tell(table.flushed("a", 1, ["one", "two"])) == [
        CommitCheckpoint(1, 1, ["one", "two"], {"orders": (1, 9, "ann")})
    ]
    assert table.tell(SlotWon(1, 1)) == [Send("a", 1, Decided(1, queryable=False))]
    assert table.tell(Published(1, 1), after=0.25) == [Send("a", 1, Decided(1, queryable=True))]
    assert table.core.commits.last == LastCheckpoint(0.25, 2, 100)


def test_ro5_offsets_without_rows_are_committed_without_an_instant() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(CheckpointAsked("a", 1), after=0.5)
    out = table.tell(table.barrier("a", 1, {"orders": 9}), table.flushed("a", 1))
    assert out == [CommitCheckpoint(1, 1, [], {"orders": (1, 9, "ann")})]


def test_ro5_a_checkpoint_with_nothing_writes_nothing_and_is_decided_for_those_who_wait() -> None:
    table = OneTable("a")
    table.tell(CheckpointAsked("a", 1), after=0.5)
    out = table.tell(table.barrier("a", 1), table.flushed("a", 1))
    assert out == [Send("a", 1, Decided(1, queryable=False)), Send("a", 1, Decided(1, queryable=True))]


def test_ro5_a_checkpoint_with_nothing_is_not_told_as_queryable_before_the_checkpoints_behind_it_are() -> None:
    """Writers take it for every checkpoint up to it; a flush was answered 10 ms before readers saw its rows."""
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(CheckpointAsked("a", 1), after=0.5)
    table.commit(1, "a", {"orders": 9})
    table.tell(SlotWon(1, 1))
    for empty in (2, 3):
        table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
        assert table.pass_all(empty, "a") == [Send("a", 1, Decided(empty, queryable=False))]
    assert table.tell(Published(1, 1)) == [Send("a", 1, Decided(number, queryable=True)) for number in (1, 2, 3)]


def test_ro5_an_instant_that_no_file_needs_is_dropped_before_the_offsets_are_committed() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(InstantAsked("a", 1, 1), table.issued(1), CheckpointAsked("a", 1), Tick(), after=0.5)
    out = table.tell(table.barrier("a", 1, {"orders": 9}), table.flushed("a", 1))
    assert out == [DropCheckpoint(1, 1), CommitCheckpoint(1, 1, [], {"orders": (1, 9, "ann")})]


def test_a_checkpoint_waits_for_its_instant_so_that_a_refusal_is_never_mistaken() -> None:
    """A refused IssueInstant behind a CommitCheckpoint of the same checkpoint would look as if the commit had been refused."""
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(InstantAsked("a", 1, 1), CheckpointAsked("a", 1), Tick(), after=0.5)
    assert table.tell(table.barrier("a", 1, {"orders": 9}), table.flushed("a", 1)) == []
    assert only(CommitCheckpoint, table.tell(table.issued(1))) == [CommitCheckpoint(1, 1, [], {"orders": (1, 9, "ann")})]


def test_only_channels_whose_offset_grew_are_in_the_commit() -> None:
    table = OneTable("a", channels={"orders": [3, 50, "ann", 0], "idle": [1, 5, "ann", 0]})
    table.grant("a", "orders", incarnation=3)
    table.grant("a", "idle", incarnation=1)
    table.tell(CheckpointAsked("a", 1), after=0.5)
    out = table.tell(table.barrier("a", 1, {"orders": 60, "idle": 5}), table.flushed("a", 1))
    assert out == [CommitCheckpoint(1, 1, [], {"orders": (3, 60, "ann")})]


def test_ex2_ro3_a_checkpoint_is_complete_when_every_member_reported_as_both_sides() -> None:
    table = OneTable("a", "b")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    assert table.tell(table.barrier("a", 2), table.barrier("b", 2), table.flushed("b", 2)) == []
    assert [order.queryable for _, order in orders(Decided, table.tell(table.flushed("a", 2)))] == [False, False, True, True]


def test_ro1_the_next_barrier_waits_until_the_older_checkpoint_is_decided() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    assert table.tell(CheckpointAsked("a", 1), Tick(), after=29.0) == []
    assert only(CommitCheckpoint, table.tell(table.barrier("a", 1, {"orders": 1}), table.flushed("a", 1)))
    assert table.tell(SlotWon(1, 1)) == [Send("a", 1, Decided(1, queryable=False)), Send("a", 1, Barrier(2, membership(3, "a")))]


def test_tm5_instants_are_issued_in_checkpoint_order_though_the_younger_checkpoint_asks_first() -> None:
    table = OneTable("a", "b")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    assert table.tell(InstantAsked("b", 1, 3)) == [IssueInstant(1, 2)]
    assert table.tell(InstantAsked("a", 1, 2), InstantAsked("a", 1, 3)) == []
    assert table.tell(table.issued(2))[-1] == IssueInstant(1, 3)
    assert only(IssueInstant, table.tell(table.issued(3))) == []


def test_the_instant_is_told_to_all_members_of_the_checkpoint() -> None:
    table = OneTable("a", "b")
    table.tell(InstantAsked("b", 1, 2))
    assert table.tell(InstantIssued(1, 2, "007")) == [Send("a", 1, UseInstant(2, "007")), Send("b", 1, UseInstant(2, "007"))]


def test_ro7_a_writer_that_joins_gets_the_next_checkpoint_and_the_others_learn_it_with_their_barrier() -> None:
    table = OneTable("a")
    following = membership(2, "a", "b")
    assert table.tell(joined("b")) == [Send("a", 1, Barrier(1, following)), Send("b", 1, Attach(following))]


def test_ro7_a_writer_that_joins_while_a_checkpoint_flushes_waits_for_the_next_border() -> None:
    table = OneTable("a")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    assert table.tell(joined("b")) == []
    out = table.pass_all(1, "a")
    assert out[-2:] == [Send("a", 1, Barrier(2, membership(3, "a", "b"))), Send("b", 1, Attach(membership(3, "a", "b")))]


def test_ro7_an_idle_table_does_nothing() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    assert table.core.deadline() is None
    assert table.tell(loaded("a", 0), Tick(), after=3600.0) == []


def test_ro7_rows_wait_for_the_interval_and_what_was_committed_asks_for_no_further_checkpoint() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(loaded("a"), Tick())
    table.tell(Tick(), after=0.5)
    table.commit(1, "a", {"orders": 1})
    table.decide(1)
    assert table.core.deadline() is None
    table.tell(loaded("a", 40))
    assert table.core.deadline() == 10.5


def test_ro7_rows_at_a_bucket_side_get_a_checkpoint_though_no_load_was_reported() -> None:
    table = OneTable("a")
    table.tell(InstantAsked("a", 1, 1))
    assert table.core.deadline() == 0.25


def test_ro7_rows_that_came_behind_the_barrier_get_a_checkpoint_though_the_report_of_them_came_before_the_decision() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(loaded("a", 100))
    table.tell(Tick(), after=0.5)
    table.tell(loaded("a", 130))
    table.commit(1, "a", {"orders": 1}, size=100)
    table.decide(1)
    assert table.core.uncommitted_bytes == 30
    assert table.core.deadline() == 10.5


def test_ro7_bytes_of_the_flushing_checkpoint_do_not_end_the_next_one() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(loaded("a", 300 << 20), Tick(), after=0.5)
    table.tell(table.barrier("a", 1, {"orders": 1}, 300 << 20), table.flushed("a", 1))
    table.tell(loaded("a", (300 << 20) + 1), SlotWon(1, 1), Published(1, 1), after=5.0)
    assert table.core.deadline() == 10.5


def test_ro7_a_checkpoint_that_is_not_complete_in_time_is_aborted_and_the_missing_parts_are_named() -> None:
    table = OneTable("a", "b")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    table.tell(table.barrier("a", 2), table.flushed("a", 2), table.flushed("b", 2))
    assert table.core.deadline() == 30.5
    (alarm,) = only(Alarm, table.tell(Tick(), after=30.0))
    assert "missing: the barrier of b" in alarm.text


def test_ro2_an_abort_gives_up_every_checkpoint_that_is_not_sent_and_tells_all_writers_of_a_new_generation() -> None:
    table = OneTable("a", "b")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    table.tell(InstantAsked("a", 1, 3), table.issued(2), table.issued(3))
    out = table.tell(Broken("b", 1, "its disk is full"))
    attach = membership(1, "a", "b")
    assert out[2:] == [DropCheckpoint(1, 2), DropCheckpoint(1, 3), Send("a", 2, Attach(attach)), Send("b", 2, Attach(attach))]
    assert (table.core.generation, table.core.checkpoint) == (2, 1)


def test_ro2_messages_of_older_generations_are_refused() -> None:
    table = OneTable("a")
    late = [table.barrier("a", 1), table.flushed("a", 1), InstantAsked("a", 1, 1), CheckpointAsked("a", 1), Broken("a", 1, "")]
    table.tell(Broken("a", 1, "its disk is full"))
    assert table.tell(*late, OpenRequested("a", 1, 1, "orders", 0, "ann")) == []
    assert table.core.deadline() == 30.0, "nothing is due but the end of the alarm"


def test_ro2_a_checkpoint_whose_slot_is_sent_is_decided_though_its_generation_is_over() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    table.commit(1, "a", {"orders": 9})
    out = table.tell(Broken("a", 1, "its disk is full"))
    assert out[2:] == [Send("a", 2, Attach(membership(1, "a")))]  # nothing is dropped
    assert table.tell(table.opens("a", "orders", incarnation=1)) == []
    assert table.tell(SlotWon(1, 1)) == []
    (granted,) = only(Send, table.tell(Published(1, 1)))
    assert granted.order.committed_offset == 9  # type: ignore[union-attr]


def test_ro2_what_an_older_generation_commits_is_not_taken_off_the_loads_of_this_one() -> None:
    """Clients sent other rows since, and these have to get a checkpoint."""
    table = OneTable("a")
    table.grant("a", "c")
    table.tell(loaded("a", 100), CheckpointAsked("a", 1), after=1.0)
    table.commit(1, "a", {"c": 1}, size=100)
    table.tell(Broken("a", 1, "its disk is full"))
    table.tell(loaded("a", 100))
    table.decide(1, generation=1)
    assert table.core.uncommitted_bytes == 100


def test_ro2_no_barrier_is_sent_while_a_checkpoint_of_an_older_generation_is_undecided() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    table.commit(1, "a", {"orders": 9})
    table.tell(Broken("a", 1, "its disk is full"))
    assert table.tell(CheckpointAsked("a", 2), Tick(), after=0.5) == []
    assert orders(Barrier, table.decide(1, generation=1)) == [("a", Barrier(1, membership(2, "a")))]


def test_a_refused_commit_is_sent_again_with_the_same_files_after_growing_pauses() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    (sent,) = only(CommitCheckpoint, table.commit(1, "a", {"orders": 9}))
    for pause in (0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        alarms = only(Alarm, table.tell(CommitRefused(1, 1, "the store is full")))
        assert ["the store is full" in alarm.text for alarm in alarms] == [True] * (pause == 0.5), "said once"
        assert table.core.deadline() == table.now + pause
        assert only(CommitCheckpoint, table.tell(Tick(), after=pause / 2)) == []
        assert table.tell(Tick(), after=pause / 2) == [sent]
    table.decide(1)
    assert table.core.generation == 1


def test_a_refused_instant_is_tried_again_after_growing_pauses_while_rows_stay_where_they_are() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(InstantAsked("a", 1, 1))
    for pause in (0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        assert DropCheckpoint(1, 1) in table.tell(InstantRefused(1, 1, "no space left"))
        assert only(IssueInstant, table.tell(InstantAsked("a", 1, 1), Tick(), after=pause / 2)) == []
        assert only(IssueInstant, table.tell(Tick(), after=pause / 2)) == [IssueInstant(1, 1)]
    table.tell(table.issued(1))
    assert table.core.generation == 1
    assert DropCheckpoint(1, 1) in table.tell(InstantRefused(1, 1, "once more"))
    assert table.core.deadline() == table.now + 0.5, "a success begins the pauses anew"


def test_tm5_a_younger_checkpoint_gets_no_instant_while_that_of_the_older_one_is_refused() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(InstantAsked("a", 1, 1), CheckpointAsked("a", 1), Tick(), after=0.5)
    table.tell(InstantRefused(1, 1, "no space left"), InstantAsked("a", 1, 2))
    assert only(IssueInstant, table.tell(Tick(), after=0.5)) == [IssueInstant(1, 1)]
    assert only(IssueInstant, table.tell(table.issued(1))) == [IssueInstant(1, 2)]


def test_ro7_a_checkpoint_of_which_something_goes_on_is_never_given_up() -> None:
    """A fixed limit ended every checkpoint that was larger than what could be flushed in it, for good."""
    table = OneTable("a", "b")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    for process in ("a", "b", "a", "b"):
        assert only(Alarm, table.tell(Progressed(process, 1, 2), Tick(), after=29.0)) == []
    table.tell(table.barrier("a", 2), table.flushed("a", 2), table.barrier("b", 2), after=29.0)
    assert only(Alarm, table.tell(Progressed("b", 1, 1), Progressed("b", 1, 3), Tick(), after=29.0)) == []
    assert table.core.deadline() == table.now + 1.0, "what goes on in other checkpoints does not help this one"
    (alarm,) = only(Alarm, table.tell(Tick(), after=1.0))
    assert "missing: the files of b" in alarm.text


def test_a_checkpoint_that_waits_for_its_own_coordinator_is_not_given_up() -> None:
    """Its committer is busy or tries again; to send everything again would only give it more to do."""
    table = OneTable("a")
    table.tell(InstantAsked("a", 1, 1), CheckpointAsked("a", 1), Tick(), after=0.5)
    table.tell(table.barrier("a", 1), table.flushed("a", 1))
    assert only(Alarm, table.tell(Tick(), after=100.0)) == []
    assert orders(Decided, table.tell(table.issued(1)))


def test_a_refused_commit_of_an_older_generation_lets_opens_go_on_with_the_older_offset() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    table.commit(1, "a", {"orders": 9})
    table.tell(Broken("a", 1, "its disk is full"), OpenRequested("a", 2, 9, "orders", 1, "ann"))
    dropped, granted = table.tell(CommitRefused(1, 1, "the store is full"))
    assert dropped == DropCheckpoint(1, 1)
    assert granted.order.committed_offset == 0  # type: ignore[union-attr]


def test_after_aborts_in_a_row_clients_keep_what_they_have_longer_each_time_and_then_get_a_checkpoint_soon() -> None:
    table = OneTable("a")
    table.grant("a", "orders")
    for generation, pause in ((1, 0.0), (2, 0.5), (3, 1.0), (4, 2.0)):
        table.tell(Broken("a", generation, "its disk is full"))
        if pause:
            assert table.tell(table.opens("a", "orders", incarnation=1)) == []
            assert only(Send, table.tell(Tick(), after=pause / 2)) == []
            assert [order.committed_offset for _, order in orders(Grant, table.tell(Tick(), after=pause / 2))] == [0]
        else:
            table.grant("a", "orders", incarnation=1)
        table.tell(loaded("a"))
        assert table.core.deadline() == table.now + 0.25
    assert "4 were aborted" in table.core.alarms[0].text
    table.tell(Tick(), after=0.5)
    table.commit(1, "a", {"orders": 9})
    table.decide(1)
    assert table.core.alarms == []
    table.tell(Broken("a", 5, "its disk is full"))
    table.grant("a", "orders", incarnation=1)


def test_a_checkpoint_without_rows_between_aborts_does_not_let_clients_send_everything_again_at_once() -> None:
    table = OneTable("a")
    for generation in (1, 2):
        table.tell(Broken("a", generation, "its disk is full"), CheckpointAsked("a", generation + 1), Tick(), after=0.5)
        table.tell(Tick(), after=0.5)
        table.pass_all(1, "a")
    table.tell(Broken("a", 3, "its disk is full"))
    assert table.tell(table.opens("a", "orders")) == []


def test_the_first_checkpoints_behind_an_outage_are_small_and_grow_while_they_are_flushed_in_good_time() -> None:
    table = OneTable("a", channels={"orders": [1, 0, "ann", 0]}, policy=CheckpointPolicy(first_checkpoint_bytes=100))
    table.grant("a", "orders", incarnation=1)
    limits = []
    for number in range(1, 6):
        table.tell(loaded("a"), CheckpointAsked("a", 1))
        (barrier,) = [order for _, order in orders(Barrier, table.tell(Tick(), after=10.0))]
        limits.append(barrier.next.intake_bytes)
        table.commit(number, "a", {"orders": number}, size=limits[-2] if number > 1 else 100)
        table.decide(number)
    assert limits == [100, 400, 400, 1600, 1600], "a checkpoint's limit is known before the one behind it is measured"
    (attach,) = [order for _, order in orders(Attach, table.tell(Broken("a", 1, "its disk is full")))]
    assert attach.membership.intake_bytes == 100


def test_a_table_that_nobody_wrote_before_begins_with_larger_checkpoints() -> None:
    table = OneTable(policy=CheckpointPolicy(first_checkpoint_bytes=100))
    (attach,) = [order for _, order in orders(Attach, table.tell(joined("a")))]
    assert attach.membership.intake_bytes == 400


def test_ro2_what_was_uncommitted_is_dropped_with_its_generation_and_asks_for_no_checkpoint() -> None:
    table = OneTable("a")
    table.tell(loaded("a"), Broken("a", 1, "its disk is full"))
    assert (table.core.uncommitted_bytes, table.core.deadline()) == (0, 30.0), "nothing is due but the end of the alarm"


def test_ro8_a_lost_member_aborts_and_the_others_share_its_key_groups() -> None:
    table = OneTable("a", "b")
    out = table.tell(WriterLost("b", "silent"))
    assert out[2:] == [Send("a", 2, Attach(membership(1, "a")))]


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
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    assert table.tell(joined("b"), WriterLost("b", "silent")) == []
    assert table.core.generation == 1


def test_a_report_of_a_channel_that_nobody_opened_is_never_committed() -> None:
    table = OneTable("a")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    out = table.tell(table.barrier("a", 1, {"ghost": 9}), table.flushed("a", 1, ["file"]))
    assert only(CommitCheckpoint, out) == []
    assert table.core.generation == 2


@pytest.mark.parametrize("checkpoint", [1, 3])
def test_reports_for_a_checkpoint_that_is_not_flushing_change_nothing(checkpoint: int) -> None:
    table = OneTable("a", "b")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    reports = [
        table.barrier("a", checkpoint),
        table.barrier("b", checkpoint),
        table.flushed("a", checkpoint),
        table.flushed("b", checkpoint),
    ]
    assert table.tell(*reports) == []
