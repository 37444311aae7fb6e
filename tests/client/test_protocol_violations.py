"""What a server says is adopted only if it can be true after what was sent; anything else leaves the state as it was."""

from collections.abc import Callable

import pytest

from headgate.acks import Acks
from headgate.answers import MAX_OFFSET
from headgate.channel_state import ChannelState
from headgate.entries import Control, EncodedRows, Entry
from headgate.errors import InvalidArgumentError, ProtocolViolationError, TableRestoredError
from headgate_proto.api.v1 import errors_pb2 as wire
from support.row_formats import FORMAT, OTHER_FORMAT


def encoded(size: int = 10, *, mergeable: bool = False) -> EncodedRows:
    return EncodedRows(1, size, b"row", mergeable)


def opened_at(committed: int, allowed: int = 0) -> ChannelState:
    state = ChannelState(limit=1000)
    state.stream_opened(3, committed, allowed)
    return state


def with_sent(offsets: int) -> ChannelState:
    """Opened at 100; batches of one row each up to ``100 + offsets`` are sent."""
    state = opened_at(100)
    for _ in range(offsets):
        state.append_rows(FORMAT, encoded())
        assert isinstance(state.next_message(), Entry)
    return state


def refusal(code: "wire.Code.ValueType" = wire.CODE_NULL_KEY) -> wire.Error:
    return wire.Error(code=code, action=wire.ACTION_FIX_CALL)


LIES: dict[str, Callable[[ChannelState], None]] = {
    "an ack beyond what was sent": lambda state: state.rows_acked(Acks(104, 100, 100)),
    "durable beyond received": lambda state: state.rows_acked(Acks(101, 102, 100)),
    "queryable beyond durable": lambda state: state.rows_acked(Acks(103, 101, 102)),
    "received that falls": lambda state: (state.rows_acked(Acks(102, 101, 101)), state.rows_acked(Acks(101, 101, 101))),  # type: ignore[func-returns-value]
    "durable that falls": lambda state: state.rows_acked(Acks(103, 99, 99)),
    "a refusal of what was never sent": lambda state: state.batch_refused(107, 106, refusal()),
    "a refusal of what was received": lambda state: (
        state.rows_acked(Acks(101, 100, 100)),
        state.batch_refused(101, 100, refusal()),
    ),  # type: ignore[func-returns-value]
    "a refusal behind another offset": lambda state: state.batch_refused(102, 100, refusal()),
    "a gap that we did not make": lambda state: state.batch_refused(101, 100, refusal(wire.CODE_OFFSET_GAP)),
    "an overlap that we did not make": lambda state: state.batch_refused(101, 100, refusal(wire.CODE_OFFSET_OVERLAP)),
    "a follower of a refusal that never was": lambda state: state.batch_refused(101, 100, refusal(wire.CODE_AFTER_FAILED_BATCH)),
    "an ack of what was refused": lambda state: (
        state.batch_refused(102, 101, refusal()),
        state.rows_acked(Acks(102, 100, 100)),
    ),  # type: ignore[func-returns-value]
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_an_impossible_answer_is_refused(lie: Callable[[ChannelState], None]) -> None:
    state = with_sent(3)
    with pytest.raises(ProtocolViolationError):
        lie(state)
    assert state.acks.durable <= 101
    assert state.bytes_in_flight >= 20


@pytest.mark.parametrize(
    ("incarnation", "committed", "what"),
    [
        (2, 102, "incarnation"),
        (4, 102, "incarnation"),
        (3, 104, "only rows up to 103"),
        (3, 99, "durable"),
        (3, 100, "durable"),
    ],
)
def test_a_reconnect_that_cannot_be_answered_so_is_refused(incarnation: int, committed: int, what: str) -> None:
    state = with_sent(3)
    state.rows_acked(Acks(103, 101, 100))
    state.stream_ended()
    with pytest.raises(ProtocolViolationError, match=what):
        state.stream_opened(incarnation, committed, 0)
    assert not state.is_open
    assert state.bytes_in_flight == 30


def test_nothing_is_believed_before_the_stream_is_open() -> None:
    state = with_sent(2)
    state.stream_ended()
    with pytest.raises(ProtocolViolationError, match="before it was open"):
        state.rows_acked(Acks(102, 102, 102))
    with pytest.raises(ProtocolViolationError, match="before it was open"):
        state.batch_refused(101, 100, refusal())
    state.stream_opened(3, 100, 0)
    with pytest.raises(ProtocolViolationError, match="answered before"):
        state.stream_opened(3, 100, 0)


def test_a_new_producer_needs_an_incarnation() -> None:
    with pytest.raises(ProtocolViolationError, match="incarnation 0"):
        ChannelState(limit=1000).stream_opened(0, 5, 0)


def test_a_committed_offset_inside_a_batch_is_refused() -> None:
    state = opened_at(0)
    state.append_rows(FORMAT, EncodedRows(10, 10, b"rows", mergeable=False))
    state.next_message()
    state.stream_ended()
    with pytest.raises(ProtocolViolationError, match="inside a batch"):
        state.stream_opened(3, 4, 0)


def test_rows_of_an_older_stream_cannot_be_committed_after_the_answer_to_an_open() -> None:
    """Rule CH3: they are decided before it. A server that breaks it would commit them beside the ones sent again."""
    state = with_sent(3)
    state.stream_ended()
    state.stream_opened(3, 100, 0)
    assert isinstance(state.next_message(), Entry)
    with pytest.raises(ProtocolViolationError):
        state.rows_acked(Acks(103, 103, 103))
    state.stream_ended()
    with pytest.raises(ProtocolViolationError):
        state.stream_opened(3, 102, 0)


def test_a_refused_batch_cannot_be_committed() -> None:
    state = with_sent(2)
    state.batch_refused(101, 100, refusal())
    state.stream_ended()
    with pytest.raises(ProtocolViolationError):
        state.stream_opened(3, 101, 0)


def test_a_restored_table_takes_offsets_back_once() -> None:
    """Rule CH8. All rows behind the older offset are still here, so they are sent again."""
    state = with_sent(3)
    state.rows_acked(Acks(103, 102, 100))
    state.stream_ended(restored=True)
    state.stream_opened(3, 100, 0)
    assert state.acks == Acks(100, 100, 100)
    assert [entry.offset for entry in iter(state.next_message, None) if isinstance(entry, Entry)] == [101, 102, 103]
    state.rows_acked(Acks(103, 102, 102))
    state.stream_ended()
    with pytest.raises(ProtocolViolationError):
        state.stream_opened(3, 100, 0)


def test_a_table_restored_behind_rows_that_left_memory_is_for_the_program_to_decide() -> None:
    state = with_sent(3)
    state.rows_acked(Acks(103, 102, 102))
    state.stream_ended(restored=True)
    with pytest.raises(TableRestoredError) as refused:
        state.stream_opened(3, 101, 0)
    assert refused.value.committed_offset == 101


def test_a_producer_that_was_away_learns_of_the_restore_when_it_comes_back() -> None:
    """Rule CH8. Its stream broke for another reason; without the restore's name the older offset would be a lie."""
    state = with_sent(3)
    state.rows_acked(Acks(103, 102, 100))
    state.stream_ended()
    state.stream_opened(3, 100, 0, "a restore")
    assert state.acks == Acks(100, 100, 100)
    assert [entry.offset for entry in iter(state.next_message, None) if isinstance(entry, Entry)] == [101, 102, 103]
    state.rows_acked(Acks(103, 102, 102))
    state.stream_ended()
    with pytest.raises(ProtocolViolationError):
        state.stream_opened(3, 100, 0, "a restore")


def test_a_producer_that_was_away_is_told_when_its_rows_are_gone() -> None:
    state = with_sent(3)
    state.rows_acked(Acks(103, 102, 102))
    state.stream_ended()
    with pytest.raises(TableRestoredError) as refused:
        state.stream_opened(3, 101, 0, "a restore")
    assert refused.value.committed_offset == 101


def test_one_batch_is_taken_however_small_the_limit() -> None:
    state = opened_at(0, 5)
    assert state.has_room(10_000)
    state.append_rows(FORMAT, encoded(10_000))
    assert not state.has_room(1)


def test_the_cluster_may_allow_less_than_the_client_would_keep() -> None:
    state = opened_at(0, 25)
    state.append_rows(FORMAT, encoded())
    assert state.has_room(15)
    assert not state.has_room(16)


def test_half_of_the_limit_asks_for_a_checkpoint() -> None:
    """Rule CH7. Otherwise a fast producer would wait for the next interval with its memory full."""
    state = opened_at(0, 40)
    state.append_rows(FORMAT, encoded())
    assert isinstance(state.next_message(), Entry)
    assert state.next_message() is None
    state.append_rows(FORMAT, encoded())
    assert isinstance(state.next_message(), Entry)
    assert state.next_message() is Control.FLUSH
    assert state.next_message() is None


def test_a_flush_goes_out_behind_its_rows_and_before_later_ones_and_again_after_a_break() -> None:
    state = opened_at(0)
    state.append_rows(FORMAT, encoded())
    state.request_flush()
    state.append_rows(FORMAT, encoded())
    first, asked, second = (state.next_message() for _ in range(3))
    assert isinstance(first, Entry)
    assert asked is Control.FLUSH
    assert isinstance(second, Entry)
    state.stream_ended()
    state.stream_opened(3, 0, 0)
    assert [type(state.next_message()) for _ in range(3)] == [Entry, Control, Entry]
    state.rows_acked(Acks(2, 1, 1))
    state.stream_ended()
    state.stream_opened(3, 1, 0)
    assert isinstance(state.next_message(), Entry)
    assert state.next_message() is None


def test_small_calls_travel_together_while_one_is_unanswered() -> None:
    state = opened_at(0)
    for _ in range(3):
        state.append_rows(FORMAT, encoded(mergeable=True))
    first = state.next_message()
    assert isinstance(first, Entry)
    assert (first.after, first.offset, len(first.pieces)) == (0, 3, 3)
    state.append_rows(FORMAT, encoded(mergeable=True))
    state.append_rows(OTHER_FORMAT, encoded(mergeable=True))
    assert state.next_message() is None
    state.rows_acked(Acks(3, 0, 0))
    second = state.next_message()
    assert isinstance(second, Entry)
    assert (second.after, second.offset) == (3, 4)


def test_what_was_sent_keeps_its_cut_after_a_break() -> None:
    """Rule CH1: a server that took it before answers OffsetOverlap to any other."""
    state = opened_at(0)
    state.append_rows(FORMAT, encoded(mergeable=True))
    state.next_message()
    state.stream_ended()
    state.append_rows(FORMAT, encoded(mergeable=True))
    state.stream_opened(3, 0, 0)
    again = state.next_message()
    assert isinstance(again, Entry)
    assert (again.after, again.offset) == (0, 1)


def test_merged_calls_are_cut_apart_so_that_only_the_bad_one_stands_still() -> None:
    state = opened_at(0)
    for _ in range(3):
        state.append_rows(FORMAT, encoded(mergeable=True))
    state.next_message()
    state.batch_refused(3, 0, refusal())
    assert state.refusal is None
    assert [entry.offset for entry in iter(state.next_message, None) if isinstance(entry, Entry)] == [1, 2, 3]
    state.rows_acked(Acks(1, 0, 0))
    state.batch_refused(2, 1, refusal())
    assert state.refusal is not None
    assert state.refusal.entry.offset == 2


def test_offsets_only_grow_and_have_a_largest_one() -> None:
    state = opened_at(7)
    for offset in (7, 3, MAX_OFFSET + 1):
        with pytest.raises(InvalidArgumentError):
            state.append_rows(FORMAT, encoded(), offset)
        with pytest.raises(InvalidArgumentError):
            state.skip(offset)
    with pytest.raises(InvalidArgumentError, match="no batch is refused"):
        state.skip(None)
    assert state.append_rows(FORMAT, encoded(), MAX_OFFSET) == MAX_OFFSET


def test_a_skip_ends_at_the_end_of_a_batch() -> None:
    state = opened_at(0)
    for _ in range(3):
        state.append_rows(FORMAT, EncodedRows(10, 10, b"rows", mergeable=False))
        state.next_message()
    state.batch_refused(10, 0, refusal())
    with pytest.raises(InvalidArgumentError, match="10, the end of the refused batch"):
        state.skip(15)
    assert state.skip(20) == 20
    assert state.bytes_in_flight == 10


def test_nothing_is_sent_while_a_refused_batch_stands_in_the_way() -> None:
    state = with_sent(3)
    state.batch_refused(101, 100, refusal())
    state.request_flush()
    assert state.next_message() is None
    state.append_rows(FORMAT, encoded(), 101)
    assert isinstance(state.next_message(), Entry)


def test_rows_that_a_writer_had_received_are_not_received_any_more_when_its_stream_breaks() -> None:
    """It may have died with them: who waits for `received` waits again."""
    state = with_sent(3)
    state.rows_acked(Acks(103, 101, 100))
    state.stream_ended()
    assert state.acks == Acks(101, 101, 100)


def test_answers_of_an_older_stream_are_not_waited_for_on_a_newer_one() -> None:
    """102 was under way behind the refused 101 when the stream broke: a refusal of 102 on the next one is a real one."""
    state = with_sent(2)
    state.batch_refused(101, 100, refusal())
    state.stream_ended()
    state.stream_opened(3, 100, 0)
    state.append_rows(FORMAT, encoded(), 101)
    assert [entry.offset for entry in iter(state.next_message, None) if isinstance(entry, Entry)] == [101, 102]
    state.rows_acked(Acks(101, 100, 100))
    state.batch_refused(102, 101, refusal())
    assert state.refusal is not None
    assert state.refusal.entry.offset == 102


def broken_behind_a_refusal(committed: int = 100) -> ChannelState:
    """101 was received and 102 refused when the stream broke; of both nothing, or ``committed``, had been committed."""
    state = with_sent(3)
    state.rows_acked(Acks(101, 100, 100))
    state.batch_refused(102, 101, refusal())
    state.stream_ended()
    state.stream_opened(3, committed, 0)
    return state


def sent(state: ChannelState) -> list[tuple[int, int]]:
    """After and offset of what is sent now."""
    return [(entry.after, entry.offset) for entry in iter(state.next_message, None) if isinstance(entry, Entry)]


def test_rows_before_a_refused_batch_are_sent_again_after_a_break_and_the_refused_one_is_not() -> None:
    state = broken_behind_a_refusal()
    assert sent(state) == [(100, 101)]
    assert state.awaits_answer, "a writer that is silent now would not be noticed"
    state.rows_acked(Acks(101, 101, 101))
    state.append_rows(FORMAT, encoded(30), 102)
    assert sent(state) == [(101, 102), (102, 103)]
    assert state.bytes_in_flight == 40


def test_a_correction_after_a_break_replaces_the_refused_batch_and_no_other() -> None:
    state = broken_behind_a_refusal()
    state.append_rows(FORMAT, encoded(30), 102)
    assert sent(state) == [(100, 101), (101, 102), (102, 103)]
    assert (state.refusal, state.bytes_in_flight) == (None, 50)


@pytest.mark.parametrize(("end", "after"), [(None, [(100, 101), (101, 102), (102, 103)]), (103, [(100, 101), (101, 103)])])
def test_a_skip_after_a_break_passes_over_the_refused_batch_and_none_before_it(
    end: int | None, after: list[tuple[int, int]]
) -> None:
    state = broken_behind_a_refusal()
    assert state.skip(end) == (end or 102)
    assert sent(state) == after[:1], "a skip behind rows that may be refused would pass over them as well"
    state.rows_acked(Acks(101, 100, 100))
    assert sent(state)[0] == after[1]
    assert state.bytes_in_flight == (10 if end else 20)


def test_a_skip_ends_at_no_batch_before_the_refused_one() -> None:
    state = broken_behind_a_refusal()
    with pytest.raises(InvalidArgumentError, match="102, the end of the refused batch"):
        state.skip(101)


def test_nothing_goes_out_after_a_break_when_all_before_the_refused_batch_was_committed() -> None:
    assert sent(broken_behind_a_refusal(committed=101)) == []


def test_of_two_refused_batches_the_one_that_the_caller_knows_is_decided_first() -> None:
    state = broken_behind_a_refusal()
    assert sent(state) == [(100, 101)]
    state.batch_refused(101, 100, refusal())
    assert state.refusal is not None
    assert state.refusal.entry.offset == 102
    assert sent(state) == [], "it would be refused again and again"
    state.skip(None)
    assert sent(state) == [(100, 101)]
    state.batch_refused(101, 100, refusal())
    assert state.refusal.entry.offset == 101
    state.append_rows(FORMAT, encoded(), 101)
    assert sent(state) == [(100, 101)]
    state.rows_acked(Acks(101, 100, 100))
    assert sent(state)[0] == (101, 102)


def test_a_batch_before_the_refused_one_is_tried_again_on_each_stream() -> None:
    state = broken_behind_a_refusal()
    assert sent(state) == [(100, 101)]
    state.batch_refused(101, 100, refusal())
    state.stream_ended()
    state.stream_opened(3, 100, 0)
    assert sent(state) == [(100, 101)]
