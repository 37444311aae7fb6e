"""A client of one channel that says and hears exactly what a test wants, over real gRPC."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pyarrow as pa

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_proto.api.v1.ingest_pb2_grpc import IngestServiceStub
from headgate_proto.stream_reader import StreamReader
from support.parts import messages_of


class Producer:
    """One stream. ``offset`` is that of the last batch sent with ``append``."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._reader: StreamReader[ingest_pb2.AppendResponse] = StreamReader(call)
        self.offset = 0

    async def open(self, table: str, channel: str = "c", incarnation: int = 0) -> None:
        """Says so; ``answer`` hears what comes."""
        opening = ingest_pb2.OpenChannel(table=table, channel=channel, incarnation=incarnation)
        await self._call.write(ingest_pb2.AppendRequest(open=opening))

    async def append(self, rows: pa.Table, *, after: int | None = None, operation: int = 1) -> int:
        """One batch behind the last one; returns its offset."""
        after = self.offset if after is None else after
        self.offset = after + rows.num_rows
        await self.send(after, self.offset, rows, operation)
        return self.offset

    async def send(self, after: int, offset: int, rows: pa.Table, operation: int = 1) -> None:
        """One batch as it is said."""
        message = rows.combine_chunks().to_batches()[0]
        batch = ingest_pb2.Batch(
            after=after,
            offset=offset,
            operation=operation,  # type: ignore[arg-type]
            schema=message.schema.serialize().to_pybytes(),
            rows=message.serialize().to_pybytes(),
        )
        await self.say(batch=batch)

    async def say(self, **content: Any) -> None:
        """Any message, in parts if it is large."""
        for message in messages_of(ingest_pb2.AppendRequest(**content)):
            await self._call.write(message)

    async def say_at_once(self, **content: Any) -> None:
        """Any message, not in parts however large it is; the server may end the stream meanwhile."""
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self._call.write(ingest_pb2.AppendRequest(**content))

    async def status(self) -> grpc.StatusCode:
        """How the call ended, which it has to."""
        try:
            while await self._reader.read() is not grpc.aio.EOF:
                pass
        except grpc.aio.AioRpcError as ended:
            return ended.code()
        return grpc.StatusCode.OK

    async def answer(self) -> ingest_pb2.AppendResponse:
        """The next one; one without content at the stream's end."""
        answer = await self._reader.read()
        return ingest_pb2.AppendResponse() if answer is grpc.aio.EOF else answer

    async def opened(self) -> ingest_pb2.Opened:
        """The next answer, which is that."""
        answer = await self.answer()
        assert _kind(answer) == "opened", answer
        return answer.opened

    async def acked(self, *, received: int = 0, durable: int = 0, queryable: int = 0) -> ingest_pb2.Acks:
        """Reads acks until they say at least that. Nothing else may come before."""
        while True:
            answer = await self.answer()
            assert _kind(answer) == "acks", answer
            acks = answer.acks
            if acks.received >= received and acks.durable >= durable and acks.queryable >= queryable:
                return acks

    async def refused(self) -> ingest_pb2.Refused:
        """The next answer that is not an ack, which is that."""
        answer = await self._no_acks()
        assert _kind(answer) == "refused", answer
        return answer.refused

    async def ended(self) -> "errors_pb2.Code.ValueType":
        """The next answer that is not an ack is the stream's last; its error's code, 0 without one."""
        answer = await self._no_acks()
        assert _kind(answer) == "ended", answer
        assert _kind(await self.answer()) is None
        return answer.ended.error.code

    def vanish(self) -> None:
        """Breaks the stream, as a client does that dies."""
        self._call.cancel()

    async def _no_acks(self) -> ingest_pb2.AppendResponse:
        while _kind(answer := await self.answer()) == "acks":
            pass
        return answer


def _kind(answer: ingest_pb2.AppendResponse) -> str | None:
    return answer.WhichOneof("message")


@asynccontextmanager
async def producers(address: str) -> AsyncIterator[Any]:
    """Yields a function that makes producers at the writer there."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub = IngestServiceStub(channel)
        yield lambda: Producer(stub.Append())
