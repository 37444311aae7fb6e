"""One stream to one coordinator: hello, operations in, heartbeats and reports out; again after a break."""

import asyncio
from collections import deque
from typing import Protocol, TypeAlias, cast

import grpc

from headgate_compactor.workbench import Giver
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_proto.cluster.v1.compaction_pb2_grpc import CompactionServiceStub
from headgate_runtime.logs import get_logger
from headgate_runtime.world import Clock

_log = get_logger()

_Call: TypeAlias = "grpc.aio.StreamStreamCall[wire.WorkRequest, wire.WorkResponse]"
_PAUSE_S = 0.5
"""Between two attempts to connect. A coordinator that comes back is found within it."""


class Bench(Protocol):
    """Who does what coordinators say (``workbench.Workbench``)."""

    def welcomed(self, giver: Giver) -> None:
        """A coordinator takes part from now on."""

    def lost(self, giver: Giver) -> None:
        """Its stream is over."""

    def take(self, giver: Giver, message: wire.WorkResponse) -> None:
        """Anything but the welcome and the release."""

    def heartbeat(self, giver: Giver) -> wire.WorkRequest:
        """What to say now."""


class Session:
    """A stream from its hello to its end: the lease of all attempts that came on it."""

    def __init__(self, hello: wire.CompactorHello, bench: Bench, clock: Clock) -> None:
        self._bench = bench
        self._clock = clock
        self._outbox = deque([wire.WorkRequest(hello=hello)])
        self._awake = asyncio.Event()
        self._awake.set()
        self.welcomed = asyncio.Event()
        self.released = asyncio.Event()

    def send(self, message: wire.WorkRequest) -> None:
        """In order; what is sent after the stream's end is lost, as are its attempts."""
        self._outbox.append(message)
        self._awake.set()

    async def serve(self, call: _Call) -> None:
        """Until the stream ends. Raises grpc.aio.AioRpcError when it breaks."""
        try:
            async with asyncio.TaskGroup() as group:
                helpers = [group.create_task(self._send_all(call))]
                while (read := await call.read()) is not grpc.aio.EOF:
                    response = cast(wire.WorkResponse, read)
                    match response.WhichOneof("message"):
                        case "welcome":
                            helpers.append(group.create_task(self._beat(response.welcome.heartbeat_ms / 1000)))
                            self._bench.welcomed(self)
                            self.welcomed.set()
                        case "released":
                            self.released.set()
                        case _:
                            self._bench.take(self, response)
                for task in helpers:
                    task.cancel()
        finally:
            self.released.set()
            self._bench.lost(self)

    async def _send_all(self, call: _Call) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            while self._outbox:
                try:
                    await call.write(self._outbox.popleft())
                except asyncio.InvalidStateError:
                    return  # the stream is over, and the reader learns why

    async def _beat(self, interval_s: float) -> None:
        while True:
            self.send(self._bench.heartbeat(self))
            await self._clock.sleep(interval_s)


class Puller:
    """The link to the coordinator at ``address`` (``headgate_runtime.coordinators.Link``)."""

    def __init__(self, address: str, channel: grpc.aio.Channel, hello: wire.CompactorHello, bench: Bench, clock: Clock) -> None:
        self.address = address
        self.channel = channel
        self._hello = hello
        self._bench = bench
        self._clock = clock
        self._session: Session | None = None
        self._wanted = True

    @property
    def connected(self) -> bool:
        """Whether there is a stream that was welcomed."""
        return self._session is not None and self._session.welcomed.is_set()

    def want(self) -> None:
        """The coordinator is on the list."""
        self._wanted = True

    def forget(self) -> None:
        """It is on nobody's list any more: do not connect again."""
        self._wanted = False

    async def run(self) -> None:
        """Until ``forget``, and the end of the stream that is there then."""
        stub = CompactionServiceStub(self.channel)
        while self._wanted:
            session = self._session = Session(self._hello, self._bench, self._clock)
            call: _Call = stub.Work()
            try:
                await session.serve(call)
                _log.info("coordinator ended the stream", coordinator=self.address)
            except* grpc.aio.AioRpcError as broken:
                self._log_break(session, broken)
            finally:
                self._session = None
                call.cancel()
            await self._clock.sleep(_PAUSE_S)

    def _log_break(self, session: Session, broken: "ExceptionGroup[grpc.aio.AioRpcError]") -> None:
        if session.welcomed.is_set():
            reasons = {str(error.code().name) for error in broken.exceptions if isinstance(error, grpc.aio.AioRpcError)}
            _log.warning("coordinator lost", coordinator=self.address, reason=", ".join(sorted(reasons)))
