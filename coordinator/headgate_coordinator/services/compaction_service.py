"""CompactionService: the streams of compactors."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeAlias

import grpc
import grpc.aio

from headgate_coordinator.streams.compactors import Compactors
from headgate_coordinator.streams.stream import Stream, first_of, requests_of
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_proto.cluster.v1 import compaction_pb2_grpc as rpc
from headgate_runtime.part_reader import PartReader
from headgate_runtime.world import Clock

BEATS = 10
"""Heartbeats within the timeout of a silent compactor: some come late, because merging holds the interpreter's lock at times."""

Context: TypeAlias = "grpc.aio.ServicerContext[wire.WorkRequest, wire.WorkResponse]"


class CompactionService(rpc.CompactionServiceServicer):
    """``timeout_s``: seconds of silence after which a compactor is lost, and its attempts with it. ``decode``: reads a request of
    ``Work``, or raises RpcError.
    """

    def __init__(
        self, compactors: Compactors, decode: Callable[[bytes], wire.WorkRequest], clock: Clock, *, timeout_s: float
    ) -> None:
        self._compactors = compactors
        self._decode = decode
        self._clock = clock
        self._timeout_s = timeout_s

    async def Work(  # type: ignore[override]
        self,
        request_iterator: AsyncIterator[wire.WorkRequest],  # noqa: ARG002 - gRPC's
        context: Context,
    ) -> None:
        requests = requests_of(context, self._decode)
        hello = await self._hello(requests, context)
        session = self._compactors.add_compactor(hello.process, hello.host)
        stream: Stream[wire.WorkRequest, wire.WorkResponse] = Stream(
            session, partial(self._compactors.handle_compactor_message, session), self._clock, self._timeout_s
        )
        why = "its stream was cancelled"
        try:
            heartbeat_ms = round(self._timeout_s * 1000 / BEATS)
            welcome = wire.WorkResponse(welcome=wire.CompactorWelcome(heartbeat_ms=heartbeat_ms))
            why = await stream.serve(requests, context, welcome)
        finally:
            self._compactors.remove_compactor(session, why)
        if stream.refusal is not None:
            raise stream.refusal
        await context.abort(grpc.StatusCode.UNAVAILABLE, why)

    async def _hello(self, requests: PartReader[wire.WorkRequest], context: Context) -> wire.CompactorHello:
        first = await first_of(requests, self._timeout_s)
        if first is None or not first.hello.process:
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, "a compactor's stream begins with a hello that names its process"
            )
        return first.hello
