"""A compactor of few lines: it speaks CompactionService over real gRPC, and a test says what it does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from headgate_compactor.orders import read_operation
from headgate_compactor.runner import AttemptRunner, RunningAttempt
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_proto.cluster.v1.compaction_pb2_grpc import CompactionServiceStub
from headgate_proto.serialized import in_parts
from headgate_tables.face.operation import Operation
from headgate_tables.system import SystemIds
from support.serving import before_end


class ScriptedCompactor:
    """``beats``: it sends heartbeats by itself. Orders wait for who asks for them. ``why``: how the stream has ended."""

    def __init__(self, process: str, *, beats: bool) -> None:
        self.process = process
        self.runs: asyncio.Queue[wire.RunAttempt] = asyncio.Queue()
        self.drops: asyncio.Queue[wire.Attempt] = asyncio.Queue()
        self.released = asyncio.Event()
        self.ended = asyncio.Event()
        self.why = ""
        self._beats = beats
        self._outbox: asyncio.Queue[wire.WorkRequest] = asyncio.Queue()
        self.send(hello=wire.CompactorHello(process=process, host="host"))

    def send(self, **message: Any) -> None:
        """Any message of the stream."""
        self._outbox.put_nowait(wire.WorkRequest(**message))

    def fall_silent(self) -> None:
        """No heartbeats by itself any more."""
        self._beats = False

    def ready(self, slots: int = 1) -> None:
        self.send(ready=wire.Ready(operations=slots))

    async def run(self) -> wire.RunAttempt:
        """The next operation that it is given. Raises StreamEndedError."""
        return await before_end(self.ended, self.runs.get())

    def progress(self, order: wire.RunAttempt, rows: int, nbytes: int) -> None:
        progress = wire.AttemptProgress(attempt=order.attempt, rows_done=rows, bytes_done=nbytes)
        self.send(heartbeat=wire.AttemptsHeartbeat(attempts=[progress]))

    def fail(
        self,
        order: wire.RunAttempt,
        kind: "wire.FailureKind.ValueType" = wire.FAILURE_KIND_OPERATION,
        why: str = "it is broken",
    ) -> None:
        self.send(failed=wire.AttemptFailed(attempt=order.attempt, why=why, kind=kind))

    def give_back(self, order: wire.RunAttempt) -> None:
        self.send(returned=wire.AttemptReturned(attempt=order.attempt))

    async def report(self, order: wire.RunAttempt) -> wire.WorkRequest:
        """Really merges the slice; what a compactor says then, not yet sent."""
        runner = AttemptRunner(self.process, {}, SystemIds())
        return await asyncio.to_thread(runner.run, RunningAttempt(order))

    async def finish(self, order: wire.RunAttempt) -> None:
        """Really merges the slice and says so."""
        report = await self.report(order)
        assert report.HasField("finished"), report
        self._outbox.put_nowait(report)

    def say(self, report: wire.WorkRequest) -> None:
        self._outbox.put_nowait(report)

    async def serve(self, channel: grpc.aio.Channel) -> None:
        call = CompactionServiceStub(channel).Work()
        try:
            async with asyncio.TaskGroup() as group:
                helpers = [group.create_task(self._send(call))]
                while (read := await call.read()) is not grpc.aio.EOF:
                    response: Any = read
                    match response.WhichOneof("message"):
                        case "welcome" if self._beats:
                            helpers.append(group.create_task(self._beat(response.welcome.heartbeat_ms / 1000)))
                        case "run":
                            self.runs.put_nowait(response.run)
                        case "drop":
                            self.drops.put_nowait(response.drop.attempt)
                        case "released":
                            self.released.set()
                        case _:
                            pass
                for task in helpers:
                    task.cancel()
        except* grpc.aio.AioRpcError as broken:
            self.why = str(next(error.details() for error in broken.exceptions if isinstance(error, grpc.aio.AioRpcError)))
        finally:
            self.ended.set()
            call.cancel()

    async def _send(self, call: Any) -> None:
        while True:
            for each in in_parts(await self._outbox.get()):
                await call.write(each)

    async def _beat(self, interval: float) -> None:
        while self._beats:
            self.send(heartbeat=wire.AttemptsHeartbeat())
            await asyncio.sleep(interval)


def operation_of(order: wire.RunAttempt) -> Operation:
    """What it is about."""
    return read_operation(order.operation)


@asynccontextmanager
async def scripted_compactor(address: str, process: str = "c", *, beats: bool = True) -> AsyncIterator[ScriptedCompactor]:
    """Connected until the block ends; then its stream breaks."""
    compactor = ScriptedCompactor(process, beats=beats)
    async with grpc.aio.insecure_channel(address) as channel:
        serving = asyncio.ensure_future(compactor.serve(channel))
        try:
            yield compactor
        finally:
            serving.cancel()
            await asyncio.wait([serving])
        if not serving.cancelled() and (error := serving.exception()) is not None:
            raise error
