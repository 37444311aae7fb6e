"""A false writer: it takes part in checkpoints over real gRPC, accepts all frames of other writers, and answers each barrier with
an empty report."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc

from headgate_proto.api.v1 import ingest_pb2
from headgate_proto.api.v1.ingest_pb2_grpc import IngestServiceServicer, add_IngestServiceServicer_to_server
from headgate_proto.cluster.v1 import coordination_pb2
from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_proto.cluster.v1.exchange_pb2_grpc import (
    ExchangeServiceServicer,
    ExchangeServiceStub,
    add_ExchangeServiceServicer_to_server,
)
from headgate_runtime.grpc_server import Server
from headgate_runtime.settings import ServiceSettings
from headgate_writer.table_writer import moved_error
from headgate_writer.windows import WINDOW_BYTES
from support.scripted_writer import ScriptedWriter, scripted_writer


class Swallowing(ExchangeServiceServicer):
    """Acknowledges every frame. ``rows``: how many frames of rows it has swallowed."""

    def __init__(self) -> None:
        self.rows = 0
        self._last: dict[bytes, int] = {}

    async def Exchange(self, request_iterator: AsyncIterator[wire.ExchangeRequest], context: Any) -> None:  # type: ignore[override]
        name = (await anext(request_iterator)).name.SerializeToString()
        await context.write(wire.ExchangeResponse(resume=wire.Resume(last_number=self._last.get(name, 0))))
        await context.write(wire.ExchangeResponse(credit=wire.Credit(last_number=self._last.get(name, 0), bytes=WINDOW_BYTES)))
        async for request in request_iterator:
            self.rows += request.frame.HasField("rows")
            last = self._last[name] = request.frame.number
            await context.write(wire.ExchangeResponse(credit=wire.Credit(last_number=last, bytes=WINDOW_BYTES)))


class FalseWriter(ScriptedWriter):
    """Passes each barrier on to the others, behind no rows."""

    def __init__(self, *arguments: Any, **habits: Any) -> None:
        super().__init__(*arguments, **habits)
        self._members: Sequence[coordination_pb2.Member] = ()
        self._frames: Counter[bytes] = Counter()

    async def _obey(self, order: coordination_pb2.TableOrder, group: asyncio.TaskGroup) -> None:
        pair = (order.epoch, order.generation)
        await super()._obey(order, group)
        if self.pair(order.table) == pair:
            match order.WhichOneof("message"):
                case "attach":
                    self._members = order.attach.membership.members
                case "barrier":
                    for member in self._members:
                        if member.process != self.process:
                            group.create_task(self._pass(order, member))
                    self._members = order.barrier.next.members
                case _:
                    pass

    async def _pass(self, order: coordination_pb2.TableOrder, to: coordination_pb2.Member) -> None:
        name = wire.StreamName(
            table=order.table, epoch=order.epoch, generation=order.generation, sender=self.process, receiver=to.process
        )
        self._frames[name.SerializeToString()] += 1
        number = self._frames[name.SerializeToString()]
        async with grpc.aio.insecure_channel(to.address) as channel:
            call: Any = ExchangeServiceStub(channel).Exchange()
            await call.write(wire.ExchangeRequest(name=name))
            await call.write(
                wire.ExchangeRequest(frame=wire.Frame(number=number, checkpoint=order.barrier.checkpoint, barrier=0))
            )
            while (answer := await call.read()) is not grpc.aio.EOF and answer.credit.last_number < number:
                if answer.HasField("refused"):
                    return
            call.cancel()


class Moved(IngestServiceServicer):
    """Sends every client to another writer."""

    async def Append(self, request_iterator: Any, context: Any) -> None:  # type: ignore[override]
        await context.write(ingest_pb2.AppendResponse(ended=ingest_pb2.Ended(error=moved_error())))


@asynccontextmanager
async def false_writer(coordinator: str) -> AsyncIterator[tuple[ScriptedWriter, Swallowing]]:
    """Joins the cluster of that coordinator, until the block ends."""
    server, swallowing = Server(ServiceSettings()), Swallowing()
    add_ExchangeServiceServicer_to_server(swallowing, server.grpc)
    add_IngestServiceServicer_to_server(Moved(), server.grpc)
    address = await server.start()
    try:
        async with scripted_writer(coordinator, address=address, kind=FalseWriter) as writer:
            yield writer, swallowing
    finally:
        await server.stop(0)
