"""A coordinator that hands out operations: it speaks CompactionService over real gRPC, and a test says what it does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from headgate_coordinator.streams.messages import operation_message
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_proto.cluster.v1 import coordination_pb2
from headgate_proto.cluster.v1.compaction_pb2_grpc import CompactionServiceServicer, add_CompactionServiceServicer_to_server
from headgate_proto.cluster.v1.coordination_pb2_grpc import (
    CoordinationServiceServicer,
    add_CoordinationServiceServicer_to_server,
)
from headgate_runtime.definitions import definition_message
from headgate_runtime.part_reader import PartReader
from headgate_tables.face.operation import Plan
from headgate_tables.hudi import Table
from support.serving import before_end, served


class CompactorLink:
    """One stream of a compactor. What it says waits, by kind, for who asks for it."""

    def __init__(self, hello: wire.CompactorHello) -> None:
        self.hello = hello
        self.orders: asyncio.Queue[wire.WorkResponse | None] = asyncio.Queue()
        self.reports: asyncio.Queue[wire.WorkRequest] = asyncio.Queue()
        self.capacity: asyncio.Queue[int] = asyncio.Queue()
        self.heartbeats: asyncio.Queue[list[wire.AttemptProgress]] = asyncio.Queue()
        self.leaves = asyncio.Event()
        self.gone = asyncio.Event()

    def run(
        self,
        table: Table,
        plan: Plan,
        index: int = 0,
        *,
        number: int = 1,
        epoch: int = 0,
        operation: wire.CompactionOperation | None = None,
    ) -> wire.Attempt:
        """Hands an operation of the plan out; ``operation``: other content than the plan's."""
        assert table.definition is not None
        attempt = wire.Attempt(table="t", epoch=epoch or table.epoch, instant=plan.instant, operation=index, number=number)
        order = wire.RunAttempt(
            attempt=attempt,
            url=table.url,
            definition=definition_message(table.definition),
            operation=operation or operation_message(plan.operations[index]),
        )
        self.orders.put_nowait(wire.WorkResponse(run=order))
        return attempt

    def drop(self, attempt: wire.Attempt) -> None:
        self.orders.put_nowait(wire.WorkResponse(drop=wire.DropAttempt(attempt=attempt)))

    def release(self) -> None:
        self.orders.put_nowait(wire.WorkResponse(released=wire.CompactorReleased()))

    def cut(self) -> None:
        """Ends the stream, as a coordinator does that dies."""
        self.orders.put_nowait(None)

    async def report(self, kind: str) -> Any:
        """The next report, which has to be of that kind. Raises StreamEndedError."""
        message = await before_end(self.gone, self.reports.get())
        assert message.WhichOneof("message") == kind, message
        return getattr(message, kind)

    async def until_slots(self, wanted: int) -> None:
        """Until it reports that capacity. Raises StreamEndedError."""
        while await before_end(self.gone, self.capacity.get()) != wanted:
            pass

    async def until_at_work(self) -> wire.AttemptProgress:
        """The next heartbeat with an attempt in it. Raises StreamEndedError."""
        while not (attempts := await before_end(self.gone, self.heartbeats.get())):
            pass
        return attempts[0]

    async def until_heartbeats(self, count: int) -> None:
        """Until so many more have come: the compactor stays. Raises StreamEndedError."""
        while not self.heartbeats.empty():
            self.heartbeats.get_nowait()
        for _ in range(count):
            await before_end(self.gone, self.heartbeats.get())

    def take(self, message: wire.WorkRequest) -> None:
        match message.WhichOneof("message"):
            case "ready":
                self.capacity.put_nowait(message.ready.operations)
            case "heartbeat":
                self.heartbeats.put_nowait(list(message.heartbeat.attempts))
            case "leave":
                self.leaves.set()
            case _:
                self.reports.put_nowait(message)


class ScriptedCompactionService(CompactionServiceServicer, CoordinationServiceServicer):
    """It knows of the coordinators at ``others``."""

    def __init__(self) -> None:
        self.address = ""
        self.others: list[str] = []
        self._joined: asyncio.Queue[CompactorLink] = asyncio.Queue()

    async def compactor(self) -> CompactorLink:
        """The next stream that has said hello."""
        return await self._joined.get()

    async def Members(self, request: coordination_pb2.MembersRequest, context: Any) -> coordination_pb2.MembersResponse:
        return coordination_pb2.MembersResponse(addresses=[self.address, *self.others])

    async def Work(self, request_iterator: Any, context: Any) -> None:  # type: ignore[override]
        link = CompactorLink((await context.read()).hello)
        await context.write(wire.WorkResponse(welcome=wire.CompactorWelcome(heartbeat_ms=20)))
        self._joined.put_nowait(link)
        try:
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(self._read(context, link))
                while (order := await link.orders.get()) is not None:
                    await context.write(order)
                reading.cancel()
        finally:
            link.gone.set()

    async def _read(self, context: Any, link: CompactorLink) -> None:
        async for message in PartReader(context, wire.WorkRequest.FromString, None, ""):
            link.take(message)
        link.gone.set()
        link.cut()


@asynccontextmanager
async def scripted_compaction_service() -> AsyncIterator[ScriptedCompactionService]:
    """A running one."""
    coordinator = ScriptedCompactionService()  # type: ignore[abstract]  # methods that are left out answer UNIMPLEMENTED
    async with served(
        partial(add_CompactionServiceServicer_to_server, coordinator),
        partial(add_CoordinationServiceServicer_to_server, coordinator),
    ) as coordinator.address:
        yield coordinator
