"""What a channel has taken, sent and seen acknowledged, and which answers can be true. Pure: no I/O, no clock, no threads.

Rows wait in entries, in order. An entry is one message: ``unsent`` ones are merged while they wait and get a fixed cut when they
are first sent (rule CH1); ``sent`` ones stay until they are queryable, so that they can be sent again. A break moves all of them
back to ``unsent``; the next ``opened`` drops what is committed. A refusal moves the refused entry and all behind it back, and
nothing is sent until the caller has corrected or skipped it (rule CH2).

What a server says is checked before it is adopted. ``explained`` is the highest offset that the present stream can know of: the
committed one that it was opened with, then what was sent on it. Rows of an older stream are decided before ``opened`` is
answered (rule CH3), so anything beyond is a lie or a defect, and adopting it would lose rows.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headgate.entries import Acks, Ask, Cut, Entry, Pause, Piece, Refusal
from headgate.errors import InvalidArgumentError, TableRestoredError, UnexplainedAnswerError
from headgate_proto.api.v1 import errors_pb2 as wire

MAX_OFFSET = 2**63 - 1
_NEVER_OURS = (wire.CODE_OFFSET_GAP, wire.CODE_OFFSET_OVERLAP, wire.CODE_AFTER_FAILED_BATCH)
"""What is sent follows what was sent, with the same cut, so that none of these can answer it."""
MERGE_BYTES = 512 * 1024
"""Small calls that wait together become one message up to this size. More would only keep the event loop longer at a time."""
_SHORTEST_PAUSE = 0.1
"""Seconds between two tries at a batch that a writer does not take now, if it does not say how long to wait."""


@dataclass(slots=True)
class ChannelState:
    """One producer's hold on a channel. ``limit`` bounds the bytes that are taken and not yet queryable (rule CH7)."""

    limit: int
    incarnation: int = 0
    acks: Acks = field(default_factory=Acks)
    taken: int = 0
    bytes_in_flight: int = 0
    is_open: bool = False
    refusal: Refusal | None = None
    _sent: deque[Entry] = field(default_factory=deque)
    _unsent: deque[Entry] = field(default_factory=deque)
    _void: deque[int] = field(default_factory=deque)
    _explained: int = 0
    _forgotten: int = 0
    _restored: bool = False
    _restore: str = ""
    _flush_at: int = 0
    _flush_sent: bool = False
    _closing: bool = False
    _pause: float = 0.0
    _one_by_one: bool = False

    # --- what the caller does ---

    def has_room(self, size: int) -> bool:
        """Whether rows of this size may be taken now. One batch always may, however small the limit."""
        return not self.bytes_in_flight or self.bytes_in_flight + size <= self.limit

    def take(self, kind: Any, cut: Cut, offset: int | None = None) -> int:
        """Takes a batch and returns the offset of its last row: ``offset``, or ``rows`` more than the one before.

        With the offset of the refused batch it takes that batch's place. Raises InvalidArgumentError.
        """
        if self.refusal is not None and offset == self.refusal.entry.offset:
            old = self.refusal.entry
            self._replace_refused(Entry(old.after, kind, [Piece(offset, cut.size, cut.content)], offset))
            return offset
        end = self.taken + cut.rows if offset is None else offset
        self._check_grows(end)
        self._unsent.append(Entry(self.taken, kind, [Piece(end, cut.size, cut.content)], end, cut.mergeable))
        self.taken = end
        self.bytes_in_flight += cut.size
        if self.bytes_in_flight * 2 >= self.limit and not self._flush_at:
            self.ask_flush()
        return end

    def skip(self, offset: int | None) -> int:
        """Gives up the refused batch and what waits behind it up to ``offset``; without one, moves the channel on to ``offset``.

        Raises InvalidArgumentError for an offset that is not the end of a batch here, or not beyond what was taken.
        """
        if self.refusal is None:
            if offset is None:
                raise InvalidArgumentError("no batch is refused", fix="Name the offset to go on from.")
            self._check_grows(offset)
            self._unsent.append(Entry(self.taken, None, [], offset))
            self.taken = offset
            return offset
        first = self.refusal.entry
        end = first.offset if offset is None else offset
        if end <= self.taken and not any(entry.offset == end for entry in self._unsent):
            raise InvalidArgumentError(
                f"offset {end} is not the end of a batch that waits",
                fix=f"Skip to {first.offset}, the end of the refused batch, or to the end of one behind it.",
            )
        _check_range(end)
        while self._unsent and self._unsent[0].offset <= end:
            self.bytes_in_flight -= self._unsent.popleft().size
        self._unsent.appendleft(Entry(first.after, None, [], end))
        self.refusal = None
        self.taken = max(self.taken, end)
        return end

    def ask_flush(self) -> None:
        """Asks for a checkpoint behind everything taken so far, again after every break, until it is queryable."""
        if self.taken > max(self._flush_at, self.acks.queryable):
            self._flush_at = self.taken
            self._flush_sent = False

    def ask_close(self) -> None:
        """Closes the stream behind everything taken so far."""
        self._closing = True

    # --- what the stream does ---

    def next_message(self) -> Entry | Ask | Pause | None:
        """What to send next on the open stream; None when there is nothing or the channel stands still."""
        if not self.is_open or self.refusal is not None:
            return None
        if self._pause:
            pause, self._pause = Pause(self._pause), 0.0
            return pause
        if self._flush_at and not self._flush_sent and self._explained >= self._flush_at:
            self._flush_sent = True
            return Ask.FLUSH
        if self._unsent and self._may_send(self._unsent[0]):
            entry = self._merged()
            self._sent.append(entry)
            self._explained = entry.offset
            return entry
        if self._closing:
            self._closing = False
            return Ask.CLOSE
        return None

    @property
    def awaits_answer(self) -> bool:
        """Whether rows were sent that no writer has acknowledged in any way."""
        return self.is_open and self.refusal is None and self._explained > self.acks.received

    def opened(self, incarnation: int, committed: int, allowed_bytes: int, restore: str = "") -> None:
        """The stream is open: what is committed is dropped, the rest will be sent (again).

        ``restore`` names the table's newest restore: a producer that was cut off while it happened learns of it here.
        Raises UnexplainedAnswerError, or TableRestoredError when rows that left memory are no longer committed (rule CH8).
        """
        _explain(not self.is_open, "an open that was answered before")
        if self.incarnation == 0:
            _explain(incarnation >= 1, f"incarnation {incarnation}")
            self.incarnation = incarnation
            self.taken = self._forgotten = committed
        else:
            # A reconnect never raises the incarnation (rule CH4), and a lower one would be another history of the channel.
            _explain(incarnation == self.incarnation, f"incarnation {incarnation} to a reconnect of {self.incarnation}")
            self._restored = self._restored or restore != self._restore
            self._check_committed(committed)
            while self._unsent and self._unsent[0].offset <= committed:
                self.bytes_in_flight -= self._unsent.popleft().size
            self._forgotten = committed
        _check_range(committed)
        if allowed_bytes:
            self.limit = min(self.limit, allowed_bytes)
        self.acks = Acks(committed, committed, committed)
        self._explained = committed
        self._settle_flush()
        self._restored, self._restore = False, restore
        self._void.clear()
        self.is_open = True

    def acked(self, acks: Acks) -> None:
        """Raises UnexplainedAnswerError when it fell, is out of order, or goes beyond what this stream has seen."""
        before = self.acks
        _explain(self.is_open, f"{acks} before it was open")
        _explain(acks.queryable <= acks.durable <= acks.received, f"{acks}, whose levels are out of order")
        _explain(acks.received <= self._explained, f"{acks}, though only rows up to {self._explained} were sent")
        fell = any(new < old for new, old in zip(acks, before, strict=True))
        _explain(not fell, f"{acks} after {before}")
        self.acks = acks
        self._one_by_one = self._one_by_one and acks.received == before.received
        while self._sent and self._sent[0].offset <= acks.queryable:
            entry = self._sent.popleft()
            self.bytes_in_flight -= entry.size
            self._forgotten = entry.offset
        self._settle_flush()

    def refused(self, offset: int, accepted: int, error: wire.Error, rows: bytes = b"") -> None:
        """A batch was not taken. Merged calls are cut apart and sent again one by one, so that only the bad one stands still.

        With ACTION_RETRY nothing is wrong with it: it is sent again after a pause, and what follows only once it was taken.
        Raises UnexplainedAnswerError.
        """
        _explain(self.is_open, "a refusal before it was open")
        if self._void and self._void[0] == offset:
            # Answers come in the order of the batches: this one was under way behind a refused one and has gone back since.
            self._void.popleft()
            return
        at_fault = next((entry for entry in self._sent if entry.offset == offset), None)
        what = f"a refusal ({error.message!r}) of the batch at {offset} behind {accepted}"
        if at_fault is None or error.code in _NEVER_OURS:
            raise _unexplained(what)
        _explain(at_fault.after == accepted and offset > self.acks.received, what)
        while (last := self._sent.pop()) is not at_fault:
            self._unsent.appendleft(last)
            self._void.appendleft(last.offset)
        self._unsent.appendleft(at_fault)
        self._explained = accepted
        if error.action == wire.ACTION_RETRY:
            self._pause, self._one_by_one = max(error.retry_after_ms / 1000, _SHORTEST_PAUSE), True
        elif len(at_fault.pieces) > 1:
            self._unsent.popleft()
            self._unsent.extendleft(reversed(list(_apart(at_fault))))
        else:
            self.refusal = Refusal(at_fault, error, rows)

    def broke(self, *, restored: bool = False) -> None:
        """The stream is over. ``restored``: it ended with CODE_TABLE_RESTORED, so the committed offset may fall once."""
        self.is_open = False
        self._restored = self._restored or restored
        self._unsent.extendleft(reversed(self._sent))
        self._sent.clear()
        self._flush_sent = False
        self._pause = 0.0
        self.acks = self.acks._replace(received=self.acks.durable)

    # --- inside ---

    def _may_send(self, entry: Entry) -> bool:
        """Large batches go one after the other; small ones wait while one is unanswered, and travel together then.

        So does a skip: it does not say what it follows, and behind a batch that gets refused it would give that one up too. So
        does every entry while the table takes no rows, lest all of them go out for one refusal.
        """
        alone = entry.mergeable or entry.kind is None or self._one_by_one
        return not alone or self._explained == self.acks.received

    def _merged(self) -> Entry:
        entry = self._unsent.popleft()
        if entry.mergeable:
            size = entry.size
            while self._unsent and (other := self._unsent[0]).mergeable and other.kind is entry.kind:
                size += other.size
                if size > MERGE_BYTES:
                    break
                entry.pieces.extend(other.pieces)
                entry.offset = other.offset
                self._unsent.popleft()
            entry.mergeable = False  # sent once: the cut stays
        return entry

    def _replace_refused(self, entry: Entry) -> None:
        self.bytes_in_flight += entry.size - self._unsent.popleft().size
        self._unsent.appendleft(entry)
        self.refusal = None

    def _check_grows(self, offset: int) -> None:
        if offset <= self.taken:
            raise InvalidArgumentError(
                f"offset {offset} is not beyond {self.taken}, the last one taken",
                fix="Offsets grow; after a restart go on behind committed_offset.",
            )
        _check_range(offset)

    def _check_committed(self, committed: int) -> None:
        """Whether the answer to a reconnect can be true."""
        if self._restored and committed < self._forgotten:
            raise TableRestoredError(
                f"the table was taken back to offset {committed} of this channel, behind rows that were queryable",
                fix="Open the channel again and send the rows behind its committed_offset once more.",
                committed_offset=committed,
            )
        what = f"the committed offset {committed}"
        least = self._forgotten if self._restored else self.acks.durable
        _explain(committed >= least, f"{what}, though rows up to {least} were acknowledged as durable")
        _explain(committed <= self._explained, f"{what}, though only rows up to {self._explained} can have been accepted")
        known = committed == self._forgotten or any(entry.offset == committed for entry in self._unsent)
        _explain(known, f"{what}, which is inside a batch")

    def _settle_flush(self) -> None:
        if self.acks.queryable >= self._flush_at:
            self._flush_at = 0


def _apart(entry: Entry) -> Iterator[Entry]:
    """Nothing of a refused entry was accepted, so its cut is free again; its pieces are never merged again."""
    after = entry.after
    for piece in entry.pieces:
        yield Entry(after, entry.kind, [piece], piece.offset)
        after = piece.offset


def _check_range(offset: int) -> None:
    if not 0 <= offset <= MAX_OFFSET:
        raise InvalidArgumentError(f"offset {offset} is out of range", fix="Offsets lie between 1 and 2**63 - 1.")


def _explain(possible: bool, what: str) -> None:
    if not possible:
        raise _unexplained(what)


def _unexplained(what: str) -> UnexplainedAnswerError:
    return UnexplainedAnswerError(
        f"the server answered {what}",
        fix="Rows that are not committed are kept out of the table; report this, and look whether two clusters share the table.",
    )
