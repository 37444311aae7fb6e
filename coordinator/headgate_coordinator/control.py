"""CoordinationService: control streams of writers, and the list of coordinators."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeAlias

import grpc
import grpc.aio

from headgate_coordinator.writers import Session, Writers
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1 import coordination_pb2_grpc as rpc
from headgate_runtime.world import Clock

LOOKS = 5
"""Looks at a silent writer before it is lost: the timeout is counted in them, so that a pause of ours is not held against it."""

Context: TypeAlias = "grpc.aio.ServicerContext[wire.ControlRequest, wire.ControlResponse]"


class _StreamEndedError(Exception):
    """Ends the three tasks of a stream; its text is why."""


class Coordination(rpc.CoordinationServiceServicer):
    """``writer_timeout_s``: silence after which a writer is lost (rule RO8). ``members``: addresses of living coordinators.

    ``reached`` is told of the steps that a stream takes (checkpoints.md, "Steps with names").
    """

    def __init__(
        self,
        writers: Writers,
        members: Callable[[], Sequence[str]],
        clock: Clock,
        reached: Callable[[str], None],
        *,
        writer_timeout_s: float,
        heartbeat_s: float,
    ) -> None:
        self._writers = writers
        self._members = members
        self._clock = clock
        self._reached = reached
        self._timeout_s = writer_timeout_s
        self._heartbeat_ms = round(heartbeat_s * 1000)

    async def Members(self, request: wire.MembersRequest, context: Any) -> wire.MembersResponse:  # noqa: ARG002 - gRPC's
        return wire.MembersResponse(addresses=self._members())

    async def Control(  # type: ignore[override]
        self, request_iterator: AsyncIterator[wire.ControlRequest], context: Context
    ) -> None:
        hello = await self._hello(request_iterator, context)
        session = self._writers.join(hello.process, hello.address)
        why = "its control stream was cancelled"
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(session, request_iterator))
                tasks.create_task(self._watch(session))
                tasks.create_task(self._until_cut(session))
                tasks.create_task(self._write(session, context))
        except* _StreamEndedError as ended:
            why = str(ended.exceptions[0])
        except* grpc.aio.BaseError as broken:
            why = f"its control stream broke: {broken.exceptions[0]}"
        finally:
            self._writers.lose(session, why)
        await context.abort(grpc.StatusCode.UNAVAILABLE, why)

    async def _hello(self, requests: AsyncIterator[wire.ControlRequest], context: Context) -> wire.Hello:
        try:
            async with asyncio.timeout(self._timeout_s):
                first = await anext(requests)
        except (TimeoutError, StopAsyncIteration):
            first = wire.ControlRequest()
        if not (first.hello.process and first.hello.address):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a control stream begins with a hello: process and address")
        return first.hello

    async def _read(self, session: Session, requests: AsyncIterator[wire.ControlRequest]) -> None:
        async for message in requests:
            self._writers.take(session, message)
        raise _StreamEndedError("it ended its control stream")

    async def _watch(self, session: Session) -> None:
        silent = 0
        while silent < LOOKS:
            heard = session.heard
            await self._clock.sleep(self._timeout_s / LOOKS)
            silent = 0 if session.heard != heard else silent + 1
        raise _StreamEndedError(f"nothing was heard of it for {self._timeout_s:g} s")

    async def _until_cut(self, session: Session) -> None:
        await session.cut()
        raise _StreamEndedError(session.ended or "")

    async def _write(self, session: Session, context: Context) -> None:
        await context.write(wire.ControlResponse(welcome=wire.Welcome(heartbeat_ms=self._heartbeat_ms)))
        while (message := await session.next_order()) is not None:
            await context.write(message)
            match message.table.WhichOneof("message"):
                case "barrier":
                    self._reached("barrier_sent")
                case "decided":
                    self._reached("acks_sent")
                case _:
                    pass
        raise _StreamEndedError(session.ended or "")
