"""One control stream to one coordinator: hello, orders in, reports and heartbeats out; again after a break (rules RO8, RO9)."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias, cast

import grpc

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.coordination_pb2_grpc import CoordinationServiceStub
from headgate_runtime.errors import UnknownMessageError
from headgate_runtime.logs import get_logger
from headgate_runtime.world import World
from headgate_writer.table_writer import Owner

_log = get_logger()

_Call: TypeAlias = "grpc.aio.StreamStreamCall[wire.ControlRequest, wire.ControlResponse]"
_PAUSE_S = 0.3
"""Between two attempts. A coordinator that comes back is found within it; a dead one costs three connects a second."""


class Orders(Protocol):
    """Who carries the owners' orders out."""

    def order(self, owner: Owner, order: wire.TableOrder) -> None:
        """In the order of the stream. Raises UnknownMessageError."""

    def lost(self, owner: Owner) -> None:
        """The stream is over."""

    def loads(self, owner: Owner) -> list[wire.Load]:
        """For the next heartbeat."""


class Session:
    """A stream that has said hello. What is sent after its end is lost, as are the tables that were attached on it."""

    def __init__(self, hello: wire.Hello, orders: Orders, world: World) -> None:
        self._orders = orders
        self._world = world
        self._outbox = deque([wire.ControlRequest(hello=hello)])
        self._awake = asyncio.Event()
        self._awake.set()
        self._requests = 0
        self._heartbeat_due = asyncio.Event()
        self.released = asyncio.Event()

    def send(self, message: wire.ControlRequest) -> None:
        """In order."""
        self._outbox.append(message)
        self._awake.set()

    def next_request(self) -> int:
        """Unique on this stream."""
        self._requests += 1
        return self._requests

    def loaded(self) -> None:
        """A heartbeat is due now."""
        self._heartbeat_due.set()

    async def serve(self, call: _Call, welcomed: Callable[[], None]) -> None:
        """Until the stream ends. Raises, in a group, grpc.aio.AioRpcError when it breaks and UnknownMessageError."""
        try:
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(self._send_all(call))
                beating: asyncio.Task[None] | None = None
                while (read := await call.read()) is not grpc.aio.EOF:
                    response = cast(wire.ControlResponse, read)
                    match response.WhichOneof("message"):
                        case "table":
                            self._orders.order(self, response.table)
                        case "welcome":
                            beating = group.create_task(self._beat(response.welcome.heartbeat_ms / 1000))
                            welcomed()
                        case "released":
                            self.released.set()
                        case None:
                            raise UnknownMessageError("a message of a coordinator")
                sending.cancel()
                if beating:
                    beating.cancel()
        finally:
            self.released.set()
            self._orders.lost(self)

    async def _send_all(self, call: _Call) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            while self._outbox:
                message = self._outbox.popleft()
                try:
                    await call.write(message)
                except asyncio.InvalidStateError:
                    return  # the stream is over, and the reader learns why
                if message.table.WhichOneof("message") == "flushed":
                    self._world.reached("status_sent")

    async def _beat(self, interval: float) -> None:
        """At each interval, and at once when a table's first uncommitted bytes arrive."""
        clock = self._world.clock
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat_on_load())
            while True:
                self._heartbeat()
                await clock.sleep(interval)

    async def _beat_on_load(self) -> None:
        while True:
            await self._heartbeat_due.wait()
            self._heartbeat_due.clear()
            self._heartbeat()

    def _heartbeat(self) -> None:
        self.send(wire.ControlRequest(heartbeat=wire.Heartbeat(loads=self._orders.loads(self))))


class Link:
    """To the coordinator at ``address`` (``headgate_runtime.coordinators.Link``); it tells of each welcome.

    ``session`` is None while there is no connection.
    """

    def __init__(
        self,
        address: str,
        channel: grpc.aio.Channel,
        hello: wire.Hello,
        orders: Orders,
        world: World,
        welcomed: Callable[[Session], None],
    ) -> None:
        self.address = address
        self.channel = channel
        self.session: Session | None = None
        self._hello = hello
        self._orders = orders
        self._world = world
        self._tell = welcomed
        self._wanted = True

    @property
    def connected(self) -> bool:
        """Whether there is a stream that was welcomed."""
        return self.session is not None

    def forget(self) -> None:
        """The coordinator is in nobody's list any more: do not connect again."""
        self._wanted = False

    def want(self) -> None:
        """It is in the list again."""
        self._wanted = True

    async def run(self) -> None:
        """Until ``forget``, and the end of the connection that is there then."""
        stub = CoordinationServiceStub(self.channel)
        while self._wanted:
            session = Session(self._hello, self._orders, self._world)
            call: _Call = stub.Control()
            try:
                await session.serve(call, partial(self._welcomed, session))
                _log.info("coordinator ended the stream", coordinator=self.address)
            except* grpc.aio.AioRpcError as broken:
                self._log_break(broken)
            except* UnknownMessageError as unknown:
                _log.error("stream ended: " + str(unknown.exceptions[0]), coordinator=self.address)
            finally:
                self.session = None
                call.cancel()
            await self._world.clock.sleep(_PAUSE_S)

    def _welcomed(self, session: Session) -> None:
        self.session = session
        _log.info("coordinator found", coordinator=self.address)
        self._tell(session)

    def _log_break(self, broken: "ExceptionGroup[grpc.aio.AioRpcError]") -> None:
        reasons = {str(error.code().name) for error in broken.exceptions if isinstance(error, grpc.aio.AioRpcError)}
        if self.session is not None:
            _log.warning("coordinator lost", coordinator=self.address, reason=", ".join(sorted(reasons)))
