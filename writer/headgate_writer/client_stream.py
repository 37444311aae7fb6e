"""Serves one client's stream after its open: batches in, answers out, backpressure between them (rules CH6, CH7)."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import grpc
import pyarrow as pa

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_runtime.caller_rates import CallerRates
from headgate_runtime.errors import RpcError, from_tables, wire_error
from headgate_runtime.part_reader import PartReader
from headgate_runtime.read_budget import ReadBudget
from headgate_runtime.tarpit import Tarpit
from headgate_runtime.turns import Turns
from headgate_writer.admission import Admission, Admitted
from headgate_writer.buffers import MemoryBudget
from headgate_writer.channels import Disposition, Hold
from headgate_writer.filling import Filling
from headgate_writer.metrics import Refusals
from headgate_writer.principal_rates import PrincipalRate, PrincipalRates, UsageNow
from headgate_writer.routing import TooLargeError
from headgate_writer.table_writer import TableWriter

Requests: TypeAlias = PartReader[ingest_pb2.AppendRequest]
AppendContext: TypeAlias = "grpc.aio.ServicerContext[ingest_pb2.AppendRequest, ingest_pb2.AppendResponse]"

_OUT_OF_PLACE = wire_error(
    errors_pb2.CODE_INVALID_ARGUMENT,
    "a message is a second `open`, or of a kind that this writer does not know",
    "Open one channel on a stream; use a client of the cluster's version.",
)

UNREAD_ANSWERS = 256
"""So many refusals, of 1 KB each, may wait for a client that sends and does not read."""
INLINE_BYTES = 16 << 10
"""A message up to this size is decoded on the loop: it takes less time than the way to another thread and back."""

INLINE_SCHEMA_BYTES = 2 << 10
"""The same of a schema, whose columns cost some microseconds each, and which has no more than this allows."""


@dataclass(frozen=True, slots=True)
class StreamResources:
    """What all streams of the process share. ``budgets``: clients are not read while one of them is full.

    ``decode``, ``receiving``: for requests that come in parts. ``opens``: how often callers open streams. ``schemas``: turns to
    read one that is large. ``max_in_flight``: wire bytes of one stream that are not yet queryable.
    """

    admission: Admission
    budgets: Sequence[MemoryBudget]
    decode: Callable[[bytes], ingest_pb2.AppendRequest]
    receiving: ReadBudget
    cpu: Executor
    refusals: Refusals
    tarpit: Tarpit
    opens: CallerRates
    schemas: Turns
    rates: PrincipalRates
    max_in_flight: int
    reached: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PrincipalLimits:
    """Of the principal whose stream it is. ``sharer``: its name, or that of the connection where nobody has one."""

    sharer: str
    rate: PrincipalRate
    usage: UsageNow


class ClientStream:
    """``requests`` are those of ``context``, the servicer's, whose write it uses."""

    def __init__(
        self,
        requests: Requests,
        context: AppendContext,
        hold: Hold,
        writer: TableWriter,
        shared: StreamResources,
        limits: PrincipalLimits,
    ) -> None:
        self._requests = requests
        self._limits = limits
        self._context = context
        self._hold = hold
        self._writer = writer
        self._shared = shared
        self._schema: pa.Schema | None = None
        self._filling = Filling(writer.attached.definition)
        self._answers_due = asyncio.Event()
        self._moved_on = asyncio.Event()
        self._durable_answered = hold.committed_at_open
        hold.wake = self._wake
        self._wake()

    async def serve(self) -> None:
        """Returns when the hold has ended and the client has its last answer, or the client ended its side without a close."""
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._read_all())
            answering = group.create_task(self._answer_all())
            await asyncio.wait((reading, answering), return_when=asyncio.FIRST_COMPLETED)
            if reading.done() and not reading.cancelled() and reading.exception() is None and reading.result():
                await asyncio.wait((answering,))
            reading.cancel()
            answering.cancel()

    async def _read_all(self) -> bool:
        """Returns True after a close or a message out of place, False when the client is gone."""
        try:
            while (request := await self._requests.read()) is not None:
                kind = request.WhichOneof("message")
                match kind:
                    case "batch":
                        refusal = await self._batch(request.batch)
                        del request  # frees the message before the next one is read
                        self._requests.release()
                        if refusal is not None:
                            await self._shared.tarpit.wait_if_at_fault(self._limits.sharer, refusal)
                        await self._room()
                    case "skip":
                        self._skip(request.skip)
                        await self._room()
                    case "flush":
                        self._ask_checkpoint()
                    case "close":
                        self._ask_checkpoint()
                        self._hold.close()
                        return True
                    case "open" | "part" | None:
                        self._hold.end(_OUT_OF_PLACE)
                        return True
                    case _:
                        assert_never(kind)
        except RpcError as refused:
            refusal = refused.error
        else:
            return False
        self._requests.release()
        await self._shared.tarpit.wait_if_at_fault(self._limits.sharer, refusal)
        self._hold.end(refusal)
        return True

    def _skip(self, skip: ingest_pb2.Skip) -> None:
        after = skip.after if skip.HasField("after") else None
        if (entry := self._hold.take_skip(after, skip.offset)) is not None:
            self._writer.append_entry(entry)

    async def _batch(self, batch: ingest_pb2.Batch) -> errors_pb2.Error | None:
        """Returns why its bytes are refused; None if they are not."""
        hold = self._hold
        after, offset = batch.after, batch.offset
        rows, schema = batch.rows, batch.schema  # once: each access copies them, and to ask for the message's size copies it
        wire_bytes = len(rows) + len(schema)
        refusal: errors_pb2.Error | None = None
        try:
            # Also from a batch that is not taken: later batches rely on its schema.
            if schema:
                self._schema = await self._read_schema(schema)
            disposition = self._judge(after, offset)
            if disposition is Disposition.TAKE:
                admitted = await self._decoded(batch, rows)
                # Meanwhile an earlier batch may have failed, or the table may have been stopped; no batch is taken after that.
                disposition = self._judge(after, offset)
                if disposition is Disposition.TAKE:
                    self._limits.rate.count(admitted.rows.num_rows, admitted.nbytes, self._limits.usage())
                    self._writer.append_entry(hold.take_batch(offset, wire_bytes, admitted))
                    return None
        except RpcError as refused:
            disposition = refusal = refused.error
        if disposition is Disposition.DUPLICATE:
            hold.answer_duplicate()
        elif isinstance(disposition, errors_pb2.Error):
            hold.refuse_batch(offset, disposition)
        return refusal

    def _judge(self, after: int, offset: int) -> Disposition | errors_pb2.Error:
        disposition = self._hold.judge_batch(after, offset)
        if disposition is Disposition.TAKE and (stopped := self._writer.rate.refusal) is not None:
            return stopped
        return disposition

    async def _read_schema(self, message: bytes) -> pa.Schema:
        read = self._shared.admission.schema
        if len(message) <= INLINE_SCHEMA_BYTES:
            return read(message)
        await self._shared.tarpit.wait_for_turn(self._limits.sharer)
        async with self._shared.schemas.turn(self._limits.sharer):
            return await asyncio.get_running_loop().run_in_executor(self._shared.cpu, read, message)

    async def _decoded(self, batch: ingest_pb2.Batch, rows: bytes) -> Admitted:
        if len(rows) <= INLINE_BYTES:
            return self._admitted(batch, rows)
        return await asyncio.get_running_loop().run_in_executor(self._shared.cpu, self._admitted, batch, rows)

    def _admitted(self, batch: ingest_pb2.Batch, rows: bytes) -> Admitted:
        admitted = self._shared.admission.decode(batch, rows, self._schema)
        try:
            return self._filling.counted(admitted, self._schema)
        except TooLargeError as error:
            raise RpcError(from_tables(error)) from error

    async def _room(self) -> None:
        """Waits until the next batch may be read (rule CH7): memory and the filling checkpoint have room, the rates of the table
        and of the principal allow it, and less than ``max_in_flight`` bytes of the stream are in flight. From half of these it
        asks for a checkpoint. A client that does not read its answers is not read either.
        """
        await self._limits.rate.wait_for_turn(self._limits.usage)
        await self._writer.rate.wait_for_turn()
        await self._writer.window.wait_open()
        for budget in self._shared.budgets:
            if not budget.has_room:
                await budget.wait_for_room()
        if self._hold.in_flight > self._shared.max_in_flight // 2:
            self._ask_checkpoint()
        while self._is_far_ahead and not self._hold.ended:
            self._moved_on.clear()
            await self._moved_on.wait()

    @property
    def _is_far_ahead(self) -> bool:
        return self._hold.in_flight > self._shared.max_in_flight or self._hold.untaken > UNREAD_ANSWERS

    def _ask_checkpoint(self) -> None:
        if self._hold.unnoted:
            self._writer.ask_checkpoint()

    def _wake(self) -> None:
        self._answers_due.set()
        self._moved_on.set()

    async def _answer_all(self) -> None:
        due, hold, write = self._answers_due, self._hold, self._context.write
        while True:
            await due.wait()
            due.clear()
            answers = hold.take_answers()
            self._moved_on.set()
            for answer in answers:
                kind = answer.WhichOneof("message")
                if kind == "refused":  # counted first: the client may leave as soon as it has the answer, or before
                    self._shared.refusals.count_refusal(answer.refused.error.code)
                try:
                    await write(answer)
                except grpc.aio.BaseError:
                    return  # the client is gone; gRPC raises this at the first write only
                if kind == "acks" and answer.acks.durable > self._durable_answered:
                    self._durable_answered = answer.acks.durable
                    self._shared.reached("acks_sent")
                elif kind == "ended":
                    return
