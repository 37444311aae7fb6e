"""Keeps a channel connected: finds a writer and opens a stream, again after each break, until the channel is closed or fails."""

import asyncio
import contextlib

from headgate.acks import Level
from headgate.coordinators import Backoff, CallFailedError, Coordinators
from headgate.entries import EncodedRows
from headgate.errors import ClosedError, HeadgateError, InternalError, UnavailableError
from headgate.failures import Failure
from headgate.rows import RowFormat
from headgate.shared_channel import SharedChannel, closed_error
from headgate.stream import Stream
from headgate.system import System
from headgate.transport import Transport
from headgate_proto.api.v1 import errors_pb2 as wire

_GOODBYE_SECONDS = 1.0


class ChannelRunner:
    """Runs ``channel`` from ``open`` to ``close`` or ``stop``."""

    def __init__(self, channel: SharedChannel, coordinators: Coordinators, transport: Transport, system: System) -> None:
        self.channel = channel
        self._coordinators = coordinators
        self._transport = transport
        self._system = system
        self._task: asyncio.Task[None] | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the channel's task has ended."""
        return self._task is not None and self._task.done()

    async def open(self, tasks: asyncio.TaskGroup, timeout: float) -> None:
        """Opens the channel and waits for the answer. Raises the server's error; UnavailableError after ``timeout`` seconds."""
        self._task = tasks.create_task(self._run())
        try:
            await self.channel.wait(lambda: self.channel.state.incarnation > 0, timeout, 0)
        except BaseException:
            await self.stop()
            raise

    async def append_rows(self, row_format: RowFormat, encoded: EncodedRows, offset: int | None, timeout: float) -> int:
        """Buffers rows as soon as there is room. Raises NotCommittedError after ``timeout`` seconds without room."""
        channel = self.channel
        while (taken := channel.try_append_rows(row_format, encoded, offset)) is None:
            channel.check_accepts(offset)
            await channel.wait(lambda: channel.state.has_room(encoded.size, offset), timeout, channel.state.last_offset)
        return taken

    async def flush(self, level: Level, timeout: float) -> None:
        """Asks for a checkpoint and waits until all buffered rows have reached ``level``."""
        channel = self.channel
        channel.check_accepts()
        with channel.lock:
            channel.append_single_rows()
            channel.check_accepts()  # appending them may have ended the channel
            target = channel.state.last_offset
            if level != "received":
                channel.state.request_flush()
        channel.wake_sender()
        await channel.wait(lambda: channel.offset_at(level) >= target, timeout, target, level)

    async def close(self, level: Level | None, timeout: float) -> None:
        """As ``flush``, then ends the stream; with ``level`` None only ends it. Closing a closed channel does nothing."""
        channel = self.channel
        try:
            if level is not None and not isinstance(channel.failure, ClosedError):
                await self.flush(level, timeout)
                channel.is_closing = True
                with channel.lock:
                    channel.state.request_close()
                channel.wake_sender()
                # All rows have reached the level; waiting for the goodbye only lets the writer free the channel at once.
                with contextlib.suppress(HeadgateError):
                    await channel.wait(lambda: False, _GOODBYE_SECONDS, 0)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Ends the stream now. Rows that are not committed yet may or may not be committed later."""
        self.channel.fail(closed_error(self.channel.name))
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self) -> None:
        try:
            await self._stream_after_stream()
        except asyncio.CancelledError:
            self.channel.fail(closed_error(self.channel.name))
            raise
        except HeadgateError as error:
            self.channel.fail(error)
        except Exception as error:  # noqa: BLE001
            # Calls that wait for this channel must see any error.
            problem = InternalError(f"channel {self.channel.name!r} stopped: {error!r}", fix="This is a defect: report it.")
            problem.__cause__ = error
            self.channel.fail(problem)

    async def _stream_after_stream(self) -> None:
        channel, backoff = self.channel, Backoff(self._system)
        address, avoided, durable = "", "", 0
        while True:
            try:
                address = address or await self._choose_writer(avoided)
                ending = await Stream(channel, address, self._coordinators, self._transport, self._system.clock).run()
            except CallFailedError as error:
                ending = error.failure
            with channel.lock:
                channel.state.stream_ended(restored=ending.code == wire.CODE_TABLE_RESTORED)
            channel.last_ending = ending.error
            if ending.action not in (wire.ACTION_RETRY, wire.ACTION_RESUME):
                raise ending.error
            channel.notify_waiters()
            if channel.state.acks.durable > durable:
                durable = channel.state.acks.durable
                backoff.reset()
            avoided = address
            # The address that the error names; the same writer when only a checkpoint failed; otherwise any writer.
            address = ending.address or (address if ending.code == wire.CODE_REWOUND else "")
            await backoff.pause(ending.retry_after)

    async def _choose_writer(self, avoided: str) -> str:
        """A random writer other than ``avoided``: all clients would choose the same one if they took the least loaded."""
        writers = await self._coordinators.find_writers()
        if not writers:
            error = UnavailableError("no writer takes channels now", fix="Start a writer, or wait until one is ready.")
            raise CallFailedError(Failure(error, wire.ACTION_RETRY))
        others = [writer for writer in writers if writer != avoided] or writers
        return others[int(self._system.randomness.random() * len(others))]
