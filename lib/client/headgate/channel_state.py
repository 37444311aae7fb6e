"""What a channel has buffered, sent and seen acknowledged. Pure: no I/O, no clock, no threads.

Rows wait in entries, in order. One entry is one message. ``_unsent`` entries merge while they wait; the first send fixes their
boundaries (rule CH1). ``_sent`` entries stay until they are queryable, so that they can be sent again. The end of a stream moves
all of them back to ``_unsent``; the next ``stream_opened`` drops the committed ones. A refusal moves the refused entry and all
later ones back, where they wait until the caller corrects or skips the refused batch (rule CH2). Those before it are sent on.

Every answer is checked before it is applied. ``_stream_offset`` is the highest offset that the present stream can know: the
committed offset that it was opened with, then whatever was sent on it. Rows of an older stream are decided before ``opened`` is
answered (rule CH3), so an answer beyond that offset is a defect, and applying it would lose rows.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from headgate.acks import Acks
from headgate.answers import check_range, require, violation
from headgate.encoding import halved
from headgate.entries import Control, EncodedRows, Entry, Halve, Pause, Piece, Refusal, split
from headgate.errors import InvalidArgumentError, TableRestoredError
from headgate.rows import RowFormat
from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.limits import BATCH_PARTITIONS

_NEVER_OURS = (wire.CODE_OFFSET_GAP, wire.CODE_OFFSET_OVERLAP, wire.CODE_AFTER_FAILED_BATCH)
"""Codes that no server can answer: batches are sent in order, and always with the same boundaries."""
MERGE_BYTES = 512 * 1024
"""Small calls that wait together become one message of at most this size. A larger one would only block the event loop longer."""
_SHORTEST_PAUSE = 0.1
"""Least seconds between two sends of a batch that a writer refuses for now."""


@dataclass(slots=True)
class ChannelState:
    """One producer's view of its channel. ``limit`` bounds the bytes that are buffered and not yet queryable (rule CH7)."""

    limit: int
    incarnation: int = 0
    acks: Acks = field(default_factory=Acks)
    last_offset: int = 0
    bytes_in_flight: int = 0
    is_open: bool = False
    refusal: Refusal | None = None
    halve: Halve = halved
    _sent: deque[Entry] = field(default_factory=deque)
    _unsent: deque[Entry] = field(default_factory=deque)
    _stale_answers: deque[int] = field(default_factory=deque)
    _stream_offset: int = 0
    _released_offset: int = 0
    _restored: bool = False
    _restore: str = ""
    _flush_offset: int = 0
    _flush_sent: bool = False
    _closing: bool = False
    _pause: float = 0.0
    _one_by_one: bool = False
    _refused_before: bool = False  # an entry before it, after a break: that waits until the caller has decided on the later one

    # --- calls ---

    def has_room(self, size: int, offset: int | None = None) -> bool:
        """Whether rows of this size fit now. An empty buffer takes any batch, however small the limit. So does the place of the
        refused batch, at ``offset``: a full buffer empties no further before it is corrected.
        """
        replaces = self.refusal is not None and offset == self.refusal.entry.offset
        return replaces or not self.bytes_in_flight or self.bytes_in_flight + size <= self.limit

    def append_rows(self, row_format: RowFormat, rows: EncodedRows, offset: int | None = None, calls: Sequence[int] = ()) -> int:
        """Buffers rows and returns the offset of the last one: ``offset``, or the count of rows so far. ``calls``: as of a Piece.

        With the offset of the refused batch they replace that batch. Raises InvalidArgumentError.
        """
        if self.refusal is not None and offset == self.refusal.entry.offset:
            old = self.refusal.entry
            self._unsent[self._unsent.index(old)] = Entry(old.after, row_format, [Piece(offset, rows.size, rows.content)], offset)
            self.bytes_in_flight += rows.size - old.size
            self._resolve()
            return offset
        end = self.last_offset + rows.rows if offset is None else offset
        self._check_grows(end)
        pieces = [Piece(end, rows.size, rows.content, calls)]
        self._unsent.append(Entry(self.last_offset, row_format, pieces, end, rows.mergeable, rows.rows, rows.partitions))
        self.last_offset = end
        self.bytes_in_flight += rows.size
        if self.bytes_in_flight * 2 >= self.limit and not self._flush_offset:
            self.request_flush()
        return end

    def skip(self, offset: int | None) -> int:
        """Discards the refused batch and, with ``offset``, later ones up to there; without a refused one, advances to ``offset``.

        Returns the offset reached. Raises InvalidArgumentError for an offset inside a batch or not above the last one.
        """
        if self.refusal is None:
            if offset is None:
                raise InvalidArgumentError("no batch is refused", fix="Give the offset to continue from.")
            self._check_grows(offset)
            self._unsent.append(Entry(self.last_offset, None, [], offset))
            self.last_offset = offset
            return offset
        first = self.refusal.entry
        end = first.offset if offset is None else offset
        if end < first.offset or (end <= self.last_offset and not any(entry.offset == end for entry in self._unsent)):
            raise InvalidArgumentError(
                f"offset {end} is not the end of a buffered batch",
                fix=f"Skip to {first.offset}, the end of the refused batch, or to the end of a later one.",
            )
        check_range(end)
        kept = [entry for entry in self._unsent if not first.offset <= entry.offset <= end]
        self.bytes_in_flight -= sum(entry.size for entry in self._unsent) - sum(entry.size for entry in kept)
        kept.insert(self._unsent.index(first), Entry(first.after, None, [], end))
        self._unsent = deque(kept)
        self._resolve()
        self.last_offset = max(self.last_offset, end)
        return end

    def request_flush(self) -> None:
        """Asks for a checkpoint of all rows buffered so far, again after every break, until they are queryable."""
        if self.last_offset > max(self._flush_offset, self.acks.queryable):
            self._flush_offset = self.last_offset
            self._flush_sent = False

    def request_close(self) -> None:
        """Closes the stream after all rows buffered so far."""
        self._closing = True

    # --- events of the stream ---

    def next_message(self) -> Entry | Control | Pause | None:
        """What to send next on the open stream; None when there is nothing to send or the channel is stopped."""
        refusal = self.refusal
        if not self.is_open or (refusal is not None and (self._refused_before or self._unsent[0] is refusal.entry)):
            return None
        if self._pause:
            pause, self._pause = Pause(self._pause), 0.0
            return pause
        if self._flush_offset and not self._flush_sent and self._stream_offset >= self._flush_offset:
            self._flush_sent = True
            return Control.FLUSH
        if self._unsent and self._may_send(self._unsent[0]):
            entry = self._merged()
            self._sent.append(entry)
            self._stream_offset = entry.offset
            return entry
        if self._closing and refusal is None:
            self._closing = False
            return Control.CLOSE
        return None

    @property
    def awaits_answer(self) -> bool:
        """Whether rows were sent that no answer has acknowledged yet."""
        return self.is_open and self._stream_offset > self.acks.received

    def stream_opened(self, incarnation: int, committed: int, allowed_bytes: int, restore: str = "") -> None:
        """Drops committed rows; all others will be sent (again).

        ``restore`` names the table's newest restore, which a disconnected producer learns of only here. Raises
        ProtocolViolationError, or TableRestoredError when rows that left memory are no longer committed (rule CH8).
        """
        require(not self.is_open, "an open that was answered before")
        if self.incarnation == 0:
            require(incarnation >= 1, f"incarnation {incarnation}")
            self.incarnation = incarnation
            self.last_offset = self._released_offset = committed
        else:
            # A reconnect keeps the incarnation (rule CH4); a lower one would mean another history of the channel.
            require(incarnation == self.incarnation, f"incarnation {incarnation} to a reconnect of {self.incarnation}")
            self._restored = self._restored or restore != self._restore
            self._check_committed(committed)
            while self._unsent and self._unsent[0].offset <= committed:
                self.bytes_in_flight -= self._unsent.popleft().size
            self._released_offset = committed
        check_range(committed)
        if allowed_bytes:
            self.limit = min(self.limit, allowed_bytes)
        self.acks = Acks(committed, committed, committed)
        self._stream_offset = committed
        self._settle_flush()
        self._restored, self._restore = False, restore
        self._stale_answers.clear()
        self.is_open = True

    def rows_acked(self, acks: Acks) -> None:
        """Drops rows that are queryable. Raises ProtocolViolationError for acks that fall, or that this stream cannot know."""
        before = self.acks
        require(self.is_open, f"{acks} before it was open")
        require(acks.queryable <= acks.durable <= acks.received, f"{acks}, whose levels are out of order")
        require(acks.received <= self._stream_offset, f"{acks}, though only rows up to {self._stream_offset} were sent")
        fell = any(new < old for new, old in zip(acks, before, strict=True))
        require(not fell, f"{acks} after {before}")
        self.acks = acks
        self._one_by_one = self._one_by_one and acks.received == before.received
        while self._sent and self._sent[0].offset <= acks.queryable:
            entry = self._sent.popleft()
            self.bytes_in_flight -= entry.size
            self._released_offset = entry.offset
        self._settle_flush()

    def batch_refused(self, offset: int, accepted: int, error: wire.Error, rows: bytes = b"") -> None:
        """Stops the channel at the refused batch; merged calls are split and sent again first, so that only the bad one stops it.

        With ACTION_RETRY the batch itself is right: it is sent again after a pause, and later ones wait for it. Raises
        ProtocolViolationError.
        """
        require(self.is_open, "a refusal before it was open")
        if self._stale_answers and self._stale_answers[0] == offset:
            # Answers come in the order of the batches: this batch followed a refused one and is back in the queue.
            self._stale_answers.popleft()
            return
        at_fault = next((entry for entry in self._sent if entry.offset == offset), None)
        what = f"a refusal ({error.message!r}) of the batch at {offset} behind {accepted}"
        if at_fault is None or error.code in _NEVER_OURS:
            raise violation(what)
        require(at_fault.after == accepted and offset > self.acks.received, what)
        while (last := self._sent.pop()) is not at_fault:
            self._unsent.appendleft(last)
            self._stale_answers.appendleft(last.offset)
        self._unsent.appendleft(at_fault)
        self._flush_sent = self._flush_sent and accepted >= self._flush_offset  # the checkpoint behind it has none of its rows
        self._stream_offset = accepted
        if error.action == wire.ACTION_RETRY:
            self._pause, self._one_by_one = max(error.retry_after_ms / 1000, _SHORTEST_PAUSE), True
        elif at_fault.has_calls:
            self._unsent.popleft()
            self._unsent.extendleft(reversed(list(split(at_fault, self.halve))))
        elif self.refusal is not None:
            self._refused_before = True
        else:
            self.refusal = Refusal(at_fault, error, rows)

    def stream_ended(self, *, restored: bool = False) -> None:
        """Queues all sent rows again. ``restored``: it ended with CODE_TABLE_RESTORED, so the committed offset may fall once."""
        self.is_open = False
        self._restored = self._restored or restored
        self._unsent.extendleft(reversed(self._sent))
        self._sent.clear()
        self._flush_sent = False
        self._pause = 0.0
        self._refused_before = False
        self.acks = self.acks._replace(received=self.acks.durable)

    # --- inside ---

    def _may_send(self, entry: Entry) -> bool:
        """Large batches follow each other at once; small ones wait while one is unanswered, and are merged then.

        A skip waits too: an older writer does not look where it begins, and would discard a batch before it that is refused.
        While the table takes no rows every entry waits, or all of them would be sent for one refusal.
        """
        alone = entry.mergeable or entry.row_format is None or self._one_by_one
        return not alone or self._stream_offset == self.acks.received

    def _merged(self) -> Entry:
        entry = self._unsent.popleft()
        if entry.mergeable and (row_format := entry.row_format) is not None:
            size = entry.size
            while self._unsent and (other := self._unsent[0]).mergeable and other.row_format is row_format:
                size += other.size
                entry.rows += other.rows
                entry.partitions += other.partitions
                if size > MERGE_BYTES or entry.rows > row_format.most_rows or entry.partitions > BATCH_PARTITIONS:
                    break
                entry.pieces.extend(other.pieces)
                entry.offset = other.offset
                self._unsent.popleft()
            entry.mergeable = False  # sent once: the boundaries stay
        return entry

    def _resolve(self) -> None:
        self.refusal = None
        self._refused_before = False

    def _check_grows(self, offset: int) -> None:
        if offset <= self.last_offset:
            raise InvalidArgumentError(
                f"offset {offset} is not above {self.last_offset}, the channel's last offset",
                fix="Give growing offsets; after a restart start above committed_offset.",
            )
        check_range(offset)

    def _check_committed(self, committed: int) -> None:
        """Raises what ``stream_opened`` raises when the answer to a reconnect is not possible."""
        if self._restored and committed < self._released_offset:
            raise TableRestoredError(
                f"a restore took this channel back to offset {committed}, undoing rows that were queryable",
                fix="Open the channel again and send the rows that follow its committed_offset.",
                committed_offset=committed,
            )
        what = f"the committed offset {committed}"
        least = self._released_offset if self._restored else self.acks.durable
        require(committed >= least, f"{what}, though rows up to {least} were acknowledged as durable")
        require(committed <= self._stream_offset, f"{what}, though only rows up to {self._stream_offset} can have been accepted")
        known = committed == self._released_offset or any(entry.offset == committed for entry in self._unsent)
        require(known, f"{what}, which is inside a batch")

    def _settle_flush(self) -> None:
        if self.acks.queryable >= self._flush_offset:
            self._flush_offset = 0
