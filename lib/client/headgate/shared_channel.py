"""A channel's state, shared by calling threads, which append rows, and the event loop, which sends them and applies answers.

Nothing waits under ``lock``.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeAlias, TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc

from headgate.acks import Level
from headgate.arguments import checked_level
from headgate.channel_state import ChannelState
from headgate.encoding import Encoder, decoded
from headgate.entries import Control, EncodedRows, Entry, Pause, Refusal
from headgate.errors import (
    BatchRefusedError,
    ClosedError,
    HeadgateError,
    InsideCallError,
    InternalError,
    NotCommittedError,
    SliceSetAsideError,
    UnavailableError,
    code_name,
)
from headgate.owned_lock import OwnedLock
from headgate.row_reader import RowValues
from headgate.rows import RowFormat
from headgate.single_rows import MOST_BYTES, MOST_ROWS, Pace, SingleRows
from headgate_proto.api.v1 import errors_pb2 as wire

_Arrow: TypeAlias = pa.RecordBatch | pa.Table
_ARROW = frozenset([pa.RecordBatch, pa.Table])
"""By class: of a Python row it is asked in a tenth of the time that ``isinstance`` takes."""

_KEPT = "Buffered rows are kept and still being sent: wait again, or end the program and start above committed_offset."
_REOPEN = "Open the channel again and send the rows that follow its committed_offset."


class SharedChannel:
    """Made on the event loop. ``uuid``: of the table that is meant, so that no later one of its name gets the rows (rule D8).
    ``last_ending``: why the last stream ended; ``refused_for_now``: why rows are refused for now. ``columns``: the table's schema
    message when the channel was first opened. ``columns_changed``: the table has other columns since the stream was opened, or
    just before. ``pace``: of the connection.
    """

    def __init__(self, table: str, name: str, encoder: Encoder, limit: int, uuid: str = "", pace: Pace | None = None) -> None:
        self.table = table
        self.uuid = uuid
        self.name = name
        self.encoder = encoder
        self.state = ChannelState(limit)
        self.lock = OwnedLock()
        self.single_rows = SingleRows()
        self._pace = pace or Pace()
        self.failure: HeadgateError | None = None
        self.last_ending: HeadgateError | None = None
        self.refused_for_now: HeadgateError | None = None
        self.columns = b""
        self.columns_changed = False
        self.is_closing = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()
        self._is_asleep = False
        self._is_timed = False

    # --- any thread ---

    def try_append_rows(self, row_format: RowFormat, encoded: EncodedRows, offset: int | None) -> int | None:
        """Buffers rows and returns the offset of the last one, or None when there is no room.

        Raises InvalidArgumentError, and InternalError when single rows before these were lost: no other row gets their offsets.
        """
        with self.lock:
            self.append_single_rows()
            self._check_not_ended()
            if not self.state.has_room(encoded.size, offset):
                return None
            taken = self.state.append_rows(row_format, encoded, offset)
        self.wake_sender()
        return taken

    def try_row(self, row_format: RowFormat, data: object, offset: int | None) -> int | None:
        """Buffers a row and returns its offset; None for what is not one row that is certain to fit, and when it cannot be taken
        now, or with this offset: ``append_rows`` says why.

        It is sent together with others: when there are many, or some milliseconds later, without another call.
        """
        row: RowValues | pa.RecordBatch | None
        row = row_format.only_row(cast("_Arrow", data)) if type(data) in _ARROW else row_format.reader.read(data)
        if row is None:
            return None
        with self.lock:
            waiting, state = self.single_rows, self.state
            if waiting.row_format is not row_format or waiting.form is not type(row):
                self.append_single_rows()
                waiting.row_format, waiting.form = row_format, type(row)
            if self.failure is not None or state.refusal is not None:
                return None
            taken = waiting.append(row, offset, state)
            if not self._is_timed:
                self._is_timed = True
                self._on_loop(self._start_timer)
            if len(waiting.offsets) < MOST_ROWS and waiting.size < MOST_BYTES:
                return taken
            self.append_single_rows()
        self.wake_sender()
        return taken

    def append_single_rows(self) -> None:
        """Under ``lock``: makes entries of the single rows. They were looked at: an error is a defect, which ends the channel.
        An interrupt by Ctrl-C leaves them waiting, or ends the channel where some have become entries.
        """
        waited = self.single_rows.waiting()
        if waited is None:
            return
        row_format, offsets = waited.row_format, waited.offsets
        try:
            batch = waited.batch()
            if batch.num_rows != len(offsets):
                raise ValueError(f"{len(offsets)} offsets of {batch.num_rows} rows")
            messages = [*self.encoder.encode([batch], row_format.most_rows, row_format.partition_by)]
            self.single_rows.clear()
            for encoded in messages:
                calls, offsets = offsets[: encoded.rows], offsets[encoded.rows :]
                self.state.append_rows(row_format, encoded, calls[-1], calls)
        except BaseException as error:
            is_defect = isinstance(error, Exception) and not isinstance(error, InsideCallError)
            if is_defect or not self.single_rows.offsets:
                self._lose_single_rows(error, "This is a defect: report it." if is_defect else _REOPEN)
            if not is_defect:
                raise

    def _lose_single_rows(self, why: BaseException, fix: str) -> None:
        self.single_rows.clear()
        problem = InternalError(f"channel {self.name!r}: single rows were lost: {why!r}", fix=fix)
        problem.__cause__ = why
        self.failure = self.failure or problem
        self._on_loop(self.notify_waiters)

    @property
    def offset(self) -> int:
        """The offset of the last row that was buffered. Not under ``lock``."""
        with self.lock:  # while single rows become entries, neither place has them
            return self.single_rows.offset(self.state.last_offset)

    def skip(self, offset: int | None) -> None:
        """As ``ChannelState.skip``. Raises InvalidArgumentError, or the error that ended the channel."""
        with self.lock:
            self.append_single_rows()
            self._check_not_ended()
            self.state.skip(offset)
        self.wake_sender()

    def check_accepts(self, offset: int | None = None) -> None:
        """Raises the error that stops or ended the channel, unless ``offset`` is that of the refused batch, which it corrects."""
        self._check_not_ended()
        refusal = self.state.refusal
        if refusal is not None and offset != refusal.entry.offset:
            raise _refused_error(refusal)

    def _check_not_ended(self) -> None:
        if self.failure is not None:
            raise self.failure

    def wake_sender(self) -> None:
        """Wakes the sending task: there may be something to send."""
        if self._is_asleep:
            self._is_asleep = False
            self._on_loop(self._wake.set)

    def _on_loop(self, call: Callable[[], None]) -> None:
        if threading.get_ident() == self._thread:
            call()
        else:
            self._loop.call_soon_threadsafe(call)

    # --- the event loop ---

    def _start_timer(self) -> None:
        self._loop.call_later(self._pace.delay(self._loop.time()), self.send_single_rows)

    def send_single_rows(self) -> None:
        with self.lock:
            self._is_timed = False
            self.append_single_rows()
        self.wake_sender()

    async def next_message(self) -> Entry | Control | Pause:
        """Waits for the next thing to send."""
        while True:
            with self.lock:
                message = self.state.next_message()
                if message is not None:
                    return message
                self._wake.clear()
                self._is_asleep = True
            await self._wake.wait()

    def notify_waiters(self) -> None:
        """Wakes all waiting calls, and the sending task."""
        self._changed.set()
        self._changed = asyncio.Event()
        self.wake_sender()

    def fail(self, error: HeadgateError) -> None:
        """Ends the channel: every later call raises ``error``, or the first error if there was one before."""
        self.failure = self.failure or error
        self.notify_waiters()

    async def wait(self, done: Callable[[], bool], timeout: float, offset: int, level: Level | None = None) -> None:
        """Waits until ``done``, a condition on rows up to ``offset``.

        Raises the error that makes it impossible; UnavailableError or NotCommittedError after ``timeout`` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                while not done():
                    self._check_progress(offset)
                    await self._changed.wait()
        except TimeoutError:
            raise self._not_in_time(timeout, offset, level) from self.refused_for_now or self.last_ending

    async def wait_for_turn(self, order: asyncio.Lock, timeout: float) -> None:
        """Acquires ``order``, which a call has while it waits for room. Raises as a wait for room, after ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await order.acquire()
        except TimeoutError:
            raise self._not_in_time(timeout, self.offset, None) from self.refused_for_now or self.last_ending

    def offset_at(self, level: Level) -> int:
        """The offset up to which rows have reached ``level``. Raises InvalidArgumentError for none."""
        offset: int = getattr(self.state.acks, checked_level(level))
        return offset

    def _check_progress(self, offset: int) -> None:
        self._check_not_ended()
        refusal = self.state.refusal
        if refusal is not None and offset > refusal.entry.after:
            raise _refused_error(refusal)

    def _not_in_time(self, timeout: float, offset: int, level: Level | None) -> HeadgateError:
        why = self.refused_for_now or self.last_ending
        trouble = f" ({why.message})" if why else ""
        if self.state.incarnation == 0:
            return UnavailableError(
                f"channel {self.name!r} could not be opened within {timeout:g} s{trouble}",
                fix="Check that writers run and reach the coordinator, then try again.",
            )
        acks = self.state.acks
        what = f"rows up to offset {offset} are not {level}" if level else f"no room for more rows after offset {offset}"
        return NotCommittedError(
            f"channel {self.name!r}: {what} after {timeout:g} s; rows up to {acks.durable} are durable{trouble}",
            fix=f"{self.refused_for_now.fix} {_KEPT}" if self.refused_for_now else _KEPT,
            offset=offset,
            level=level,
            acks=acks,
        )


class _Described(TypedDict):
    """The fields of every BatchRefusedError."""

    fix: str
    reason: str
    after: int
    offset: int
    rows: pa.RecordBatch


def closed_error(name: str) -> ClosedError:
    """The error of calls to a closed channel."""
    return ClosedError(f"channel {name!r} is closed", fix="Open it again.")


def _refused_error(refusal: Refusal) -> BatchRefusedError:
    entry, error, at_fault = refusal
    if entry.row_format is None:
        raise ValueError("a skip is never refused")
    rows = decoded(entry.pieces[0].content, entry.row_format.schema)
    described: _Described = {
        "fix": f"{error.fix} Then send the corrected rows with offset={entry.offset}, or skip().",
        "reason": code_name(error),
        "after": entry.after,
        "offset": entry.offset,
        "rows": rows,
    }
    message = f"the batch from offset {entry.after} to {entry.offset} was refused: {error.message}"
    if error.code == wire.CODE_SLICE_SET_ASIDE and 8 * len(at_fault) >= rows.num_rows:
        blamed = cast(pa.BooleanArray, pa.Array.from_buffers(pa.bool_(), rows.num_rows, [None, pa.py_buffer(at_fault)]))
        return SliceSetAsideError(message, set_aside=rows.filter(blamed), others=rows.filter(pc.invert(blamed)), **described)
    return BatchRefusedError(message, **described)
