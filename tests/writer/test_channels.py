"""One hold of a channel, without a network: rules CH1, CH2 and CH6."""

from collections import deque

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_runtime.errors import wire_error
from headgate_writer.admission import Admitted
from headgate_writer.channels import Disposition, Entry, Hold
from support.strategies import effort

BATCH = Admitted(pa.table({"id": ["a"]}), None, 10)
BAD = wire_error(errors_pb2.CODE_NULL_KEY, "a null key", "Correct it.")


def send(hold: Hold, after: int, offset: int) -> Entry | None:
    """What a client's stream does with a batch that can be decoded."""
    disposition = hold.judge_batch(after, offset)
    if disposition is Disposition.TAKE:
        return hold.take_batch(offset, 1, BATCH)
    if isinstance(disposition, errors_pb2.Error):
        hold.refuse_batch(offset, disposition)
    else:
        hold.answer_duplicate()
    return None


def taken(hold: Hold, *offsets: int) -> list[Entry]:
    """Batches one behind the other."""
    entries = []
    for after, offset in zip((hold.accepted, *offsets), offsets, strict=False):
        entry = send(hold, after, offset)
        assert entry is not None
        entries.append(entry)
    return entries


def said(hold: Hold) -> list[tuple[str, int, int]]:
    """The answers due: ("acks", received, durable), ("refused", offset, code) or ("ended", code, 0)."""
    return [_short(answer) for answer in hold.take_answers()]


def _short(answer: ingest_pb2.AppendResponse) -> tuple[str, int, int]:
    match answer.WhichOneof("message"):
        case "acks":
            return "acks", answer.acks.received, answer.acks.durable
        case "refused":
            return "refused", answer.refused.offset, answer.refused.error.code
        case _:
            return "ended", answer.ended.error.code, 0


def test_received_is_acked_when_the_rows_are_with_their_buckets() -> None:
    hold = Hold("c", 1, 1, 0)
    first, second = taken(hold, 3, 8)
    assert said(hold) == []
    hold.mark_routed(first)
    assert said(hold) == [("acks", 3, 0)]
    hold.mark_routed(second)
    assert said(hold) == [("acks", 8, 0)]


def test_a_batch_that_was_taken_is_a_repeat_from_then_on_and_nothing_to_complain_of() -> None:
    hold = Hold("c", 1, 1, 0)
    (entry,) = taken(hold, 3)
    assert hold.judge_batch(0, 3) is Disposition.DUPLICATE
    hold.mark_routed(entry)
    assert hold.judge_batch(0, 3) is Disposition.DUPLICATE


def test_a_channel_that_went_on_behind_a_refused_batch_hears_of_gaps_and_not_of_that_batch() -> None:
    hold = Hold("c", 1, 1, 0)
    hold.refuse_batch(3, BAD)
    gap = hold.judge_batch(5, 7)
    assert isinstance(gap, errors_pb2.Error)
    assert gap.code == errors_pb2.CODE_AFTER_FAILED_BATCH
    taken(hold, 3)
    gap = hold.judge_batch(5, 7)
    assert isinstance(gap, errors_pb2.Error)
    assert gap.code == errors_pb2.CODE_OFFSET_GAP


def test_what_was_accepted_is_uncommitted_until_its_checkpoint_is_durable_though_nothing_waits() -> None:
    hold = Hold("c", 1, 1, 0)
    (entry,) = taken(hold, 3)
    hold.mark_routed(entry)
    hold.note_barrier(1)
    assert hold.uncommitted
    hold.mark_durable(1)
    assert not hold.uncommitted


def test_bytes_in_flight_of_several_checkpoints_are_each_given_back_once() -> None:
    hold = Hold("c", 1, 1, 0)
    for number, offset in enumerate((3, 8, 9), 1):
        (entry,) = taken(hold, offset)
        hold.mark_routed(entry)
        hold.note_barrier(number)
    for number, left in ((1, 2), (2, 1), (3, 0)):
        hold.mark_queryable(number)
        assert hold.in_flight == left


def test_a_checkpoints_levels_cover_what_its_barrier_found_and_nothing_behind() -> None:
    hold = Hold("c", 1, 1, 0)
    first, second = taken(hold, 3, 8)
    hold.mark_routed(first)
    assert hold.note_barrier(1) == 3
    hold.mark_routed(second)
    assert hold.note_barrier(2) == 8
    hold.mark_durable(1)
    assert said(hold) == [("acks", 8, 3)]
    hold.mark_queryable(1)
    hold.mark_durable(2)
    hold.mark_queryable(2)
    answer = hold.take_answers()[0].acks
    assert (answer.received, answer.durable, answer.queryable) == (8, 8, 8)


def test_a_checkpoint_without_progress_notes_nothing() -> None:
    hold = Hold("c", 1, 1, 5)
    taken(hold, 6)
    assert hold.note_barrier(1) is None


def test_bytes_are_in_flight_until_their_checkpoint_is_queryable_or_they_are_refused() -> None:
    hold = Hold("c", 1, 1, 0)
    first, second, third = taken(hold, 1, 2, 3)
    hold.mark_routed(first)
    hold.note_barrier(1)
    hold.refuse_taken(second, BAD)
    assert third.dropped
    assert hold.in_flight == 1
    hold.mark_durable(1)
    assert hold.in_flight == 1
    hold.mark_queryable(1)
    assert hold.in_flight == 0


def test_a_failed_batch_takes_all_that_wait_behind_it_along_in_order() -> None:
    hold = Hold("c", 1, 1, 0)
    first, second, third = taken(hold, 1, 2, 3)
    hold.mark_routed(first)
    hold.refuse_taken(second, BAD)
    send(hold, 3, 4)
    after = errors_pb2.CODE_AFTER_FAILED_BATCH
    assert said(hold) == [("acks", 1, 0), ("refused", 2, BAD.code), ("refused", 3, after), ("refused", 4, after)]
    assert third.dropped
    corrected = send(hold, 1, 2)
    assert corrected is not None
    hold.mark_routed(corrected)
    assert said(hold) == [("acks", 2, 0)]


def test_a_refusal_at_the_door_waits_for_the_batches_before_it() -> None:
    """Answers come in the order of the batches, and ``accepted`` is true when it is said."""
    hold = Hold("c", 1, 1, 0)
    (first,) = taken(hold, 1)
    hold.refuse_batch(2, BAD)
    assert said(hold) == []
    hold.mark_routed(first)
    answers = hold.take_answers()
    assert [_short(answer) for answer in answers] == [("acks", 1, 0), ("refused", 2, BAD.code)]
    assert answers[1].refused.accepted == 1


def test_a_refusal_behind_a_batch_that_fails_is_answered_behind_it() -> None:
    hold = Hold("c", 1, 1, 0)
    (first,) = taken(hold, 1)
    hold.refuse_batch(2, BAD)
    hold.refuse_taken(first, BAD)
    assert said(hold) == [("refused", 1, BAD.code), ("refused", 2, BAD.code)]


def test_a_skip_takes_the_channel_behind_a_refused_batch() -> None:
    hold = Hold("c", 1, 1, 0)
    hold.refuse_batch(1, BAD)
    skip = hold.take_skip(0, 1)
    assert skip is not None
    behind = send(hold, 1, 2)
    assert behind is not None
    hold.mark_routed(skip)
    hold.mark_routed(behind)
    assert hold.note_barrier(1) == 2


def test_a_skip_of_what_was_accepted_does_nothing() -> None:
    hold = Hold("c", 1, 1, 5)
    assert hold.take_skip(4, 5) is None
    assert said(hold) == []


@pytest.mark.parametrize(("after", "code"), [(4, errors_pb2.CODE_OFFSET_OVERLAP), (6, errors_pb2.CODE_OFFSET_GAP)])
def test_ch1_a_skip_that_would_pass_over_other_rows_is_refused(after: int, code: int) -> None:
    hold = Hold("c", 1, 1, 5)
    assert hold.take_skip(after, 9) is None
    assert said(hold) == [("refused", 9, code)]
    assert hold.take_skip(5, 9) is not None


def test_a_skip_of_a_client_that_does_not_say_where_it_stands_is_taken() -> None:
    assert Hold("c", 1, 1, 5).take_skip(None, 9) is not None


def test_where_a_skip_leads_no_rows_wait_and_rows_that_are_taken_back_wait_no_more() -> None:
    """A skip may lead anywhere: the marker of a loaded file moves by 2**40 offsets."""
    hold = Hold("c", 1, 1, 0)
    (first,) = taken(hold, 3)
    skip = hold.take_skip(3, 1 << 40)
    assert skip is not None
    assert hold.lag == 3
    hold.mark_routed(first)
    hold.mark_routed(skip)
    assert hold.note_barrier(1) == 1 << 40
    assert hold.lag == 3
    hold.mark_durable(1)
    assert hold.lag == 0
    second, _ = taken(hold, (1 << 40) + 1, (1 << 40) + 2)
    assert hold.lag == 2
    hold.refuse_taken(second, BAD)
    assert hold.lag == 0


def test_the_end_drops_what_is_not_under_way_and_keeps_what_is() -> None:
    hold = Hold("c", 1, 1, 0)
    first, second = taken(hold, 1, 2)
    first.under_way = True
    hold.end(BAD)
    assert (first.dropped, second.dropped) == (False, True)
    assert hold.uncommitted
    hold.mark_routed(first)
    assert said(hold) == [("ended", BAD.code, 0)]
    assert hold.note_barrier(1) == 1
    hold.mark_durable(1)
    assert not hold.uncommitted


def test_a_batch_under_way_that_fails_after_the_end_is_told_to_nobody() -> None:
    hold = Hold("c", 1, 1, 0)
    (first,) = taken(hold, 1)
    first.under_way = True
    hold.end(BAD)
    hold.refuse_taken(first, BAD)
    assert said(hold) == [("ended", BAD.code, 0)]
    assert not hold.uncommitted


def test_what_comes_between_the_end_and_its_client_hearing_of_it_is_not_taken() -> None:
    """The owner was told what is uncommitted: more rows would be committed beside those that the client sends elsewhere (CH3)."""
    hold = Hold("c", 1, 1, 0)
    hold.end(BAD)
    assert send(hold, 0, 1) is None
    assert hold.take_skip(0, 2) is None
    assert not hold.uncommitted
    assert not hold.unnoted
    assert said(hold) == [("ended", errors_pb2.CODE_NULL_KEY, 0)]


def test_the_last_acks_come_before_the_end() -> None:
    hold = Hold("c", 1, 1, 0)
    (first,) = taken(hold, 1)
    hold.mark_routed(first)
    hold.end(BAD)
    assert said(hold) == [("acks", 1, 0), ("ended", BAD.code, 0)]


def test_a_close_ends_when_all_is_queryable_and_not_before() -> None:
    hold = Hold("c", 1, 1, 0)
    (first,) = taken(hold, 1)
    hold.close()
    assert said(hold) == []
    hold.mark_routed(first)
    hold.note_barrier(1)
    hold.mark_durable(1)
    assert said(hold) == [("acks", 1, 1)]
    hold.mark_queryable(1)
    assert said(hold) == [("acks", 1, 1), ("ended", 0, 0)]
    assert hold.ended


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 12), st.integers(1, 4)),
        st.tuples(st.just("next"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("skip"), st.integers(0, 12), st.just(0)),
        st.tuples(st.just("route"), st.booleans(), st.just(0)),
        st.tuples(st.just("barrier"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@effort(100)
@given(STEPS)
def test_whatever_is_sent_the_stored_batches_are_a_chain_and_each_is_answered_once(steps: list[tuple[str, int, int]]) -> None:
    """Each stored batch goes on where the stored one before it, or a skip, ended (rule CH1); nothing passes a refused one (CH2);
    every batch that was taken is stored or refused, in order; a checkpoint's offset is that of what was stored before its
    barrier."""
    hold = Hold("c", 1, 1, 0)
    queue: deque[tuple[int, Entry]] = deque()
    stored, last, number = [], 0, 0
    awaited: list[int] = []

    def note_taken(after: int, entry: Entry | None) -> None:
        if entry is not None:
            queue.append((after, entry))
            if entry.batch is not None:
                awaited.append(entry.offset)

    def route(fails: bool) -> None:
        nonlocal last
        after, entry = queue.popleft()
        if entry.dropped:
            return
        if fails and entry.batch is not None:
            hold.refuse_taken(entry, BAD)
            return
        if entry.batch is not None:
            assert after == last
            stored.append(entry.offset)
        assert entry.offset > last
        last = entry.offset
        hold.mark_routed(entry)

    for kind, first, second in steps:
        match kind:
            case "send":
                note_taken(first, send(hold, first, first + second))
            case "next":
                here = queue[-1][1].offset if queue and not queue[-1][1].dropped else hold.accepted
                note_taken(here, send(hold, here, here + first))
            case "skip":
                note_taken(-1, hold.take_skip(None, first))
            case "route" if queue:
                route(fails=bool(first))
            case "barrier":
                number += 1
                assert hold.note_barrier(number) in (last, None)
                assert hold.accepted == last
    while queue:
        route(fails=False)
    refused = [offset for kind, offset, _ in said(hold) if kind == "refused"]
    assert all(offset in stored or offset in refused for offset in awaited)
    assert stored == sorted(set(stored))
