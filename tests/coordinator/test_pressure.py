"""Backpressure before a slice's limits: first checkpoints come less often, then rows slower, then none; and what writers hear of
it."""

from collections.abc import Sequence

import pytest

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.events import (
    BarrierPassed,
    Broken,
    CheckpointAsked,
    CheckpointFull,
    CompactorsCounted,
    Flushed,
    InstantAsked,
    SliceFigures,
)
from headgate_coordinator.core.instructions import Attach, Barrier, Instruction, Membership, Send, Share, Throttle
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_coordinator.core.pressure import Backpressure, size, stretch_of
from support.one_table import OneTable, joined, loaded, orders

MIB = 1 << 20
LIMIT, BYTES = 100, 800 * MIB


def figures(files: int = 0, nbytes: int = 0, *, counted: bool = True) -> SliceFigures:
    return SliceFigures(files, nbytes, LIMIT, BYTES, counted=counted)


def backpressure(files: int = 0, nbytes: int = 0, interval: float = 10.0) -> Backpressure:
    return Backpressure(figures(files, nbytes), interval)


def took(checkpoint: Checkpoint, process: str, nbytes: int) -> Checkpoint:
    """A writer of the checkpoint took so much, and there is a file of it."""
    checkpoint.begin_flush(0.0)
    checkpoint.note_report(BarrierPassed(process, 1, 1, {}, nbytes), 0.0)
    checkpoint.note_report(Flushed(process, 1, 1, ["file"], {}), 0.0)
    return checkpoint


def idle(share: Share) -> Checkpoint:
    """A checkpoint that takes no rows, since the table was stopped when it began."""
    (found,) = under_way(share)
    found.takes_rows = False
    return found


def under_way(*shares: Share) -> list[Checkpoint]:
    return [Checkpoint(1, Membership(number, (), (), share)) for number, share in enumerate(shares, 1)]


# --- Backpressure alone ---


@pytest.mark.parametrize(
    ("full", "stretch"),
    [(0.0, 1), (0.49, 1), (0.5, 2), (0.59, 2), (0.6, 4), (0.7, 8), (0.8, 16), (0.99, 16), (1.2, 16)],
)
def test_from_half_of_the_files_on_checkpoints_are_further_apart_twice_as_far_with_each_tenth(full: float, stretch: int) -> None:
    assert stretch_of(full) == stretch


def test_without_figures_nothing_is_bounded() -> None:
    free = Backpressure(None, 10.0)
    assert free.begin_checkpoint(under_way(Share(90, 1))) == Share(0, 0)
    assert (free.pressure.stretch, free.pressure.rate, free.pressure.stopped) == (1, None, None)
    assert free.has_room_for(under_way(Share(1000, 1))[0])


def test_a_checkpoint_gets_a_part_of_the_files_that_are_left_and_at_least_the_one_of_its_end() -> None:
    assert backpressure().begin_checkpoint([]).files == (LIMIT - 1) // 8
    assert backpressure(80).begin_checkpoint([]).files == 19 // 8
    assert backpressure(98).begin_checkpoint([]) == Share(1, BYTES * 7 // 8 // 4)


def test_what_checkpoints_under_way_may_still_write_is_not_given_a_second_time() -> None:
    assert backpressure(60).begin_checkpoint(under_way(Share(20, 0))).files == 19 // 8
    assert backpressure(60).begin_checkpoint(under_way(Share(20, 0), Share(19, 0))).files == 1
    full = backpressure(60)
    full.begin_checkpoint(under_way(Share(20, 0), Share(19, 0)))
    assert full.pressure.stopped is not None


@pytest.mark.parametrize(("max_files", "max_bytes"), [(LIMIT, 1 << 60), (4, 1 << 60), (1 << 60, BYTES), (1 << 60, 1 << 16)])
def test_whatever_is_given_checkpoint_by_checkpoint_the_limit_is_never_passed(max_files: int, max_bytes: int) -> None:
    each = Backpressure(SliceFigures(0, 0, max_files, max_bytes), 10.0)
    given: list[Share] = []
    while each.pressure.stopped is None:
        given.append(each.begin_checkpoint(under_way(*given)))
    del given[-1]  # that of a checkpoint that takes no rows
    assert len(given) >= 3
    assert sum(share.files for share in given) <= max_files - 1  # the last one is a successor's
    assert sum(share.nbytes for share in given) <= max_bytes


def test_a_checkpoint_that_takes_no_rows_is_not_counted() -> None:
    assert backpressure(60).begin_checkpoint([idle(Share(40, 0))]).files == 39 // 8


def test_rows_are_taken_slower_the_less_room_is_left() -> None:
    rates = []
    for nbytes in (399, 400, 500, 600, 690):
        each = backpressure(nbytes=nbytes * MIB)
        each.begin_checkpoint([])
        rates.append(each.pressure.rate)
    assert rates[0] is None
    allowed = [rate for rate in rates if rate is not None]
    assert allowed == sorted(allowed, reverse=True)
    assert allowed[0] == 300 * MIB / (4 * 10.0)  # as if every byte came into one slice, until something else was measured
    assert allowed[-1] == BYTES / 16 / (4 * 10.0)


def test_the_rate_follows_how_much_of_the_rows_the_fullest_slice_gets() -> None:
    spread = backpressure(nbytes=500 * MIB)
    spread.note_published(took(Checkpoint(1, Membership(1, (("a", "a:1"),), (0,))), "a", 100 * MIB))
    spread.note_figures(figures(1, 501 * MIB))
    spread.begin_checkpoint([])
    assert spread.pressure.rate == pytest.approx((700 - 501) * MIB / (4 * 10.0 * 0.01))


def test_files_of_all_checkpoints_that_were_published_since_the_slices_were_counted_take_their_room_until_they_are_counted() -> (
    None
):
    each = backpressure(60)
    for number in (1, 2):
        each.note_published(took(Checkpoint(1, Membership(number, (("a", "a:1"),), (0,), Share(10, 0))), "a", 1))
    assert each.begin_checkpoint([]).files == 19 // 8
    each.note_figures(figures(62))
    assert each.begin_checkpoint([]).files == 37 // 8


def test_half_of_the_rate_is_shared_alike_and_half_goes_by_what_writers_took() -> None:
    each = backpressure(nbytes=500 * MIB)
    each.note_published(took(Checkpoint(1, Membership(1, (("a", "a:1"), ("b", "b:1")), (0,))), "a", 30 * MIB))
    each.note_figures(figures(1, 530 * MIB))
    each.begin_checkpoint([])
    assert each.pressure.rate is not None
    assert each.rate_for("a", ["a", "b"]) == pytest.approx(each.pressure.rate * 0.75, rel=0.05)
    assert each.rate_for("b", ["a", "b"]) == pytest.approx(each.pressure.rate * 0.25, rel=0.05)
    assert each.rate_for("c", ["c", "d"]) == pytest.approx(each.pressure.rate * 0.5, rel=0.05)


def test_a_stopped_table_says_what_waits_what_the_limit_is_who_compacts_and_what_to_do() -> None:
    each = backpressure(99)
    each.compactors = 0
    each.begin_checkpoint([])
    stopped = each.pressure.stopped
    assert stopped is not None
    assert stopped.code == "CODE_OVERLOADED"
    assert stopped.message == ("99 log files of one slice wait for compaction, the limit is 100; no compactor is connected")
    assert "Start compactors" in stopped.fix
    assert "headgate.slice.max.log.files" in stopped.fix
    each.compactors = 3
    each.update_pressure([], idle(Share(1, 1)))
    assert each.pressure.stopped is not None
    assert each.pressure.stopped.message.endswith("; 3 compactors are connected")
    assert each.alarms == [StandingAlarm(AlarmKind.INTAKE_STOPPED, f"no rows are taken: {each.pressure.stopped.message}")]


def test_bytes_stop_a_table_before_their_limit_is_reached_and_name_their_own_setting() -> None:
    each = backpressure(nbytes=700 * MIB)
    each.begin_checkpoint([])
    assert each.pressure.stopped is not None
    assert "700 MiB of log files" in each.pressure.stopped.message
    assert "headgate.slice.max.log.bytes" in each.pressure.stopped.fix


def test_a_stopped_table_goes_on_only_when_it_has_a_quarter_of_room() -> None:
    each = backpressure(99)
    share = each.begin_checkpoint([])
    for files, goes_on in ((98, False), (76, False), (75, True)):
        each.note_figures(figures(files))
        assert each.update_pressure([], idle(share)) is goes_on
    assert each.pressure.stopped is None
    each.note_figures(figures(90))
    assert not each.update_pressure([], idle(share))
    assert each.pressure.stopped is None, "it stops at a border only: rows of the checkpoint that fills have their room"


def test_a_table_that_bytes_have_stopped_goes_on_only_when_a_quarter_of_them_is_free() -> None:
    each = backpressure(nbytes=700 * MIB)
    each.begin_checkpoint([])
    for nbytes, goes_on in ((650, False), (601, False), (600, True)):
        each.note_figures(figures(0, nbytes * MIB))
        assert each.update_pressure([], idle(Share(1, 1))) is goes_on


def test_a_stopped_table_is_not_stretched_so_that_what_was_taken_commits_soon() -> None:
    each = backpressure(99)
    each.begin_checkpoint([])
    assert each.pressure.stretch == 1


def test_alarms_say_why_checkpoints_are_rare_and_rows_slow() -> None:
    each = backpressure(65, 500 * MIB)
    each.compactors = 1
    each.begin_checkpoint([])
    rare, slow = each.alarms
    assert [rare.kind, slow.kind] == [AlarmKind.CHECKPOINTS_STRETCHED, AlarmKind.INTAKE_SLOWED]
    assert rare.text == (
        "checkpoints are 4 times further apart: 65 log files of one slice wait for compaction, the limit is 100; "
        "1 compactor is connected"
    )
    assert slow.text.startswith(f"rows are taken at {size(each.pressure.rate or 0)}/s: 500 MiB of log files")


# --- in a table ---

POLICY = CheckpointPolicy(checkpoint_interval=10.0, checkpoint_min_interval=0.5)


def pressed(*writers: str, files: int = 0, nbytes: int = 0, counted: bool = True) -> OneTable:
    return OneTable(*writers, policy=POLICY, figures=figures(files, nbytes, counted=counted))


def told(out: Sequence[Instruction]) -> list[tuple[str, str]]:
    """Barriers, attachments and throttles, in their order, with whom they go to."""
    names = {Attach: "attach", Barrier: "barrier", Throttle: "throttle"}
    return [(names[type(send.order)], send.process) for send in out if isinstance(send, Send) and type(send.order) in names]


def test_checkpoints_are_stretched_and_asked_ones_too() -> None:
    table = pressed("a", "b", files=60)
    table.tell(loaded("a"))
    assert table.core.deadline() == table.now + 10.0 * 4
    table.tell(CheckpointAsked("a", 1))
    assert table.core.deadline() == table.now + 0.5 * 4


def test_a_writer_hears_that_the_table_is_stopped_before_the_barrier_of_the_checkpoint_that_has_no_room() -> None:
    table = pressed("a", "b", files=98)
    out = table.tell(loaded("a"), CheckpointAsked("a", 1), after=100.0)
    assert told(out) == [("throttle", "a"), ("throttle", "b"), ("barrier", "a"), ("barrier", "b")]
    assert table.core.pressure.stopped is not None


def test_a_writer_that_joins_a_stopped_table_hears_it_with_its_attachment() -> None:
    table = pressed("a", files=99)
    assert table.core.pressure.stopped is not None
    out = table.tell(joined("b"))
    assert told(out) == [("barrier", "a"), ("attach", "b"), ("throttle", "b")]


def test_a_new_generation_of_a_stopped_table_is_stopped() -> None:
    table = pressed("a", "b", files=99)
    out = table.tell(Broken("a", 1, "its disk is full"))
    assert told(out) == [("attach", "a"), ("attach", "b"), ("throttle", "a"), ("throttle", "b")]


def test_compaction_lets_a_stopped_table_go_on_by_itself_and_everybody_hears_it() -> None:
    table = pressed("a", files=99)
    assert not told(table.tell(figures(90)))[1:]
    out = table.tell(figures(10))
    assert orders(Throttle, out) == [("a", Throttle())]
    assert table.core.pressure.stopped is None


def test_what_a_writer_knows_is_not_said_again() -> None:
    table = pressed("a", files=99)
    table.tell(CompactorsCounted(0))
    assert not told(table.tell(CompactorsCounted(0), figures(99)))
    assert told(table.tell(CompactorsCounted(1))) == [("throttle", "a")]


def test_a_bucket_side_that_is_full_holds_everybody_until_the_border_which_comes_soon() -> None:
    table = pressed("a", "b")
    table.tell(loaded("a"))
    out = table.tell(CheckpointFull("b", 1, table.core.checkpoint))
    assert orders(Throttle, out) == [("a", Throttle(paused=True)), ("b", Throttle(paused=True))]
    assert table.core.deadline() == table.now + 0.5
    out = table.tell(loaded("a"), after=0.5)
    assert told(out) == [("barrier", "a"), ("barrier", "b"), ("throttle", "a"), ("throttle", "b")]
    assert {order for _, order in orders(Throttle, out)} == {Throttle()}


def test_a_checkpoint_that_has_had_its_barrier_holds_nobody_any_more() -> None:
    table = pressed("a")
    table.tell(loaded("a"), CheckpointAsked("a", 1), after=10.0)
    assert not told(table.tell(CheckpointFull("a", 1, 1)))


def test_before_the_slices_are_counted_rows_are_taken_and_no_barrier_is_sent() -> None:
    table = pressed("a", counted=False)
    assert table.core.pressure.stopped is None
    out = table.tell(loaded("a"), InstantAsked("a", 1, 1), CheckpointAsked("a", 1), after=100.0)
    assert not orders(Barrier, out)
    assert table.core.deadline() is None
    assert "counted" in table.core.alarms[0].text
    (barrier,) = orders(Barrier, table.tell(figures(10)))
    assert barrier[1].next.share == Share((LIMIT - 1 - 10 - 1) // 8, barrier[1].next.share.nbytes)


def test_rows_that_came_before_the_slices_were_counted_wait_when_there_is_no_room_for_their_file() -> None:
    table = pressed("a", counted=False)
    table.tell(loaded("a"), InstantAsked("a", 1, 1), CheckpointAsked("a", 1), after=100.0)
    out = table.tell(figures(LIMIT))
    assert told(out) == [("throttle", "a")]
    assert table.core.deadline() is None
    out = table.tell(figures(3))
    assert told(out) == [("throttle", "a"), ("barrier", "a")]


def test_a_limit_that_is_lowered_stops_the_table_at_the_next_border_and_what_was_taken_commits() -> None:
    table = pressed("a", "b")
    table.tell(loaded("a"), SliceFigures(0, 0, 4, BYTES))
    assert table.core.pressure.stopped is None
    out = table.tell(loaded("a"), CheckpointAsked("a", 1), after=100.0)
    assert told(out) == [("throttle", "a"), ("throttle", "b"), ("barrier", "a"), ("barrier", "b")]
