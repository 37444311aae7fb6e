"""Any order of calls, messages, refusals, commits and breaks: every row is committed once, in the caller's order."""

import itertools
from collections import deque
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headgate.acks import Acks
from headgate.channel_state import ChannelState
from headgate.entries import Control, EncodedRows, Entry, Pause, Piece
from headgate.rows import RowFormat
from headgate_proto.api.v1 import errors_pb2 as wire
from support.row_formats import FORMAT, OTHER_FORMAT

BAD = -1
FORMATS = {"a": FORMAT, "b": OTHER_FORMAT}


@dataclass
class Batch:
    after: int
    offset: int
    rows: list[int]
    is_skip: bool = False


@dataclass
class Stream:
    """A writer's side of one stream, as ingest.proto and rules CH1 and CH2 say; messages are under way in both directions.

    ``shut``: the table takes no rows just now.
    """

    committed: int
    accepted: int = 0
    queryable: int = 0
    stopped: bool = False
    shut: bool = False
    inbox: deque[Batch] = field(default_factory=deque)
    outbox: deque[object] = field(default_factory=deque)
    uncommitted: list[Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.accepted = self.queryable = self.committed

    def read(self) -> None:
        batch = self.inbox.popleft()
        if batch.is_skip:
            assert batch.after == self.accepted, f"a gap or overlap: {batch} after {self.accepted}"
            self._accept(batch)
        elif batch.offset <= self.accepted:
            self._acknowledge()
        elif batch.after == self.accepted:
            if self.shut:
                self.stopped = True
                self._refuse(batch, wire.CODE_OVERLOADED, wire.ACTION_RETRY)
            elif BAD in batch.rows:
                self.stopped = True
                self._refuse(batch, wire.CODE_NULL_KEY)
            else:
                self._accept(batch)
        else:
            assert self.stopped, f"a gap or overlap: {batch} after {self.accepted}"
            # A writer that decodes ahead may give the batch's own reason, too.
            self._refuse(batch, wire.CODE_NULL_KEY if BAD in batch.rows else wire.CODE_AFTER_FAILED_BATCH)

    def _accept(self, batch: Batch) -> None:
        self.accepted = batch.offset
        self.stopped = False
        self.uncommitted.append(batch)
        self._acknowledge()

    def _acknowledge(self) -> None:
        self.outbox.append(Acks(self.accepted, self.committed, self.queryable))

    def _refuse(self, batch: Batch, code: "wire.Code.ValueType", action: "wire.Action.ValueType" = wire.ACTION_FIX_CALL) -> None:
        error = wire.Error(code=code, action=action, retry_after_ms=1000)
        self.outbox.append((batch.offset, self.accepted, error))

    def commit(self) -> list[int]:
        rows = [row for batch in self.uncommitted for row in batch.rows]
        self.uncommitted.clear()
        self.committed = self.accepted
        self._acknowledge()
        return rows

    def publish(self) -> None:
        self.queryable = self.committed
        self._acknowledge()


def halved(_: RowFormat, piece: Piece) -> tuple[Piece, Piece]:
    """As ``encoding.halved``, of rows that are a list."""
    middle = len(piece.calls) // 2
    before = Piece(piece.calls[middle - 1], 10 * middle, piece.content[:middle], piece.calls[:middle])
    return before, Piece(piece.offset, piece.size - before.size, piece.content[middle:], piece.calls[middle:])


@dataclass
class Given:
    """What the caller wants committed: the rows of one call under its last offset."""

    offset: int
    rows: list[int]


class ChannelMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = ChannelState(limit=1000, halve=halved)
        self.stream: Stream | None = None
        self.opening: int | None = None
        self.committed_offset = 0
        self.table: list[int] = []
        self.given: list[Given] = []
        self.numbers = iter(range(1, 1_000_000))

    # --- the caller ---

    def _rows(self, count: int, *, bad: bool = False) -> list[int]:
        rows = [next(self.numbers) for _ in range(count)]
        return [BAD, *rows[1:]] if bad else rows

    @precondition(lambda self: self.state.incarnation and self.state.refusal is None)
    @rule(
        count=st.integers(1, 5),
        kind=st.sampled_from("ab"),
        mergeable=st.booleans(),
        bad=st.sampled_from([False] * 5 + [True]),
        own=st.integers(0, 3),
    )
    def take(self, count: int, kind: str, mergeable: bool, bad: bool, own: int) -> None:
        rows = self._rows(count, bad=bad)
        encoded = EncodedRows(count, 10 * count, rows, mergeable)
        if self.state.has_room(encoded.size):
            offset = self.state.last_offset + own if own else None
            taken = self.state.append_rows(FORMATS[kind], encoded, offset)
            self.given.append(Given(taken, rows))

    @precondition(lambda self: self.state.incarnation and self.state.refusal is None)
    @rule(
        bad=st.lists(st.sampled_from([False] * 4 + [True]), min_size=1, max_size=6),
        gap=st.integers(1, 2),
        mergeable=st.booleans(),
    )
    def take_single_rows(self, bad: list[bool], gap: int, mergeable: bool) -> None:
        """Calls with one row each, which go together."""
        rows = [row for is_bad in bad for row in self._rows(1, bad=is_bad)]
        encoded = EncodedRows(len(rows), 10 * len(rows) + 1, rows, mergeable)
        if self.state.has_room(encoded.size):
            ends = [self.state.last_offset + gap * number for number in range(1, len(rows) + 1)]
            assert self.state.append_rows(FORMAT, encoded, ends[-1], ends) == ends[-1]
            self.given += [Given(end, [row]) for end, row in zip(ends, rows, strict=True)]

    @precondition(lambda self: self.state.refusal is not None)
    @rule(count=st.integers(1, 3), bad=st.sampled_from([False] * 3 + [True]))
    def correct(self, count: int, bad: bool) -> None:
        assert self.state.refusal is not None
        offset = self.state.refusal.entry.offset
        rows = self._rows(count, bad=bad)
        self.state.append_rows(FORMAT, EncodedRows(count, 10 * count, rows, mergeable=False), offset)
        next(given for given in self.given if given.offset == offset).rows = rows

    @precondition(lambda self: self.state.refusal is not None)
    @rule(beyond=st.integers(0, 2))
    def skip_refused(self, beyond: int) -> None:
        assert self.state.refusal is not None
        first = self.state.refusal.entry.offset
        ends = [entry.offset for entry in self.state._unsent if entry.offset >= first]
        end = ends[min(beyond, len(ends) - 1)]
        self.state.skip(end if beyond else None)
        self.given = [given for given in self.given if not first <= given.offset <= end]

    @precondition(lambda self: self.state.incarnation and self.state.refusal is None)
    @rule(by=st.integers(1, 5))
    def move_on(self, by: int) -> None:
        self.state.skip(self.state.last_offset + by)

    @rule()
    def flush(self) -> None:
        self.state.request_flush()

    # --- the wire ---

    @precondition(lambda self: self.stream is None and self.opening is None)
    @rule()
    def open(self) -> None:
        self.opening = self.state.incarnation

    @precondition(lambda self: self.opening is not None)
    @rule(lost=st.sampled_from([False, False, True]))
    def opened(self, lost: bool) -> None:
        self.opening = None
        if lost:
            self.state.stream_ended()
            return
        self.stream = Stream(self.committed_offset)
        self.state.stream_opened(1, self.committed_offset, 0)

    @precondition(lambda self: self.stream is not None)
    @rule()
    def send(self) -> None:
        assert self.stream is not None
        message = self.state.next_message()
        if isinstance(message, Entry):
            rows = [row for piece in message.pieces for row in piece.content]
            self.stream.inbox.append(Batch(message.after, message.offset, rows, is_skip=message.row_format is None))
        else:
            assert message in (None, Control.FLUSH, Pause(1.0))

    @precondition(lambda self: self.stream is not None and self.stream.inbox)
    @rule()
    def server_reads(self) -> None:
        assert self.stream is not None
        self.stream.read()

    @precondition(lambda self: self.stream is not None and self.stream.outbox)
    @rule()
    def client_hears(self) -> None:
        assert self.stream is not None
        answer = self.stream.outbox.popleft()
        if isinstance(answer, Acks):
            self.state.rows_acked(answer)
        else:
            assert isinstance(answer, tuple)
            self.state.batch_refused(*answer)

    @precondition(lambda self: self.stream is not None)
    @rule()
    def all_arrives(self) -> None:
        """What can be sent is sent and read, and what is answered is heard: walks get further in as many steps."""
        assert self.stream is not None
        for _ in range(20):
            self.send()
            if self.stream.inbox:
                self.server_reads()
            if self.stream.outbox:
                self.client_hears()

    @precondition(lambda self: self.stream is not None)
    @rule(shut=st.booleans())
    def stop_or_go_on(self, shut: bool) -> None:
        assert self.stream is not None
        self.stream.shut = shut

    @precondition(lambda self: self.stream is not None)
    @rule()
    def commit(self) -> None:
        assert self.stream is not None
        self.table += self.stream.commit()
        self.committed_offset = self.stream.committed

    @precondition(lambda self: self.stream is not None)
    @rule()
    def publish(self) -> None:
        assert self.stream is not None
        self.stream.publish()

    @precondition(lambda self: self.stream is not None)
    @rule(reads=st.integers(0, 3), commits=st.booleans())
    def break_off(self, reads: int, commits: bool) -> None:
        """What is under way to the server arrives in part; its rows are committed or dropped; no answer arrives any more."""
        assert self.stream is not None
        for _ in range(min(reads, len(self.stream.inbox))):
            self.stream.read()
        if commits:
            self.commit()
        self.stream = None
        self.state.stream_ended()

    # --- what holds ---

    @invariant()
    def committed_rows_are_a_prefix_of_what_was_given(self) -> None:
        wanted = [row for given in self.given if given.offset <= self.committed_offset for row in given.rows]
        assert self.table == wanted

    @invariant()
    def memory_is_counted_exactly(self) -> None:
        entries = [*self.state._sent, *self.state._unsent]
        assert self.state.bytes_in_flight == sum(entry.size for entry in entries)
        assert all(before.offset == behind.after for before, behind in itertools.pairwise(entries))

    def teardown(self) -> None:
        """Left alone, everything arrives."""
        for _ in range(10_000):
            if self.stream is None:
                self.opening = None
                self.open()
                self.opened(lost=False)
            assert self.stream is not None
            self.stream.shut = False
            if self.state.refusal is not None:
                self.correct(count=1, bad=False)
            self.send()
            if self.stream.inbox:
                self.server_reads()
            elif self.stream.outbox:
                self.client_hears()
            elif self.state.acks.queryable == self.state.last_offset:
                break
            else:
                self.commit()
                self.publish()
            self.committed_rows_are_a_prefix_of_what_was_given()
        assert self.table == [row for given in self.given for row in given.rows]
        assert BAD not in self.table
        assert self.state.bytes_in_flight == 0


ChannelMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestAnyOrderOfEvents = ChannelMachine.TestCase
