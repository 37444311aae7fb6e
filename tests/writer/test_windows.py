"""Both ends of an exchange stream, with a connection that breaks whenever it likes between them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_writer.windows import ExchangeError, ReceiveWindow, SendWindow


def some_rows(nbytes: int) -> wire.Rows:
    return wire.Rows(batch=bytes(nbytes))


_steps = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), st.integers(0, 50)),
        st.tuples(st.just("barrier"), st.just(0)),
        st.tuples(st.just("send"), st.just(0)),
        st.tuples(st.just("deliver"), st.just(0)),
        st.tuples(st.just("credit"), st.integers(0, 120)),
        st.tuples(st.just("hear"), st.just(0)),
        st.tuples(st.just("break"), st.just(0)),
        st.tuples(st.just("late"), st.just(0)),
    ),
    max_size=120,
)


@settings(deadline=None)
@given(_steps)
def test_whatever_breaks_when_every_frame_is_taken_once_in_order_and_barriers_count_right(steps: list[tuple[str, int]]) -> None:
    out, arrivals = SendWindow(), ReceiveWindow()
    number, checkpoint = 0, 1
    put: list[tuple[int, int | None]] = []
    taken: list[tuple[int, int | None]] = []
    on_the_way: list[wire.Frame] = []
    late: list[wire.Frame] = []
    answers: list[tuple[int, int]] = []

    def deliver(frame: wire.Frame) -> None:
        if not arrivals.is_new(frame):
            return
        if frame.WhichOneof("content") == "rows":
            arrivals.count_rows(frame)
            taken.append((frame.checkpoint, len(frame.rows.batch)))
        else:
            arrivals.check_barrier(frame)
            taken.append((frame.checkpoint, None))

    def reconnect() -> None:
        """What the older connection has read may still be on its way to the bucket side."""
        late.extend(on_the_way)
        on_the_way.clear()
        answers.clear()
        out.resume(arrivals.last)

    for step, value in steps:
        if step == "rows":
            out.append_rows(checkpoint, some_rows(value))
            put.append((checkpoint, value))
        elif step == "barrier":
            out.append_barrier(checkpoint)
            put.append((checkpoint, None))
            checkpoint += 1
        elif step == "send" and (frame := out.next_frame()) is not None:
            number += 1
            on_the_way.append(frame)
        elif step == "deliver" and on_the_way:
            deliver(on_the_way.pop(0))
        elif step == "late" and late:
            deliver(late.pop(0))
        elif step == "credit":
            answers.append((arrivals.last, value))
        elif step == "hear" and answers:
            out.acknowledge(*answers.pop(0))
        elif step == "break":
            reconnect()
        assert taken == put[: len(taken)]
    reconnect()
    while len(out):
        out.acknowledge(arrivals.last, 100)
        while (frame := out.next_frame()) is not None:
            on_the_way.append(frame)
        while on_the_way:
            deliver(on_the_way.pop(0))
    while late:
        deliver(late.pop(0))
    assert taken == put
    assert out.nbytes == 0


@settings(deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(1, 100))
def test_no_more_than_the_credit_is_under_way_unless_one_frame_alone_is_larger(sizes: list[int], credit: int) -> None:
    out = SendWindow()
    for size in sizes:
        out.append_rows(1, some_rows(size))
    done = 0
    while len(out):
        out.acknowledge(done, credit)
        under_way = []
        while (frame := out.next_frame()) is not None:
            under_way.append(len(frame.rows.batch))
        assert under_way or not len(out), "with credit and nothing under way there is always something to send"
        assert sum(under_way) <= credit or len(under_way) == 1
        done += len(under_way)


def test_without_credit_rows_wait_and_a_barrier_whose_turn_it_is_does_not() -> None:
    out = SendWindow()
    out.append_barrier(1)
    out.append_rows(2, some_rows(10))
    out.append_barrier(2)
    frame = out.next_frame()
    assert frame is not None
    assert (frame.checkpoint, frame.barrier) == (1, 0)
    assert out.next_frame() is None


def test_a_frame_that_skips_one_is_refused() -> None:
    arrivals = ReceiveWindow()
    with pytest.raises(ExchangeError):
        arrivals.is_new(wire.Frame(number=2))


def test_a_barrier_that_counts_other_rows_than_came_is_refused() -> None:
    arrivals = ReceiveWindow()
    arrivals.count_rows(wire.Frame(number=1, checkpoint=4, rows=some_rows(1)))
    with pytest.raises(ExchangeError, match="1 frames of checkpoint 4"):
        arrivals.check_barrier(wire.Frame(number=2, checkpoint=4, barrier=2))


@pytest.mark.parametrize("last", [1, 4])
def test_a_receiver_that_has_forgotten_or_invented_frames_is_not_believed(last: int) -> None:
    out = SendWindow()
    for _ in range(3):
        out.append_rows(1, some_rows(1))
    out.acknowledge(2, 10)
    with pytest.raises(ExchangeError):
        out.resume(last)
