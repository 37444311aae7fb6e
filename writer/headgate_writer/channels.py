"""One producer's hold on one channel: which batches it takes or refuses, and when it acknowledges them (rules CH1, CH2, CH6).

Pure: the client's stream and the table's pipeline call it with what happened, and it collects the answers to the client. Two
offsets move: ``taken``, of the last batch that went into the pipeline, and ``accepted``, of the last batch that came out of it
with its rows keyed and handed to their buckets. When a batch fails in between, it and all batches behind it are taken back: the
channel stands at ``accepted`` again.
"""

import enum
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_runtime.errors import wire_error
from headgate_writer.admission import Admitted


class Disposition(enum.Enum):
    """What happens to a batch that is not refused."""

    TAKE = "take"
    DUPLICATE = "duplicate"
    LATE = "late"
    """The hold has ended, and its last report to the owner does not cover this batch. Its client learns of the end from the
    stream's last answer, and sends the batch again."""


@dataclass(slots=True, eq=False)
class Entry:
    """A client's message on its way through the pipeline. ``batch`` is None for a skip, and for a ``refusal`` that waits for its
    turn.

    ``wire_bytes`` count against the connection (rule CH7). ``under_way``: its rows are being keyed, so it cannot be taken back.
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
    """``hold`` is the number that the owner gave it. The client's stream sets ``wake``, which is called when answers are due."""

    def __init__(self, channel: str, hold: int, incarnation: int, committed: int) -> None:
        self.channel = channel
        self.hold = hold
        self.incarnation = incarnation
        self.committed_at_open = committed
        self.accepted = self._taken = self._noted = self._durable = self._queryable = committed
        self._with_rows = committed
        self.in_flight = 0
        self.wake: Callable[[], None] = _no_listener
        self._stopped = False
        self._waiting: deque[Entry] = deque()
        self._checkpoint_bytes = 0
        self._notes: deque[_Note] = deque()
        self._answers: list[ingest_pb2.AppendResponse] = []
        self._answered = (committed, committed, committed)
        self._answer_again = False
        self._closing = False
        self._ended = False

    # For the client's stream.

    def judge_batch(self, after: int, offset: int) -> Disposition | errors_pb2.Error:
        """Applies rules CH1 and CH3, before any work on the rows. The caller hands an error to ``refuse_batch``."""
        if self._ended:
            return Disposition.LATE
        if offset <= self._taken:
            return Disposition.DUPLICATE
        if after == self._taken:
            return Disposition.TAKE
        if self._stopped:
            return _after_failed(self._taken)
        return _misplaced(after, offset, self._taken)

    def take_batch(self, offset: int, wire_bytes: int, batch: Admitted) -> Entry:
        """Returns the batch's entry for the pipeline. Call it right after ``judge_batch`` returned TAKE."""
        self.in_flight += wire_bytes
        return self._take(Entry(self, offset, wire_bytes, batch))

    def take_skip(self, after: int | None, offset: int) -> Entry | None:
        """Moves on behind a refused batch (rule CH2). Returns its entry for the pipeline, None when there is nothing to skip.

        Also taken where nothing was refused: after a reconnect this hold knows nothing of the refusal. Refused where the channel
        does not stand at ``after`` (rule CH1); None comes from a client that does not say it.
        """
        if self._ended or offset <= self._taken:
            return None
        if after is not None and after != self._taken:
            self.refuse_batch(offset, _misplaced(after, offset, self._taken))
            return None
        return self._take(Entry(self, offset, 0, None))

    def refuse_batch(self, offset: int, error: errors_pb2.Error) -> None:
        """Refuses a batch that was not taken: the channel takes no later batch before a corrected one or a skip (rule CH2).

        Refusals are answered in the order of the batches.
        """
        self._stopped = True
        if self._waiting:
            self._waiting.append(Entry(self, offset, 0, None, error))
        else:
            self._answer_refused(offset, error)
            self.wake()

    def answer_duplicate(self) -> None:
        """Answers a duplicate with the acks, even if they have not changed."""
        self._answer_again = True
        self.wake()

    def close(self) -> None:
        """The client sends nothing more. The hold ends when all accepted batches are queryable."""
        self._closing = True
        self.wake()

    # For the pipeline.

    def mark_routed(self, entry: Entry) -> None:
        """The rows are in their buckets. Call it in the order in which the entries were taken."""
        self._waiting.popleft()
        self.accepted = entry.offset
        self._checkpoint_bytes += entry.wire_bytes
        while self._waiting and (refusal := self._waiting[0].refusal) is not None:
            self._answer_refused(self._waiting.popleft().offset, refusal)
        self.wake()

    def refuse_taken(self, entry: Entry, error: errors_pb2.Error, rows: bytes = b"") -> None:
        """Refuses a batch whose rows cannot be stored, and every batch that waits behind it (rule CH2).

        ``rows``: a bitmap of the rows at fault, in the form of ``Refused.rows``.
        """
        self._waiting.popleft()
        self.in_flight -= entry.wire_bytes
        self._answer_refused(entry.offset, error, rows)
        for later in self._waiting:
            later.dropped = True
            self.in_flight -= later.wire_bytes
            self._answer_refused(later.offset, later.refusal or _after_failed(self.accepted))
        self._waiting.clear()
        self._with_rows = min(self._with_rows, self.accepted)
        self._taken = self.accepted
        self._stopped = True
        self.wake()

    def note_barrier(self, number: int) -> int | None:
        """Ends the checkpoint here. Returns the offset that the checkpoint covers, None when it accepted nothing."""
        if self.accepted == self._noted:
            return None
        self._notes.append(_Note(number, self.accepted, self._checkpoint_bytes))
        self._noted, self._checkpoint_bytes = self.accepted, 0
        return self.accepted

    def mark_durable(self, number: int) -> None:
        """The checkpoint's slot is won."""
        for note in self._notes:
            if note.checkpoint <= number:
                self._durable = note.offset
        self.wake()

    def mark_queryable(self, number: int) -> None:
        """Readers see the checkpoint, so its bytes are no longer in flight (rule CH7)."""
        while self._notes and self._notes[0].checkpoint <= number:
            note = self._notes.popleft()
            self._durable = max(self._durable, note.offset)
            self._queryable = note.offset
            self.in_flight -= note.wire_bytes
        self.wake()

    # The end, and the answers.

    def end(self, error: errors_pb2.Error | None = None) -> None:
        """Takes no more batches, and drops those that are not under way; none of them was acknowledged as received.

        ``error`` becomes the stream's last answer; None means that the client is gone. Call it once.
        """
        if error is not None:
            self._answer_acks()
            self._answers.append(ingest_pb2.AppendResponse(ended=ingest_pb2.Ended(error=error)))
        self._ended = True
        for entry in self._waiting:
            entry.dropped = not entry.under_way
        self._waiting = deque(entry for entry in self._waiting if entry.under_way)
        self.wake()

    def take_answers(self) -> list[ingest_pb2.AppendResponse]:
        """Returns the answers that are due to the client, in order, and forgets them."""
        if not self._ended:
            self._answer_acks()
            if self._closing and not self._waiting and self._queryable == self.accepted:
                self._ended = True
                self._answers.append(ingest_pb2.AppendResponse(ended=ingest_pb2.Ended()))
        answers, self._answers = self._answers, []
        return answers

    @property
    def untaken(self) -> int:
        """Answers that ``take_answers`` has not taken yet. The acknowledgement that it would add itself does not count."""
        return len(self._answers)

    @property
    def ended(self) -> bool:
        """Whether it takes no more batches. Some of its rows may still be uncommitted."""
        return self._ended

    @property
    def unnoted(self) -> bool:
        """Whether any of its batches waits for a barrier."""
        return bool(self._waiting) or self.accepted != self._noted

    @property
    def uncommitted(self) -> bool:
        """Whether any of its rows is in no decided checkpoint, or on its way into one that is not decided."""
        return self.accepted != self._durable or any(entry.under_way for entry in self._waiting)

    @property
    def lag(self) -> int:
        """Offsets from the last durable to the last taken that has rows: where a skip leads, no rows wait."""
        return max(0, self._with_rows - self._durable)

    def _take(self, entry: Entry) -> Entry:
        self._taken = entry.offset
        self._stopped = False
        if entry.batch is not None:
            self._with_rows = entry.offset
        self._waiting.append(entry)
        return entry

    def _answer_acks(self) -> None:
        now = (self.accepted, self._durable, self._queryable)
        if now != self._answered or self._answer_again:
            self._answered, self._answer_again = now, False
            acks = ingest_pb2.Acks(received=now[0], durable=now[1], queryable=now[2])
            self._answers.append(ingest_pb2.AppendResponse(acks=acks))

    def _answer_refused(self, offset: int, error: errors_pb2.Error, rows: bytes = b"") -> None:
        if self._ended:
            return
        self._answer_acks()  # batches accepted before the refused one are answered before it
        refused = ingest_pb2.Refused(offset=offset, accepted=self.accepted, error=error, rows=rows)
        self._answers.append(ingest_pb2.AppendResponse(refused=refused))


def _no_listener() -> None:
    """Stands for ``wake`` from the grant until the client's stream has set it."""


def _after_failed(accepted: int) -> errors_pb2.Error:
    return wire_error(
        errors_pb2.CODE_AFTER_FAILED_BATCH,
        "an earlier batch of this channel was refused",
        f"Send a corrected batch with after={accepted}, or skip it.",
    )


def _misplaced(after: int, offset: int, accepted: int) -> errors_pb2.Error:
    return _overlap(after, offset, accepted) if after < accepted else _gap(after, accepted)


def _overlap(after: int, offset: int, accepted: int) -> errors_pb2.Error:
    return wire_error(
        errors_pb2.CODE_OFFSET_OVERLAP,
        f"the batch covers {after} to {offset}, but the channel stands at {accepted}, in the middle of it",
        f"Go on with after={accepted}; cut batches that are sent again at the same offsets.",
    )


def _gap(after: int, accepted: int) -> errors_pb2.Error:
    return wire_error(
        errors_pb2.CODE_OFFSET_GAP,
        f"the batch says after={after}, but the channel stands at {accepted}",
        f"Send the missing batches first, with after={accepted}.",
    )
