"""A stream of a writer or compactor: its outbox, its silence, its end.

The stream is the registration: a process is registered from its hello to the end of the stream (rule RO8).
"""

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import grpc
import grpc.aio

from headgate_runtime.errors import RpcError, UnknownMessageError
from headgate_runtime.part_reader import PartReader, Request
from headgate_runtime.world import Clock

LOOKS = 5
"""Looks at a silent peer before it is lost. The timeout is counted in looks, so that a pause of this process does not lose peers
that were not silent."""
_MESSAGE_BYTES: Final = 64 << 20
"""Of one message: a checkpoint's report has some 300 bytes for each file, so this is a report of 200,000."""

_Sent = TypeVar("_Sent")


class Outbox(Generic[_Sent]):
    """Messages that wait to be sent to a peer, at most ``limit``; more end the stream with ``complaint``."""

    def __init__(self, limit: int, complaint: str) -> None:
        self.ended: str | None = None
        self._limit = limit
        self._complaint = complaint
        self._cut = asyncio.Event()
        self._queue: asyncio.Queue[_Sent | None] = asyncio.Queue()

    def send(self, message: _Sent) -> None:
        """Queues a message behind the others (rule RO9). Never waits: the stream of a peer that does not read is cut."""
        if self.ended is not None:
            return
        if self._queue.qsize() >= self._limit:
            self.end_stream(self._complaint)
        else:
            self._queue.put_nowait(message)

    def end_stream(self, why: str, *, flush: bool = False) -> None:
        """Cuts the stream; with ``flush`` after the queued messages. The registration ends with the stream's coroutine."""
        if self.ended is None:
            self.ended = why
            self._queue.put_nowait(None)
            if not flush:
                self._cut.set()

    async def until_cut(self) -> None:
        """Returns when the stream has to end at once, also if messages are queued or being sent."""
        await self._cut.wait()

    async def next_message(self) -> _Sent | None:
        """Waits for the next message and returns it; None when all are sent and the stream has to end."""
        return await self._queue.get()


def requests_of(context: grpc.aio.ServicerContext[Request, _Sent], decode: Callable[[bytes], Request]) -> PartReader[Request]:
    """What a peer sends, those in parts too. ``decode``: reads a request, or raises RpcError."""
    return PartReader(context, decode, None, "", most=_MESSAGE_BYTES)


async def first_of(requests: PartReader[Request], timeout_s: float) -> Request | None:
    """The first message of a stream; None when its peer sends none in ``timeout_s`` seconds."""
    try:
        async with asyncio.timeout(timeout_s):
            return await requests.read()
    except TimeoutError:
        return None


class _StreamEndedError(Exception):
    """Ends the tasks of a stream. Its text says why."""


class Stream(Generic[Request, _Sent]):
    """One stream of a peer. ``take`` gets its messages, and ends the stream by raising UnknownMessageError.

    ``timeout_s``: seconds of silence after which the peer is lost. ``refusal``: of a message that ended the stream since it could
    not be read, or had an integer out of range.
    """

    def __init__(self, outbox: Outbox[_Sent], take: Callable[[Request], None], clock: Clock, timeout_s: float) -> None:
        self._outbox = outbox
        self._take = take
        self._clock = clock
        self._timeout_s = timeout_s
        self.refusal: RpcError | None = None

    async def serve(
        self, requests: PartReader[Request], context: grpc.aio.ServicerContext[Request, _Sent], welcome: _Sent
    ) -> str:
        """Serves the stream until it ends, and returns why. Sends ``welcome`` first."""
        why = ""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(requests))
                tasks.create_task(self._watch(requests))
                tasks.create_task(self._until_cut())
                tasks.create_task(self._write(context, welcome))
        except* _StreamEndedError as ended:
            why = str(ended.exceptions[0])
        except* RpcError as refused:
            first = refused.exceptions[0]
            if isinstance(first, RpcError):  # one of the tasks raised it, not a group
                self.refusal = first
            why = f"its message was refused: {first}"
        except* grpc.aio.BaseError as broken:
            why = f"its stream broke: {broken.exceptions[0]}"
        return why

    async def _read(self, requests: PartReader[Request]) -> None:
        async for message in requests:
            try:
                self._take(message)
            except UnknownMessageError as unknown:
                raise _StreamEndedError(str(unknown)) from unknown
        raise _StreamEndedError("it ended its stream")

    async def _watch(self, requests: PartReader[Request]) -> None:
        silent = 0
        while silent < LOOKS:
            heard = requests.heard
            await self._clock.sleep(self._timeout_s / LOOKS)
            silent = 0 if requests.heard != heard else silent + 1
        raise _StreamEndedError(f"it was silent for {self._timeout_s:g} s")

    async def _until_cut(self) -> None:
        await self._outbox.until_cut()
        raise _StreamEndedError(self._outbox.ended or "")

    async def _write(self, context: grpc.aio.ServicerContext[Request, _Sent], welcome: _Sent) -> None:
        await context.write(welcome)
        while (message := await self._outbox.next_message()) is not None:
            await context.write(message)
        raise _StreamEndedError(self._outbox.ended or "")
