"""One producer's hold on one channel: what is taken, what is refused, what is acknowledged when (rules CH1, CH2, CH6).

Pure: the client's stream and the table's pipeline tell it what happened; it gathers the answers. Two offsets move: ``taken``
is that of the last batch that was let into the pipeline, ``accepted`` that of the last one that came out of it with its rows
keyed and handed to their buckets. A batch that fails in between takes all that wait behind it back to ``accepted``.
"""

import enum
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_runtime.errors import wire_error
from headgate_writer.admission import Admitted

MAX_OFFSET = 2**63 - 1


class Verdict(enum.Enum):
    """What becomes of a batch that is not refused."""

    TAKE = "take"
    DUPLICATE = "duplicate"
    LATE = "late"
    """The hold has ended and the owner knows what of it is uncommitted; its client is about to hear so, and sends this again."""


@dataclass(slots=True, eq=False)
class Entry:
    """A message of a client on its way through the pipeline. ``batch`` None: a skip, or a ``refusal`` that waits for its turn.

    ``wire_bytes`` counts against the connection (rule CH7). ``under_way``: its rows are being keyed and can not be taken back.
    ``dropped``: it was taken back.
    """

    hold: "Hold"
    offset: int
    wire_bytes: int
    batch: Admitted | None
    refusal: errors_pb2.Error | None = None
    under_way: bool = False
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class _Note:
    checkpoint: int
    offset: int
    wire_bytes: int


class Hold:
    """Named by the owner's ``hold``. ``wake`` is called when there is something to answer; who answers sets it."""

    def __init__(self, channel: str, hold: int, incarnation: int, committed: int) -> None:
        self.channel = channel
        self.hold = hold
        self.incarnation = incarnation
        self.committed_at_open = committed
        self.accepted = self._taken = self._noted = self._durable = self._queryable = committed
        self.in_flight = 0
        self.wake: Callable[[], None] = _no_listener
        self._stopped = False
        self._waiting: deque[Entry] = deque()
        self._checkpoint_bytes = 0
        self._notes: deque[_Note] = deque()
        self._answers: list[ingest_pb2.AppendResponse] = []
        self._told = (committed, committed, committed)
        self._tell_again = False
        self._closing = False
        self._ended = False

    # What the client's stream says.

    def judge_batch(self, after: int, offset: int) -> Verdict | errors_pb2.Error:
        """Rules CH1 and CH3, before any work on the rows. A refusal has to be handed to ``refuse_batch``."""
        if self._ended:
            return Verdict.LATE
        if offset <= self._taken:
            return Verdict.DUPLICATE
        if offset > MAX_OFFSET:
            return _too_large(offset)
        if after == self._taken:
            return Verdict.TAKE
        if self._stopped:
            return _after_failed(self._taken)
        return _overlap(after, offset, self._taken) if after < self._taken else _gap(after, self._taken)

    def take_batch(self, offset: int, wire_bytes: int, batch: Admitted) -> Entry:
        """The batch goes into the pipeline; ``judge_batch`` has just said TAKE."""
        self.in_flight += wire_bytes
        return self._take(Entry(self, offset, wire_bytes, batch))

    def take_skip(self, offset: int) -> Entry | None:
        """Rule CH2: on behind a refused batch. None when there is nothing to skip.

        Taken in its order, also where nothing was refused: after a reconnect this hold knows nothing of the refusal.
        """
        if offset > MAX_OFFSET:
            self.refuse_batch(offset, _too_large(offset))
        elif offset > self._taken and not self._ended:
            return self._take(Entry(self, offset, 0, None))
        return None

    def refuse_batch(self, offset: int, error: errors_pb2.Error) -> None:
        """The batch was not taken; the channel stands still behind what was (rule CH2). Answered in the order of the batches."""
        self._stopped = True
        if self._waiting:
            self._waiting.append(Entry(self, offset, 0, None, error))
        else:
            self._answer_refused(offset, error)
            self.wake()

    def answer_duplicate(self) -> None:
        """A duplicate is answered by the acks, also when they say nothing new."""
        self._tell_again = True
        self.wake()

    def close(self) -> None:
        """Nothing more comes; the hold ends once all that was accepted is queryable."""
        self._closing = True
        self.wake()

    # What the pipeline says.

    def mark_routed(self, entry: Entry) -> None:
        """The rows are with their buckets. Entries come out in the order in which they were taken."""
        self._waiting.popleft()
        self.accepted = entry.offset
        self._checkpoint_bytes += entry.wire_bytes
        while self._waiting and (refusal := self._waiting[0].refusal) is not None:
            self._answer_refused(self._waiting.popleft().offset, refusal)
        self.wake()

    def refuse_taken(self, entry: Entry, error: errors_pb2.Error, rows: bytes = b"") -> None:
        """The rows cannot be stored: this batch is refused, and every one that waits behind it (rule CH2).

        ``rows``: which of them are to blame, as ``Refused`` has it.
        """
        self._waiting.popleft()
        self.in_flight -= entry.wire_bytes
        self._answer_refused(entry.offset, error, rows)
        for later in self._waiting:
            later.dropped = True
            self.in_flight -= later.wire_bytes
            self._answer_refused(later.offset, later.refusal or _after_failed(self.accepted))
        self._waiting.clear()
        self._taken = self.accepted
        self._stopped = True
        self.wake()

    def note_barrier(self, number: int) -> int | None:
        """A barrier ends the checkpoint here and now: the offset that it covers, None when nothing was accepted in it."""
        if self.accepted == self._noted:
            return None
        self._notes.append(_Note(number, self.accepted, self._checkpoint_bytes))
        self._noted, self._checkpoint_bytes = self.accepted, 0
        return self.accepted

    def mark_durable(self, number: int) -> None:
        """The slot of that checkpoint is won."""
        for note in self._notes:
            if note.checkpoint <= number:
                self._durable = note.offset
        self.wake()

    def mark_queryable(self, number: int) -> None:
        """Readers see that checkpoint; its bytes are in flight no more (rule CH7)."""
        while self._notes and self._notes[0].checkpoint <= number:
            note = self._notes.popleft()
            self._durable = max(self._durable, note.offset)
            self._queryable = note.offset
            self.in_flight -= note.wire_bytes
        self.wake()

    # What is to be said.

    def end(self, error: errors_pb2.Error | None = None) -> None:
        """Takes no more batches and drops those that are not under way, which were never acknowledged as received.

        ``error`` is the stream's last answer; None says that its client is gone. Once only.
        """
        if error is not None:
            self._tell_acks()
            self._answers.append(ingest_pb2.AppendResponse(ended=ingest_pb2.Ended(error=error)))
        self._ended = True
        for entry in self._waiting:
            entry.dropped = not entry.under_way
        self._waiting = deque(entry for entry in self._waiting if entry.under_way)
        self.wake()

    def take_answers(self) -> list[ingest_pb2.AppendResponse]:
        """Returns the answers that are due to the client, in order, and forgets them."""
        if not self._ended:
            self._tell_acks()
            if self._closing and not self._waiting and self._queryable == self.accepted:
                self._ended = True
                self._answers.append(ingest_pb2.AppendResponse(ended=ingest_pb2.Ended()))
        answers, self._answers = self._answers, []
        return answers

    @property
    def ended(self) -> bool:
        """Nothing of it is taken any more. Rows may still be uncommitted."""
        return self._ended

    @property
    def unnoted(self) -> bool:
        """Something of it waits for a barrier."""
        return bool(self._waiting) or self.accepted != self._noted

    @property
    def uncommitted(self) -> bool:
        """Some of its rows are in no decided checkpoint, or will be in one that is not."""
        return self.accepted != self._durable or any(entry.under_way for entry in self._waiting)

    @property
    def lag(self) -> int:
        """Offsets from what is durable to what was taken."""
        return self._taken - self._durable

    def _take(self, entry: Entry) -> Entry:
        self._taken = entry.offset
        self._stopped = False
        self._waiting.append(entry)
        return entry

    def _tell_acks(self) -> None:
        now = (self.accepted, self._durable, self._queryable)
        if now != self._told or self._tell_again:
            self._told, self._tell_again = now, False
            acks = ingest_pb2.Acks(received=now[0], durable=now[1], queryable=now[2])
            self._answers.append(ingest_pb2.AppendResponse(acks=acks))

    def _answer_refused(self, offset: int, error: errors_pb2.Error, rows: bytes = b"") -> None:
        if self._ended:
            return
        self._tell_acks()  # what was accepted before the refused batch is answered before it
        refused = ingest_pb2.Refused(offset=offset, accepted=self.accepted, error=error, rows=rows)
        self._answers.append(ingest_pb2.AppendResponse(refused=refused))


def _no_listener() -> None:
    """A hold is granted a moment before its client's stream knows it."""


def _after_failed(accepted: int) -> errors_pb2.Error:
    return wire_error(
        errors_pb2.CODE_AFTER_FAILED_BATCH,
        "an earlier batch of this channel was refused",
        f"Send a corrected batch with after={accepted}, or skip it.",
    )


def _overlap(after: int, offset: int, accepted: int) -> errors_pb2.Error:
    return wire_error(
        errors_pb2.CODE_OFFSET_OVERLAP,
        f"the batch goes from {after} to {offset}, but the channel stands at {accepted} in the middle of it",
        f"Go on with after={accepted}; what is sent again has to keep its cut.",
    )


def _gap(after: int, accepted: int) -> errors_pb2.Error:
    return wire_error(
        errors_pb2.CODE_OFFSET_GAP,
        f"the batch says after={after}, but the channel stands at {accepted}",
        f"Send what is missing, with after={accepted}.",
    )


def _too_large(offset: int) -> errors_pb2.Error:
    return wire_error(errors_pb2.CODE_INVALID_ARGUMENT, f"the offset {offset} is too large", f"Offsets go up to {MAX_OFFSET}.")
