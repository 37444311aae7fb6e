"""A channel's state between the callers, who may be any threads, and the event loop that sends it.

What happens under ``lock`` never waits: calls put rows in, the loop takes them out and adopts answers.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from headgate.channel_state import ChannelState
from headgate.encoding import Encoder, decoded
from headgate.entries import Ask, Cut, Entry, Level, Pause, Refusal
from headgate.errors import (
    BatchRefusedError,
    ClosedError,
    HeadgateError,
    NotCommittedError,
    SliceSetAsideError,
    UnavailableError,
    code_name,
)
from headgate.rows import RowFormat
from headgate_proto.api.v1 import errors_pb2 as wire

_KEPT = "What was taken is kept and still being sent: wait again, or end the program and go on behind committed_offset."


class SharedChannel:
    """Made on the event loop. ``trouble`` is why the last stream ended, ``held_back`` why the table takes no rows just now."""

    def __init__(self, table: str, name: str, encoder: Encoder, limit: int) -> None:
        self.table = table
        self.name = name
        self.encoder = encoder
        self.state = ChannelState(limit)
        self.lock = threading.Lock()
        self.failure: HeadgateError | None = None
        self.trouble: HeadgateError | None = None
        self.held_back: HeadgateError | None = None
        self.is_closing = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()
        self._is_asleep = False

    # --- any thread ---

    def try_take(self, kind: RowFormat, cut: Cut, offset: int | None) -> int | None:
        """Takes rows and returns their offset, or None when there is no room. Raises InvalidArgumentError."""
        with self.lock:
            if not self.state.has_room(cut.size):
                return None
            taken = self.state.take(kind, cut, offset)
        self.wake()
        return taken

    def skip(self, offset: int | None) -> None:
        """Gives up the refused batch, or moves on. Raises InvalidArgumentError, and what ended the channel."""
        if self.failure is not None:
            raise self.failure
        with self.lock:
            self.state.skip(offset)
        self.wake()

    def check(self, offset: int | None = None) -> None:
        """Raises what keeps the channel from taking rows; not for rows that correct the refused batch."""
        if self.failure is not None:
            raise self.failure
        refusal = self.state.refusal
        if refusal is not None and offset != refusal.entry.offset:
            raise _refused(refusal)

    def wake(self) -> None:
        """There may be something to send."""
        if self._is_asleep:
            self._is_asleep = False
            if threading.get_ident() == self._thread:
                self._wake.set()
            else:
                self._loop.call_soon_threadsafe(self._wake.set)

    # --- the event loop ---

    async def next_message(self) -> Entry | Ask | Pause:
        """What to send next, as soon as there is something."""
        while True:
            with self.lock:
                message = self.state.next_message()
                if message is not None:
                    return message
                self._wake.clear()
                self._is_asleep = True
            await self._wake.wait()

    def notify(self) -> None:
        """Something has changed for those who wait, and perhaps for what can be sent."""
        self._changed.set()
        self._changed = asyncio.Event()
        self.wake()

    def fail(self, error: HeadgateError) -> None:
        """The channel is finished: every call raises ``error`` from now on."""
        self.failure = self.failure or error
        self.notify()

    async def wait(self, done: Callable[[], bool], timeout: float, offset: int, level: Level | None = None) -> None:
        """Until ``done``, which has to do with rows up to ``offset``.

        Raises what makes it impossible; UnavailableError or NotCommittedError after ``timeout`` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                while not done():
                    self._check_progress(offset)
                    await self._changed.wait()
        except TimeoutError:
            raise self._not_in_time(timeout, offset, level) from self.held_back or self.trouble

    def reached(self, level: Level) -> int:
        """The offset up to which rows have reached it."""
        offset: int = getattr(self.state.acks, level)
        return offset

    def _check_progress(self, offset: int) -> None:
        if self.failure is not None:
            raise self.failure
        refusal = self.state.refusal
        if refusal is not None and offset > refusal.entry.after:
            raise _refused(refusal)

    def _not_in_time(self, timeout: float, offset: int, level: Level | None) -> HeadgateError:
        why = self.held_back or self.trouble
        trouble = f" ({why.message})" if why else ""
        if self.state.incarnation == 0:
            return UnavailableError(
                f"channel {self.name!r} could not be opened within {timeout:g} s{trouble}",
                fix="Look whether writers run and reach the coordinator, then try again.",
            )
        acks = self.state.acks
        what = f"rows up to offset {offset} are not {level}" if level else f"no room for more rows behind offset {offset}"
        return NotCommittedError(
            f"channel {self.name!r}: {what} after {timeout:g} s, durable are those up to {acks.durable}{trouble}",
            fix=f"{self.held_back.fix} {_KEPT}" if self.held_back else _KEPT,
            offset=offset,
            level=level,
            acks=acks,
        )


def closed(name: str) -> ClosedError:
    """What calls to a closed channel raise."""
    return ClosedError(f"channel {name!r} is closed", fix="Open it again.")


def _refused(refusal: Refusal) -> BatchRefusedError:
    entry, error, at_fault = refusal
    rows = decoded(entry.pieces[0].content, entry.kind.schema)
    said: dict[str, Any] = {
        "fix": f"{error.fix} Then send the corrected rows with offset={entry.offset}, or skip().",
        "reason": code_name(error),
        "after": entry.after,
        "offset": entry.offset,
        "rows": rows,
    }
    message = f"the batch behind offset {entry.after} up to {entry.offset} was refused: {error.message}"
    if error.code == wire.CODE_SLICE_SET_ASIDE and 8 * len(at_fault) >= rows.num_rows:
        held = cast(pa.BooleanArray, pa.Array.from_buffers(pa.bool_(), rows.num_rows, [None, pa.py_buffer(at_fault)]))
        return SliceSetAsideError(message, held=rows.filter(held), others=rows.filter(pc.invert(held)), **said)
    return BatchRefusedError(message, **said)
