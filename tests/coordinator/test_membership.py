"""Writers that leave, and a coordinator that hands its table over."""

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.events import (
    Broken,
    CheckpointAsked,
    DrainAsked,
    OffsetsWon,
    Published,
    SlotWon,
    Tick,
    WriterJoined,
    WriterLeaving,
    WriterLost,
)
from headgate_coordinator.core.instructions import (
    Alarm,
    Attach,
    Barrier,
    Decided,
    Detach,
    Drained,
    EndChannel,
    Evict,
    Membership,
    OpenRefused,
    Send,
    Throttle,
)
from headgate_coordinator.core.refusals import HANDED_OVER, HANDING_OVER, MOVED
from support.one_table import OneTable, joined, loaded, membership, only, orders

KNOWN = {"orders": [3, 50, "ann", 0]}


def test_a_leaving_writer_loses_its_channels_right_before_the_barrier_that_ends_its_last_checkpoint() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    hold = table.grant("b", "orders", incarnation=3)
    following = membership(3, "a")
    assert table.tell(WriterLeaving("b")) == [
        Send("b", 1, EndChannel("orders", hold, MOVED)),
        Send("a", 1, Barrier(2, following)),
        Send("b", 1, Barrier(2, following)),
    ]


def test_a_leaving_writer_is_released_when_its_last_checkpoint_is_published() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    hold = table.grant("b", "orders", incarnation=3)
    table.tell(WriterLeaving("b"), table.ended("b", "orders", hold, uncommitted=True))
    table.tell(table.barrier("a", 2), table.barrier("b", 2, {"orders": 60}), table.flushed("a", 2), table.flushed("b", 2))
    assert orders(Detach, table.tell(SlotWon(1, 2))) == []
    assert table.tell(Published(1, 2))[-1] == Send("b", 1, Detach())
    assert table.tell(WriterLost("b", "it went")) == []
    assert table.core.generation == 1


def test_ch3_a_leaving_writer_is_not_released_while_it_holds_a_channel() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    hold = table.grant("b", "orders", incarnation=3)
    table.tell(WriterLeaving("b"))
    assert orders(Detach, table.pass_all(2, "a", "b")) == []
    assert table.tell(table.ended("b", "orders", hold, uncommitted=False)) == [Send("b", 1, Detach())]


def test_ch3_rows_of_a_writer_that_left_can_only_be_in_its_own_checkpoints() -> None:
    table = OneTable("a", "b", channels=KNOWN)
    hold = table.grant("b", "orders", incarnation=3)
    table.tell(WriterLeaving("b"), table.ended("b", "orders", hold, uncommitted=True), table.opens("a", "orders", incarnation=3))
    table.tell(table.barrier("a", 2), table.barrier("b", 2, {"orders": 60}), table.flushed("a", 2), table.flushed("b", 2))
    out = table.decide(2)
    assert orders(Barrier, out) == []
    assert [send.order.committed_offset for send in only(Send, out) if send.process == "a" and hasattr(send.order, "hold")] == [
        60
    ]


def test_a_writer_that_leaves_before_it_had_a_part_is_released_at_once() -> None:
    table = OneTable("a")
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    assert table.tell(joined("b"), WriterLeaving("b")) == [Send("b", 1, Detach())]


def test_the_last_writer_may_leave_and_the_next_one_goes_on_with_the_following_checkpoint() -> None:
    table = OneTable("a")
    assert table.tell(WriterLeaving("a")) == [Send("a", 1, Barrier(1, membership(2)))]
    assert table.core.alarms == [StandingAlarm(AlarmKind.NO_WRITER, "no writer is attached to the table")]
    assert table.pass_all(1, "a")[-1] == Send("a", 1, Detach())
    assert table.tell(joined("b")) == [Send("b", 1, Attach(membership(2, "b")))]


def test_a_writer_that_joins_beside_one_that_leaves_has_a_part_while_the_last_checkpoint_of_the_other_flushes() -> None:
    table = OneTable("a")
    table.tell(WriterLeaving("a"))
    assert table.tell(joined("b")) == [Send("b", 1, Attach(membership(2, "b")))]
    assert table.pass_all(1, "a")[-1] == Send("a", 1, Detach())


def test_a_leaving_writer_that_is_lost_in_its_last_checkpoint_aborts_it() -> None:
    table = OneTable("a", "b")
    table.tell(WriterLeaving("b"))
    assert isinstance(table.tell(WriterLost("b", "killed"))[0], Alarm)
    assert table.core.generation == 2


def test_an_abort_frees_writers_that_leave() -> None:
    table = OneTable("a", "b")
    table.tell(WriterLeaving("b"))
    out = table.tell(Broken("a", 1, "its disk is full"))
    attach = Attach(membership(1, "a"))
    assert out[2:] == [Send("a", 2, attach), Send("b", 2, attach), Send("b", 2, Detach())]


def test_ro8_another_process_at_the_address_of_one_means_that_the_older_is_dead() -> None:
    table = OneTable("a")
    (evict, *_) = table.tell(WriterJoined("b", "a:1"))
    assert isinstance(evict, Evict)
    assert evict.process == "a"


def test_a_drain_commits_what_is_there_releases_everybody_and_says_so_once() -> None:
    table = OneTable("a", channels=KNOWN)
    hold = table.grant("a", "orders", incarnation=3)
    ended, barrier = table.tell(DrainAsked())
    assert ended == Send("a", 1, EndChannel("orders", hold, HANDING_OVER))
    assert barrier == Send("a", 1, Barrier(1, Membership(2, (), ())))
    table.tell(table.ended("a", "orders", hold, uncommitted=True))
    table.commit(1, "a", {"orders": 60})
    assert table.tell(SlotWon(1, 1)) == [Send("a", 1, Decided(1, queryable=False))]
    assert table.tell(Published(1, 1)) == [Send("a", 1, Decided(1, queryable=True)), Send("a", 1, Detach()), Drained()]
    assert table.tell(Tick(), after=60.0) == []


def test_during_a_drain_no_rows_are_taken_behind_the_checkpoint_that_flushes() -> None:
    """They would have to be flushed, too, before the table can be handed over."""
    table = OneTable("a")
    table.tell(loaded("a"), CheckpointAsked("a", 1), after=1.0)
    assert table.core.checkpoint == 2
    ((process, throttle),) = orders(Throttle, table.tell(DrainAsked()))
    assert (process, throttle) == ("a", Throttle(paused=True))


def test_a_drain_of_a_table_without_writers_is_over_at_once() -> None:
    assert OneTable().tell(DrainAsked()) == [Drained()]


def test_a_drain_waits_for_a_slot_of_channel_records_that_is_under_way() -> None:
    table = OneTable("a")
    table.tell(table.opens("a", "orders"))
    table.tell(DrainAsked())
    assert only(Drained, table.pass_all(1, "a")) == []
    out = table.tell(OffsetsWon(1))
    assert out[-1] == Drained()


def test_opens_during_a_drain_are_to_come_again() -> None:
    table = OneTable("a", channels=KNOWN)
    table.tell(DrainAsked())
    assert table.tell(table.opens("a", "orders", incarnation=3)) == [Send("a", 1, OpenRefused(1, HANDED_OVER))]


def test_an_abort_during_a_drain_releases_everybody_and_begins_nothing() -> None:
    table = OneTable("a", "b")
    table.tell(DrainAsked())
    out = table.tell(WriterLost("b", "killed"))
    assert out[2:] == [Send("a", 2, Attach(Membership(1, (), ()))), Send("a", 2, Detach()), Drained()]


def test_an_abort_during_a_drain_still_waits_for_the_slot_that_was_sent() -> None:
    table = OneTable("a", channels=KNOWN)
    table.grant("a", "orders", incarnation=3)
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    table.commit(1, "a", {"orders": 60})
    table.tell(DrainAsked())
    assert only(Drained, table.tell(Broken("a", 1, "its disk is full"))) == []
    assert table.decide(1, generation=1) == [Drained()]
