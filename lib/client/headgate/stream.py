"""One stream of a channel, from `open` to its end: sends what the state gives, adopts what the writer answers."""

import asyncio
from typing import TYPE_CHECKING

import grpc
from grpc import aio

from headgate.coordinators import CallFailedError, Coordinators
from headgate.entries import Acks, Ask, Entry, Pause
from headgate.errors import HeadgateError, UnavailableError, from_wire
from headgate.shared_channel import SharedChannel, closed
from headgate.system import Clock
from headgate.transport import Failure, Transport, failure_of, failure_of_status
from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.api.v1 import ingest_pb2, ingest_pb2_grpc

if TYPE_CHECKING:
    Call = aio.StreamStreamCall[ingest_pb2.AppendRequest, ingest_pb2.AppendResponse]

_SILENCE_SECONDS = 3.0
"""So long may sent rows stay without any answer before the coordinators are asked whether the writer is still there."""


class Stream:
    """For one use: ``await Stream(…).run()`` tells why it ended."""

    def __init__(
        self, channel: SharedChannel, address: str, coordinators: Coordinators, transport: Transport, clock: Clock
    ) -> None:
        self._channel = channel
        self._address = address
        self._coordinators = coordinators
        self._transport = transport
        self._clock = clock
        self._schema = b""
        self._heard = 0

    async def run(self) -> Failure:
        """Cancelling it ends the stream."""
        async with self._transport.stream(self._address) as connection:
            stub: ingest_pb2_grpc.IngestServiceAsyncStub = ingest_pb2_grpc.IngestServiceStub(connection)
            call = stub.Append(metadata=self._transport.metadata)
            try:
                async with asyncio.TaskGroup() as tasks:
                    listener = tasks.create_task(self._listen(call))
                    others = [tasks.create_task(self._send(call)), watcher := tasks.create_task(self._watch())]
                    await asyncio.wait((listener, watcher), return_when=asyncio.FIRST_COMPLETED)
                    ending = listener.result() if listener.done() else watcher.result()
                    for task in (listener, *others):
                        task.cancel()
            finally:
                call.cancel()
                # gRPC hands the end of a call to its loop, which must not be closed by then.
                await call.code()
            return ending

    # --- out ---

    async def _send(self, call: "Call") -> None:
        """As long as there is a stream. Its end is the listener's to tell."""
        channel = self._channel
        opening = ingest_pb2.OpenChannel(table=channel.table, channel=channel.name, incarnation=channel.state.incarnation)
        try:
            await call.write(ingest_pb2.AppendRequest(open=opening))
            while True:
                message = await channel.next_message()
                if isinstance(message, Pause):
                    await self._clock.sleep(message.seconds)
                else:
                    await call.write(self._request(message))
        except (aio.AioRpcError, asyncio.InvalidStateError):
            return

    def _request(self, message: Entry | Ask) -> ingest_pb2.AppendRequest:
        if message is Ask.FLUSH:
            return ingest_pb2.AppendRequest(flush=ingest_pb2.Flush())
        if message is Ask.CLOSE:
            return ingest_pb2.AppendRequest(close=ingest_pb2.CloseChannel())
        kind = message.kind
        if kind is None:
            return ingest_pb2.AppendRequest(skip=ingest_pb2.Skip(offset=message.offset))
        batch = ingest_pb2.Batch(
            after=message.after,
            offset=message.offset,
            operation=kind.operation,
            operation_column=kind.operation_column,
            schema=b"" if kind.schema_message == self._schema else kind.schema_message,
            rows=self._channel.encoder.merge([piece.content for piece in message.pieces], kind.schema),
        )
        self._schema = kind.schema_message
        return ingest_pb2.AppendRequest(batch=batch)

    # --- in ---

    async def _listen(self, call: "Call") -> Failure:
        try:
            while True:
                answer = await call.read()
                if not isinstance(answer, ingest_pb2.AppendResponse):
                    return await self._end_of(call)
                self._heard += 1
                ending = self._hear(answer)
                self._channel.notify()
                if ending is not None:
                    return ending
        except aio.AioRpcError as error:
            return failure_of_status(error.code(), error.details() or "", error.trailing_metadata(), self._address)
        except HeadgateError as error:
            return Failure(error, wire.ACTION_GIVE_UP)

    async def _end_of(self, call: "Call") -> Failure:
        status = await call.code()
        if status is not grpc.StatusCode.OK:
            return failure_of_status(status, await call.details() or "", await call.trailing_metadata(), self._address)
        ended = UnavailableError(f"{self._address} ended the stream", fix="The SDK opens the channel again.")
        return Failure(ended, wire.ACTION_RESUME)

    def _hear(self, answer: ingest_pb2.AppendResponse) -> Failure | None:
        """Why the stream is over, if it is. Raises UnexplainedAnswerError, TableRestoredError."""
        state = self._channel.state
        with self._channel.lock:
            match answer.WhichOneof("message"):
                case "opened":
                    opened = answer.opened
                    state.opened(opened.incarnation, opened.committed_offset, opened.max_in_flight_bytes, opened.restored)
                case "acks":
                    received = state.acks.received
                    state.acked(Acks(answer.acks.received, answer.acks.durable, answer.acks.queryable))
                    if state.acks.received > received:
                        self._channel.held_back = None
                case "refused":
                    refused = answer.refused
                    if refused.error.action not in (wire.ACTION_FIX_CALL, wire.ACTION_RETRY):
                        return failure_of(refused.error)
                    state.refused(refused.offset, refused.accepted, refused.error, refused.rows)
                    if refused.error.action == wire.ACTION_RETRY:
                        self._channel.held_back = from_wire(refused.error)
                    self._schema = b""  # the server need not have taken over that of a refused batch
                case "ended":
                    return self._ended(answer.ended)
                case None:
                    pass  # a newer server's: the public contract may grow, and nothing that older clients need is a new kind
        return None

    def _ended(self, ended: ingest_pb2.Ended) -> Failure:
        if ended.HasField("error"):
            return failure_of(ended.error)
        # Without an error and unasked it is a stream's end like any other.
        return Failure(closed(self._channel.name), wire.ACTION_GIVE_UP if self._channel.is_closing else wire.ACTION_RESUME)

    async def _watch(self) -> Failure:
        """Ends a stream that is silent while its writer is gone; a writer that is only slow stays."""
        state = self._channel.state
        while True:
            heard = self._heard
            await self._clock.sleep(_SILENCE_SECONDS)
            if heard != self._heard or (state.is_open and not state.awaits_answer):
                continue
            try:
                writers = await self._coordinators.writers()
            except CallFailedError:
                continue
            if self._address not in writers:
                gone = UnavailableError(f"{self._address} is silent and no writer any more", fix="Another is looked for.")
                return Failure(gone, wire.ACTION_RESUME)
