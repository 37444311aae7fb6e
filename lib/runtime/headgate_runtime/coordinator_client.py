"""Finds the cluster's coordinators and keeps one stream to each, for writers and compactors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic

import grpc

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.coordination_pb2_grpc import CoordinationServiceStub
from headgate_proto.ranges import OutOfRangeError
from headgate_runtime.cancelling import raise_if_cancelled
from headgate_runtime.channels import RenewedChannel, UnsafeAddressError
from headgate_runtime.coordinator_stream import CoordinatorStream, Request, Response, StreamHandler
from headgate_runtime.errors import METADATA_KEY, UnknownMessageError, VersionSkewError, from_call
from headgate_runtime.lifecycle import StartError
from headgate_runtime.logs import get_logger
from headgate_runtime.peers import ServiceKind
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import Clock

_log = get_logger()

POLL_S = 1.0
ANSWER_S = 2.0
"""Time-out of one call. A coordinator answers `Members` from memory; after one that does not, the next is asked."""
RECONNECT_S = 0.3
"""Seconds between two attempts. Lower: a coordinator that comes back is found sooner, and a dead one costs more connects."""
_REFUSALS = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED", "FAILED_PRECONDITION"})


class CoordinatorClient(Generic[Request, Response]):
    """``configured``: host:port of one or more coordinators; the others are found through them.

    ``welcomed`` is set for good once any coordinator has welcomed this process. ``start_timeout``: seconds for which they may
    refuse one that none has welcomed; 0: for ever.
    """

    def __init__(
        self,
        configured: Sequence[str],
        handler: StreamHandler[Request, Response],
        settings: ServiceSettings,
        clock: Clock,
        *,
        start_timeout: float = 0.0,
    ) -> None:
        self._configured = list(configured)
        self._start_timeout = start_timeout
        self._refused_since: float | None = None
        self._handler = handler
        self._settings = settings
        self._clock = clock
        self._connections: dict[str, _Connection[Request, Response]] = {}
        self._polled: dict[str, RenewedChannel] = {}
        self._complaints: set[str] = set()
        self._leaving = False
        self.welcomed = asyncio.Event()

    @property
    def streams(self) -> list[CoordinatorStream[Request, Response]]:
        """Streams that were welcomed and have not ended."""
        return [each.stream for each in self._connections.values() if each.stream is not None]

    @property
    def known(self) -> list[str]:
        """Addresses of the coordinators that it connects to, or tries to."""
        return list(self._connections)

    @property
    def channels(self) -> list[grpc.aio.Channel]:
        """Channels to the coordinators of ``streams``, for other calls."""
        return [each.link.channel for each in self._connections.values() if each.stream is not None]

    async def run(self) -> None:
        """Keeps the streams until it is cancelled. Raises StartError, in a group, when coordinators refuse it for too long."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._connect(await self._members(), group)
                    await self._clock.sleep(POLL_S)
        finally:
            for link in self._polled.values():
                await link.close()

    def leave(self) -> None:
        """Sends a leave to every coordinator, also to those that are found later: this process drains."""
        self._leaving = True
        for stream in self.streams:
            stream.send(self._handler.leave())

    async def released(self) -> None:
        """Waits until each coordinator with a stream now has released this process, or is gone."""
        for stream in self.streams:
            await stream.released.wait()

    def _welcomed(self, stream: CoordinatorStream[Request, Response]) -> None:
        self._handler.connected(stream)
        if self._leaving:
            stream.send(self._handler.leave())
        self.welcomed.set()

    def _refused(self, address: str, reason: str) -> None:
        """Raises StartError once this has gone on for ``start_timeout``: an orchestrator shows why the process ended.

        A coordinator that cannot be reached is no refusal: it may be starting, and the process would end for nothing.
        """
        if self.welcomed.is_set() or not self._start_timeout:
            return
        now = self._clock.monotonic()
        self._refused_since = now if self._refused_since is None else self._refused_since
        if now - self._refused_since >= self._start_timeout:
            after = f"refuses this process, for {self._start_timeout:g} s now (start_timeout)"
            raise StartError(f"the coordinator at {address} {after}: {reason}")

    def _connect(self, addresses: Sequence[str], group: asyncio.TaskGroup) -> None:
        """Follows the list of coordinators. An empty list changes nothing: coordinators may go on without Redis (rule R4)."""
        for address in addresses:
            connection = self._connections.get(address)
            if connection is None:
                if (link := self._open(address)) is None:
                    continue
                connection = _Connection(address, link, self._handler, self._clock, self._welcomed, self._refused)
                self._connections[address] = connection
                group.create_task(self._run(connection))
            connection.wanted = True
        for address, connection in self._connections.items():
            if addresses and address not in addresses and connection.stream is None:
                connection.wanted = False

    async def _run(self, connection: _Connection[Request, Response]) -> None:
        try:
            await connection.run()
        finally:
            del self._connections[connection.address]  # before it is closed, or _members would ask through it
            await connection.link.close()

    async def _members(self) -> Sequence[str]:
        """Returns the addresses from the first coordinator that answers; asks connected ones first, then the configured ones."""
        connected = [address for address, each in self._connections.items() if each.stream is not None]
        for address in dict.fromkeys([*connected, *self._configured]):
            if (link := self._link(address)) is None:
                continue
            try:
                stub = CoordinationServiceStub(await link.renewed())
                answer = await stub.Members(wire.MembersRequest(), timeout=ANSWER_S)
            except grpc.aio.AioRpcError as failed:
                self._complain(address, f"{failed.code().name}: {_detail(failed)}")
                if failed.code().name in _REFUSALS:
                    self._refused(address, _detail(failed))
                continue
            except asyncio.CancelledError:
                raise_if_cancelled()
                continue  # its connection was dropped and closed meanwhile, which grpcio shows as a cancelled call
            self._complaints.discard(address)
            return list(answer.addresses)
        return []

    def _link(self, address: str) -> RenewedChannel | None:
        if address in self._connections:
            return self._connections[address].link
        if address not in self._polled and (link := self._open(address)) is not None:
            self._polled[address] = link
        return self._polled.get(address)

    def _open(self, address: str) -> RenewedChannel | None:
        """A channel to this coordinator; None if it must not be called."""
        try:
            return RenewedChannel(address, self._settings, ServiceKind.COORDINATOR)
        except UnsafeAddressError as unsafe:
            self._complain(address, str(unsafe))
            return None

    def _complain(self, address: str, reason: str) -> None:
        """Once, until the coordinator answers. A client does not learn why a server has refused its certificate."""
        if address not in self._complaints:
            self._complaints.add(address)
            hint = "see the coordinator's log: it may refuse cluster_cert" if self._settings.cluster_cert else "is it running?"
            _log.warning("coordinator does not answer", coordinator=address, reason=reason, hint=hint)


class _Connection(Generic[Request, Response]):
    """One stream after the other to the coordinator at ``address``, as long as it is ``wanted``.

    ``stream`` is None until the coordinator has welcomed this process, and after its end.
    """

    def __init__(
        self,
        address: str,
        link: RenewedChannel,
        handler: StreamHandler[Request, Response],
        clock: Clock,
        on_welcome: Callable[[CoordinatorStream[Request, Response]], None],
        on_refusal: Callable[[str, str], None],
    ) -> None:
        self.address = address
        self.link = link
        self.stream: CoordinatorStream[Request, Response] | None = None
        self.wanted = True
        self._handler = handler
        self._clock = clock
        self._on_welcome = on_welcome
        self._on_refusal = on_refusal
        self._refused = False

    async def run(self) -> None:
        """Runs until the connection is not ``wanted``, and its last stream has ended."""
        while self.wanted:
            stream = CoordinatorStream(self._handler, self._clock, self._welcomed)
            call = self._handler.open_call(await self.link.renewed())
            try:
                await stream.serve(call)
                _log.info("coordinator ended the stream", coordinator=self.address)
            except* grpc.aio.AioRpcError as broken:
                self._note_break(broken)
            except* VersionSkewError as skewed:
                self._note_refusal("this process refuses the coordinator", str(skewed.exceptions[0]))
            except* (UnknownMessageError, OutOfRangeError) as wrong:
                _log.error(f"stream ended: {wrong.exceptions[0]}", coordinator=self.address)
            finally:
                self.stream = None
                call.cancel()
            raise_if_cancelled()
            await self._clock.sleep(RECONNECT_S)

    def _welcomed(self, stream: CoordinatorStream[Request, Response]) -> None:
        self.stream = stream
        self._refused = False
        _log.info("coordinator found", coordinator=self.address)
        self._on_welcome(stream)

    def _note_break(self, broken: ExceptionGroup[grpc.aio.AioRpcError]) -> None:
        reasons = {str(error.code().name) for error in broken.exceptions if isinstance(error, grpc.aio.AioRpcError)}
        if reasons & _REFUSALS:
            self._note_refusal("coordinator refuses this process", _details(broken))
        if self.stream is not None:
            _log.warning("coordinator lost", coordinator=self.address, reason=", ".join(sorted(reasons)))

    def _note_refusal(self, event: str, reason: str) -> None:
        """Logs it once, until the coordinator takes this process."""
        if not self._refused:
            self._refused = True
            _log.error(event, coordinator=self.address, reason=reason)
        self._on_refusal(self.address, reason)


def _details(broken: ExceptionGroup[grpc.aio.AioRpcError]) -> str:
    return "; ".join(_detail(error) for error in broken.exceptions if isinstance(error, grpc.aio.AioRpcError))


def _detail(failed: grpc.aio.AioRpcError) -> str:
    """What is wrong and what to do, where the coordinator says so; otherwise what gRPC says."""
    if METADATA_KEY not in (failed.trailing_metadata() or ()):
        return str(failed.details())
    error = from_call(failed)
    return f"{error.message}. {error.fix}"
