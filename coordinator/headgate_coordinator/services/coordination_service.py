"""CoordinationService: control streams of writers, and the list of coordinators."""

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import TypeAlias

import grpc
import grpc.aio

from headgate_coordinator.streams.stream import Stream, first_of, requests_of
from headgate_coordinator.streams.writers import Writers
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1 import coordination_pb2_grpc as rpc
from headgate_runtime.part_reader import PartReader
from headgate_runtime.peers import peer_of
from headgate_runtime.world import Clock

Context: TypeAlias = "grpc.aio.ServicerContext[wire.ControlRequest, wire.ControlResponse]"


class CoordinationService(rpc.CoordinationServiceServicer):
    """``writer_timeout_s``: seconds of silence after which a writer is lost (rule RO8). ``members``: returns the addresses of the
    living coordinators. ``domain``: of the names in writers' certificates. ``decode``: reads a request of ``Control``, or raises
    RpcError.
    """

    def __init__(
        self,
        writers: Writers,
        members: Callable[[], Sequence[str]],
        decode: Callable[[bytes], wire.ControlRequest],
        clock: Clock,
        *,
        writer_timeout_s: float,
        heartbeat_s: float,
        domain: str,
    ) -> None:
        self._writers = writers
        self._members = members
        self._decode = decode
        self._clock = clock
        self._timeout_s = writer_timeout_s
        self._domain = domain
        self._heartbeat_ms = round(heartbeat_s * 1000)

    async def Members(
        self, _request: wire.MembersRequest, _context: grpc.aio.ServicerContext[wire.MembersRequest, wire.MembersResponse]
    ) -> wire.MembersResponse:
        return wire.MembersResponse(addresses=self._members())

    async def Control(  # type: ignore[override]
        self,
        request_iterator: AsyncIterator[wire.ControlRequest],  # noqa: ARG002 - gRPC's
        context: Context,
    ) -> None:
        requests = requests_of(context, self._decode)
        hello = await self._hello(requests, context)
        session = self._writers.add_writer(
            hello.process, hello.address, hello.exchange_address, peer_of(context).process(self._domain)
        )
        stream: Stream[wire.ControlRequest, wire.ControlResponse] = Stream(
            session, partial(self._writers.handle_writer_message, session), self._clock, self._timeout_s
        )
        why = "its control stream was cancelled"
        try:
            welcome = wire.ControlResponse(welcome=wire.Welcome(heartbeat_ms=self._heartbeat_ms))
            why = await stream.serve(requests, context, welcome)
        finally:
            self._writers.remove_writer(session, why)
        if stream.refusal is not None:
            raise stream.refusal
        await context.abort(grpc.StatusCode.UNAVAILABLE, why)

    async def _hello(self, requests: PartReader[wire.ControlRequest], context: Context) -> wire.Hello:
        first = await first_of(requests, self._timeout_s)
        if first is None or not (first.hello.process and first.hello.address):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a control stream begins with a hello: process and address")
        return first.hello
