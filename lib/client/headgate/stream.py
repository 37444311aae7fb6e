"""One stream of a channel, from `open` to its end: sends the channel's messages and applies the writer's answers."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

from grpc import aio

from headgate.acks import Acks
from headgate.answers import violation
from headgate.coordinators import CallFailedError, Coordinators
from headgate.entries import Control, Entry, Pause
from headgate.errors import HeadgateError, UnavailableError, from_wire
from headgate.failures import Failure, failure_of, failure_of_status
from headgate.shared_channel import SharedChannel, closed_error
from headgate.system import Clock
from headgate.transport import Transport, check_version
from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.api.v1 import ingest_pb2
from headgate_proto.handshake import by_key
from headgate_proto.ranges import OutOfRangeError, check_ranges
from headgate_proto.serialized import inside, requests_of, stream_of_requests, with_bytes
from headgate_proto.stream_reader import StreamReader

if TYPE_CHECKING:
    Call = aio.StreamStreamCall[bytes, ingest_pb2.AppendResponse]
    """Its requests are serialized ones."""

_INGEST = ingest_pb2.DESCRIPTOR.services_by_name["IngestService"]

_SILENCE_SECONDS = 3.0
"""How long sent rows may stay without an answer before the coordinators are asked whether the writer is still there."""

_UNHEARD_TIMES = 4
"""So many times as long, until a front address behind which no writer says anything is tried again."""

_UNOPENED_TIMES = 20
"""So many times as long, until a channel is opened again at a writer that is there. Long: a table's owner may first wait for
another writer to let the channel go."""


class Stream:
    """A stream, for one ``run``."""

    def __init__(
        self, channel: SharedChannel, address: str, coordinators: Coordinators, transport: Transport, clock: Clock
    ) -> None:
        self._channel = channel
        self._address = address
        self._coordinators = coordinators
        self._transport = transport
        self._clock = clock
        self._writer = "" if transport.front else address
        """The writer's own address; behind a front address it is not known before the writer has said it."""
        self._schema = b""
        self._answers = 0

    async def run(self) -> Failure:
        """Runs the stream and returns why it ended. Cancelling it ends the stream."""
        with self._transport.link(self._address, streams=1) as link:
            append = stream_of_requests(link.channel, _INGEST, "Append", ingest_pb2.AppendResponse)
            call = append(metadata=link.metadata)
            try:
                async with asyncio.TaskGroup() as tasks:
                    receiver = tasks.create_task(self._receive(call, link.has_tls))
                    others = [tasks.create_task(self._send(call)), watcher := tasks.create_task(self._watch_silence())]
                    await asyncio.wait((receiver, watcher), return_when=asyncio.FIRST_COMPLETED)
                    ending = receiver.result() if receiver.done() else watcher.result()
                    for task in (receiver, *others):
                        task.cancel()
            finally:
                call.cancel()
                # gRPC reports the end of a call on its loop, which must not be closed before that.
                await call.code()
            return link.judged(ending)

    # --- out ---

    async def _send(self, call: "Call") -> None:
        """Sends until the stream ends; ``_receive`` reports why it did."""
        channel = self._channel
        opening = ingest_pb2.OpenChannel(
            table=channel.table, channel=channel.name, incarnation=channel.state.incarnation, table_uuid=channel.uuid
        )
        try:
            await call.write(ingest_pb2.AppendRequest(open=opening).SerializeToString())
            while True:
                message = await channel.next_message()
                if isinstance(message, Pause):
                    await self._clock.sleep(message.seconds)
                else:
                    for request in self._requests(message):
                        await call.write(request)
        except (aio.AioRpcError, asyncio.InvalidStateError):
            return

    def _requests(self, message: Entry | Control) -> Iterator[bytes]:
        """What to send for it, serialized."""
        row_format = None if isinstance(message, Control) else message.row_format
        if row_format is None or isinstance(message, Control):
            yield _without_rows(message).SerializeToString()
            return
        batch = ingest_pb2.Batch(
            after=message.after,
            offset=message.offset,
            operation=row_format.operation,
            operation_column=row_format.operation_column,
            schema=b"" if row_format.schema_message == self._schema else row_format.schema_message,
        )
        rows = self._channel.encoder.merge([piece.content for piece in message.pieces], row_format.schema)
        self._schema = row_format.schema_message
        pieces = with_bytes(batch, ingest_pb2.Batch.ROWS_FIELD_NUMBER, memoryview(rows))
        request = ingest_pb2.AppendRequest
        yield from requests_of(inside(request.BATCH_FIELD_NUMBER, pieces), request.PART_FIELD_NUMBER)

    # --- in ---

    async def _receive(self, call: "Call", has_tls: bool) -> Failure:
        reader = StreamReader(call)
        try:
            said = await call.initial_metadata()
            server = self._transport.answered(self._address, said, heard=False)
            self._writer = self._writer or server
            while True:
                answer = await reader.read()
                if not isinstance(answer, ingest_pb2.AppendResponse):
                    ended = UnavailableError(f"{self._address} ended the stream", fix="The SDK opens the channel again.")
                    return Failure(ended, wire.ACTION_RESUME)
                if not self._answers:
                    check_version(by_key(said), self._address)
                self._answers += 1
                ending = self._apply(answer)
                self._channel.notify_waiters()
                if ending is not None:
                    return ending
        except aio.AioRpcError as error:
            status = (error.code(), error.details() or "", error.trailing_metadata())
            return failure_of_status(*status, self._address, tls=has_tls)
        except HeadgateError as error:
            return Failure(error, wire.ACTION_GIVE_UP)

    def _apply(self, answer: ingest_pb2.AppendResponse) -> Failure | None:
        """Applies an answer; returns the failure if it ends the stream. Raises ProtocolViolationError, TableRestoredError."""
        try:
            check_ranges(answer)
        except OutOfRangeError as wrong:
            raise violation(f"a message in which {wrong}") from wrong
        state = self._channel.state
        with self._channel.lock:
            match answer.WhichOneof("message"):
                case "opened":
                    opened = answer.opened
                    self._channel.columns = self._channel.columns or opened.table.schema
                    self._channel.columns_changed = False
                    state.stream_opened(opened.incarnation, opened.committed_offset, opened.max_in_flight_bytes, opened.restored)
                case "acks":
                    received = state.acks.received
                    state.rows_acked(Acks(answer.acks.received, answer.acks.durable, answer.acks.queryable))
                    if state.acks.received > received:
                        self._channel.refused_for_now = None
                case "refused":
                    refused = answer.refused
                    if refused.error.code == wire.CODE_SCHEMA and self._channel.columns_changed:
                        # By a writer that has not heard of the change yet; the next one that opens the channel has.
                        return Failure(from_wire(refused.error), wire.ACTION_RESUME)
                    if refused.error.action not in (wire.ACTION_FIX_CALL, wire.ACTION_RETRY):
                        return failure_of(refused.error)
                    state.batch_refused(refused.offset, refused.accepted, refused.error, refused.rows)
                    if refused.error.action == wire.ACTION_RETRY:
                        self._channel.refused_for_now = from_wire(refused.error)
                    self._schema = b""  # the server may not have kept the schema of a refused batch
                case "ended":
                    return self._ended(answer.ended)
                case None:
                    pass  # from a newer server: the contract may grow, but never by an answer that older clients need
        return None

    def _ended(self, ended: ingest_pb2.Ended) -> Failure:
        if ended.HasField("error"):
            return failure_of(ended.error)
        # Without an error, and not asked for, it ends the stream like a break.
        return Failure(closed_error(self._channel.name), wire.ACTION_GIVE_UP if self._channel.is_closing else wire.ACTION_RESUME)

    async def _watch_silence(self) -> Failure:
        """Returns when the stream is silent and its writer is gone, or nobody opens it; a slow writer keeps its stream."""
        state = self._channel.state
        unheard = 0
        while True:
            heard = self._answers
            await self._clock.sleep(_SILENCE_SECONDS)
            if heard != self._answers or (state.is_open and not state.awaits_answer):
                continue
            unheard += not state.is_open
            if unheard >= (_UNOPENED_TIMES if self._writer else _UNHEARD_TIMES):
                where = f"at {self._writer}" if self._writer else f"behind {self._transport.front}"
                unheard_of = UnavailableError(f"the channel was not opened {where}", fix="The SDK tries again.")
                return Failure(unheard_of, wire.ACTION_RESUME)
            if not self._writer:
                continue
            try:
                writers = await self._coordinators.find_writers()
            except CallFailedError:
                continue
            if self._writer not in writers:
                gone = UnavailableError(f"{self._writer} is silent and no longer a writer", fix="The SDK tries another writer.")
                return Failure(gone, wire.ACTION_RESUME)


def _without_rows(message: Entry | Control) -> ingest_pb2.AppendRequest:
    """The request for a skip or a control."""
    match message:
        case Control.FLUSH:
            return ingest_pb2.AppendRequest(flush=ingest_pb2.Flush())
        case Control.CLOSE:
            return ingest_pb2.AppendRequest(close=ingest_pb2.CloseChannel())
        case Entry():
            return ingest_pb2.AppendRequest(skip=ingest_pb2.Skip(after=message.after, offset=message.offset))
        case _:
            assert_never(message)
