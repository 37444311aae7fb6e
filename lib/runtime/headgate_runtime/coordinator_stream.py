"""One stream to one coordinator, from its hello to its end: messages both ways, and heartbeats (rules RO8, RO9)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, cast

import grpc
from google.protobuf.message import Message

from headgate_proto.handshake import by_key
from headgate_proto.ranges import check_ranges
from headgate_proto.serialized import in_parts
from headgate_proto.stream_reader import StreamReader
from headgate_runtime.errors import VersionSkewError
from headgate_runtime.greeting import version_refusal
from headgate_runtime.world import Clock

Request = TypeVar("Request", bound=Message)
"""Messages to coordinators; one above ``PART_BYTES`` goes out in parts."""
Response = TypeVar("Response", bound=Message)
"""Messages of coordinators."""


class StreamHandler(Protocol[Request, Response]):
    """Makes a service's messages to coordinators, and handles theirs. Methods get the stream that they are about."""

    def open_call(self, channel: grpc.aio.Channel) -> grpc.aio.StreamStreamCall[Request, Response]:
        """Calls the coordinator's method."""

    def hello(self) -> Request:
        """The first message of every stream."""

    def leave(self) -> Request:
        """The message that this process drains; the coordinator answers with a release."""

    def heartbeat(self, stream: CoordinatorStream[Request, Response]) -> Request:
        """The message of each interval."""

    def receive(self, stream: CoordinatorStream[Request, Response], message: Response) -> None:
        """Handles one message; hands a welcome to ``stream.welcome`` and a release to ``stream.release``.

        Raises UnknownMessageError, which ends the stream.
        """

    def sent(self, message: Request) -> None:
        """The whole message was handed to gRPC."""

    def connected(self, stream: CoordinatorStream[Request, Response]) -> None:
        """The coordinator has welcomed this process."""

    def disconnected(self, stream: CoordinatorStream[Request, Response]) -> None:
        """The stream is over, whether it was welcomed or not."""


class CoordinatorStream(Generic[Request, Response]):
    """One stream, which begins with a hello. Messages sent after its end are lost.

    ``on_welcome`` is called with the stream at its first welcome. ``released`` is set when the coordinator has released this
    process, or is gone.
    """

    def __init__(
        self,
        handler: StreamHandler[Request, Response],
        clock: Clock,
        on_welcome: Callable[[CoordinatorStream[Request, Response]], None],
    ) -> None:
        self._handler = handler
        self._clock = clock
        self._on_welcome = on_welcome
        self._outbox = deque([handler.hello()])
        self._has_messages = asyncio.Event()
        self._has_messages.set()
        self._requests = 0
        self._interval_s: float | None = None
        self._beating = asyncio.Event()
        self._heartbeat_due = asyncio.Event()
        self.released = asyncio.Event()

    def send(self, message: Request) -> None:
        """Queues a message behind the others. Does not wait."""
        self._outbox.append(message)
        self._has_messages.set()

    def next_request(self) -> int:
        """Returns a number that is unique on this stream, for a request and its answer."""
        self._requests += 1
        return self._requests

    def send_heartbeat(self) -> None:
        """Sends an additional heartbeat now, or at the welcome."""
        self._heartbeat_due.set()

    def welcome(self, interval_s: float) -> None:
        """The coordinator has answered the hello, and wants a heartbeat every ``interval_s`` seconds."""
        first, self._interval_s = self._interval_s is None, interval_s
        self._beating.set()
        if first:
            self._on_welcome(self)

    def release(self) -> None:
        """The coordinator has answered the leave."""
        self.released.set()

    async def serve(self, call: grpc.aio.StreamStreamCall[Request, Response]) -> None:
        """Serves the stream until it ends. Raises, in a group, grpc.aio.AioRpcError if it breaks, UnknownMessageError,
        VersionSkewError and OutOfRangeError.
        """
        reader = StreamReader(call)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(each) for each in (self._send_all(call), self._beat(), self._beat_when_due())]
                heard = False
                while (message := await reader.read()) is not grpc.aio.EOF:
                    if not heard and (why := version_refusal(by_key(await call.initial_metadata()))):
                        raise VersionSkewError(why)
                    heard = True
                    check_ranges(cast(Message, message))
                    self._handler.receive(self, cast(Response, message))
                for task in tasks:
                    task.cancel()
        finally:
            self.released.set()
            self._handler.disconnected(self)

    async def _send_all(self, call: grpc.aio.StreamStreamCall[Request, Response]) -> None:
        while True:
            await self._has_messages.wait()
            self._has_messages.clear()
            while self._outbox:
                message = self._outbox.popleft()
                try:
                    for each in in_parts(message):
                        await call.write(each)
                except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    return  # the stream is over; the reader gets the error
                self._handler.sent(message)

    async def _beat(self) -> None:
        await self._beating.wait()
        while self._interval_s is not None:
            self.send(self._handler.heartbeat(self))
            await self._clock.sleep(self._interval_s)

    async def _beat_when_due(self) -> None:
        await self._beating.wait()
        while True:
            await self._heartbeat_due.wait()
            self._heartbeat_due.clear()
            self.send(self._handler.heartbeat(self))
