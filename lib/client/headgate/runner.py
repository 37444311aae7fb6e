"""Keeps a channel on a stream: finds a writer, and after a break does it again, until it is closed or has failed."""

import asyncio
import contextlib

from headgate.coordinators import Backoff, CallFailedError, Coordinators
from headgate.entries import Cut, Level
from headgate.errors import ClosedError, HeadgateError, InternalError, UnavailableError
from headgate.rows import RowFormat
from headgate.shared_channel import SharedChannel, closed
from headgate.stream import Stream
from headgate.system import System
from headgate.transport import Failure, Transport
from headgate_proto.api.v1 import errors_pb2 as wire

_GOODBYE_SECONDS = 1.0


class ChannelRunner:
    """One producer's hold on ``channel``, from ``open`` to ``close`` or ``stop``."""

    def __init__(self, channel: SharedChannel, coordinators: Coordinators, transport: Transport, system: System) -> None:
        self.channel = channel
        self._coordinators = coordinators
        self._transport = transport
        self._system = system
        self._task: asyncio.Task[None] | None = None

    @property
    def is_finished(self) -> bool:
        """Whether its task is over."""
        return self._task is not None and self._task.done()

    async def open(self, tasks: asyncio.TaskGroup, timeout: float) -> None:
        """Starts it and waits for the first answer. Raises what a server says; UnavailableError after ``timeout`` seconds."""
        self._task = tasks.create_task(self._run())
        try:
            await self.channel.wait(lambda: self.channel.state.incarnation > 0, timeout, 0)
        except BaseException:
            await self.stop()
            raise

    async def take(self, kind: RowFormat, cut: Cut, offset: int | None, timeout: float) -> int:
        """As ``try_take``, waiting for room. Raises NotCommittedError after ``timeout`` seconds without."""
        channel = self.channel
        while (taken := channel.try_take(kind, cut, offset)) is None:
            channel.check(offset)
            await channel.wait(lambda: channel.state.has_room(cut.size), timeout, channel.state.taken)
        return taken

    async def flush(self, level: Level, timeout: float) -> None:
        """Asks for a checkpoint and waits until all that was taken has reached ``level``."""
        channel = self.channel
        channel.check()
        with channel.lock:
            target = channel.state.taken
            if level != "received":
                channel.state.ask_flush()
        channel.wake()
        await channel.wait(lambda: channel.reached(level) >= target, timeout, target, level)

    async def close(self, level: Level | None, timeout: float) -> None:
        """As ``flush``, then ends the stream; with None it only ends it. A channel that is closed already stays so."""
        channel = self.channel
        try:
            if level is not None and not isinstance(channel.failure, ClosedError):
                await self.flush(level, timeout)
                channel.is_closing = True
                with channel.lock:
                    channel.state.ask_close()
                channel.wake()
                # Everything is as safe as asked for; the goodbye only spares the writer from noticing it later.
                with contextlib.suppress(HeadgateError):
                    await channel.wait(lambda: False, _GOODBYE_SECONDS, 0)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Ends the stream now. What is not committed may or may not be later."""
        self.channel.fail(closed(self.channel.name))
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self) -> None:
        try:
            await self._stream_after_stream()
        except asyncio.CancelledError:
            self.channel.fail(closed(self.channel.name))
            raise
        except HeadgateError as error:
            self.channel.fail(error)
        except Exception as error:  # noqa: BLE001
            # Whatever it is: who waits for this channel has to hear of it.
            problem = InternalError(f"channel {self.channel.name!r} stopped: {error!r}", fix="This is a defect; report it.")
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
                channel.state.broke(restored=ending.code == wire.CODE_TABLE_RESTORED)
            channel.trouble = ending.error
            if ending.action not in (wire.ACTION_RETRY, wire.ACTION_RESUME):
                raise ending.error
            channel.notify()
            if channel.state.acks.durable > durable:
                durable = channel.state.acks.durable
                backoff.reset()
            avoided = address
            # Where it says; the same writer when only a checkpoint failed; else any that the coordinators name.
            address = ending.address or (address if ending.code == wire.CODE_REWOUND else "")
            await backoff.pause(ending.retry_after)

    async def _choose_writer(self, avoided: str) -> str:
        """Any but the one that has just failed: at the same moment all clients see the same one as the least loaded."""
        writers = await self._coordinators.writers()
        if not writers:
            error = UnavailableError("no writer takes channels now", fix="Start one, or wait until one is ready.")
            raise CallFailedError(Failure(error, wire.ACTION_RETRY))
        others = [writer for writer in writers if writer != avoided] or writers
        return others[int(self._system.randomness.random() * len(others))]
