"""Requests at full speed, each of which is refused or undone: from a process of its own, with a token."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import grpc

from bench.attacks.attacked import TABLE
from headgate_proto.api.v1 import ingest_pb2, tables_pb2
from headgate_proto.api.v1.ingest_pb2_grpc import IngestServiceStub
from headgate_proto.api.v1.tables_pb2_grpc import TableServiceStub
from support import schema_bombs

TOKEN: Final = (("authorization", "Bearer alice-token"),)
SECONDS: Final = 8.0
_CALLERS: Final = 16

Send: TypeAlias = Callable[[grpc.aio.Channel, int], Awaitable[None]]
"""Until it is cancelled, or the server ends it. Gets the number of its caller."""


async def _bombs_of_batches(channel: grpc.aio.Channel, caller: int) -> None:
    call = IngestServiceStub(channel).Append(metadata=TOKEN)
    await call.write(ingest_pb2.AppendRequest(open=ingest_pb2.OpenChannel(table=TABLE, channel=f"c{caller}")))
    await call.read()
    for make in itertools.cycle(schema_bombs.SCHEMAS.values()):
        await call.write(ingest_pb2.AppendRequest(batch=ingest_pb2.Batch(offset=1, schema=make(), rows=b"none")))
        await call.read()


async def _bombs_of_tables(channel: grpc.aio.Channel, caller: int) -> None:
    bombs = [make() for make in schema_bombs.SCHEMAS.values()]
    for bomb in itertools.cycle(bombs):
        request = tables_pb2.CreateTableRequest(name=f"t{caller}", schema=bomb, record_key=["c"])
        with contextlib.suppress(grpc.aio.AioRpcError):
            await TableServiceStub(channel).CreateTable(request, metadata=TOKEN)


def _broken(path: str) -> Send:
    async def send(channel: grpc.aio.Channel, _caller: int) -> None:
        call: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(path)
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                made = call(metadata=TOKEN)
                await made.write(b"\xff" * 100)
                await made.done_writing()
                await made.read()

    return send


async def _opens_and_closes(channel: grpc.aio.Channel, caller: int) -> None:
    for number in itertools.count():
        call = IngestServiceStub(channel).Append(metadata=TOKEN)
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            opening = ingest_pb2.OpenChannel(table=TABLE, channel=f"c{caller}-{number % 100}")
            await call.write(ingest_pb2.AppendRequest(open=opening))
            await call.read()
            await call.write(ingest_pb2.AppendRequest(close=ingest_pb2.CloseChannel()))
            await call.read()


FLOODS: Final[dict[str, tuple[str, Send]]] = {
    "writer, schema bombs": ("writer-1", _bombs_of_batches),
    "coordinator, schema bombs": ("coordinator-1", _bombs_of_tables),
    "writer, malformed protobuf": ("writer-1", _broken("/headgate.api.v1.IngestService/Append")),
    "coordinator, malformed protobuf": ("coordinator-1", _broken("/headgate.api.v1.TableService/ListTables")),
    "writer, opens and closes of channels": ("writer-1", _opens_and_closes),
}
"""By name: the part that is attacked, and what each of the callers does."""


def flood(name: str, address: str, seconds: float) -> None:
    """Attacks the server at ``address`` for so long, over one connection a caller."""
    asyncio.run(_flood(FLOODS[name][1], address, seconds))


async def _flood(send: Send, address: str, seconds: float) -> None:
    async def attack(caller: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await send(channel, caller)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
            for caller in range(_CALLERS):
                tasks.create_task(attack(caller))
