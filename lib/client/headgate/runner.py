"""Drives one channel's state over streams: finds a writer, opens, sends, listens, and after a break does it again.

The state is shared: calls from any thread put rows in under ``lock``, the event loop takes them out. What happens between
``lock`` and ``lock`` never waits.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable

import grpc
from grpc import aio

from headgate.channel_state import MAX_OFFSET, Acks, Ask, ChannelState, Cut, Entry, Level
from headgate.coordinators import Backoff, CallFailedError, Coordinators
from headgate.encoding import Encoder, decoded
from headgate.errors import (
    BatchRefusedError,
    ClosedError,
    HeadgateError,
    InternalError,
    NotCommittedError,
    UnavailableError,
    code_name,
)
from headgate.rows import RowFormat
from headgate.system import System
from headgate.transport import Failure, Transport, failure_of, failure_of_status
from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.api.v1 import ingest_pb2, ingest_pb2_grpc

_SILENCE_SECONDS = 3.0
"""So long may sent rows stay without any answer before the coordinators are asked whether the writer is still there."""

_GOODBYE_SECONDS = 1.0

_Call = aio.StreamStreamCall[ingest_pb2.AppendRequest, ingest_pb2.AppendResponse]


class ChannelRunner:
    """One producer's hold on a channel, from ``run`` to ``stop``."""

    def __init__(
        self,
        table: str,
        channel: str,
        coordinators: Coordinators,
        transport: Transport,
        system: System,
        encoder: Encoder,
        limit: int,
    ) -> None:
        self.name = channel
        self.state = ChannelState(limit)
        self.lock = threading.Lock()
        self.encoder = encoder
        self._table = table
        self._coordinators = coordinators
        self._transport = transport
        self._system = system
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()
        self._is_asleep = False
        self._failure: HeadgateError | None = None
        self._trouble: HeadgateError | None = None
        self._heard = 0
        self._schema = b""
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    # --- from any thread ---

    def try_take(self, kind: RowFormat, cut: Cut, offset: int | None) -> int | None:
        """Takes rows and returns their offset, or None when there is no room. Raises InvalidArgumentError."""
        with self.lock:
            if not self.state.has_room(cut.size):
                return None
            taken = self.state.take(kind, cut, offset)
        self.wake()
        return taken

    def wake(self) -> None:
        """There may be something to send."""
        if self._is_asleep:
            self._is_asleep = False
            self._loop.call_soon_threadsafe(self._wake.set)

    def check(self, offset: int | None = None) -> None:
        """Raises what keeps the channel from taking rows; not for rows that correct the refused batch."""
        if self._failure is not None:
            raise self._failure
        refusal = self.state.refusal
        if refusal is not None and offset != refusal.entry.offset:
            raise _refused(refusal.entry, refusal.error)

    @property
    def is_finished(self) -> bool:
        """Whether its task is over."""
        return self._task is not None and self._task.done()

    # --- on the event loop ---

    async def open(self, tasks: asyncio.TaskGroup, timeout: float) -> None:
        """Starts it and waits for the first answer. Raises what a server says; UnavailableError after ``timeout`` seconds."""
        self._task = tasks.create_task(self.run())
        try:
            await self.wait(lambda: self.state.incarnation > 0, timeout, 0, None)
        except BaseException:
            await self.stop()
            raise

    async def take(self, kind: RowFormat, cut: Cut, offset: int | None, timeout: float) -> int:
        """As ``try_take``, waiting for room. Raises NotCommittedError after ``timeout`` seconds without."""
        while (taken := self.try_take(kind, cut, offset)) is None:
            await self.wait(lambda: self.state.has_room(cut.size), timeout, MAX_OFFSET, None)
        return taken

    async def flush(self, level: Level, timeout: float) -> None:
        """Asks for a round and waits until all that was taken has reached ``level``."""
        self.check()
        with self.lock:
            target = self.state.taken
            if level != "received":
                self.state.ask_flush()
        self.wake()
        await self.wait(lambda: self.reached(level) >= target, timeout, target, level)

    def reached(self, level: Level) -> int:
        """The offset up to which rows have reached it."""
        offset: int = getattr(self.state.acks, level)
        return offset

    async def close(self, level: Level | None, timeout: float) -> None:
        """As ``flush``, then ends the stream; with None it only ends it. A channel that is closed already stays so."""
        try:
            if level is not None and not isinstance(self._failure, ClosedError):
                await self.flush(level, timeout)
                self._is_closing = True
                with self.lock:
                    self.state.ask_close()
                self.wake()
                # Everything is as safe as asked for; the goodbye only spares the writer from noticing it later.
                with contextlib.suppress(HeadgateError):
                    await self.wait(lambda: False, _GOODBYE_SECONDS, 0, None)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Ends the stream now. What is not committed may or may not be later."""
        self.fail(_closed(self.name))
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def wait(self, done: Callable[[], bool], timeout: float, offset: int, level: Level | None) -> None:
        """Until ``done``. Raises what makes that impossible; NotCommittedError after ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                while not done():
                    self._check_progress(offset)
                    await self._changed.wait()
        except TimeoutError:
            raise self._not_committed(timeout, offset, level) from self._trouble

    def _check_progress(self, offset: int) -> None:
        if self._failure is not None:
            raise self._failure
        refusal = self.state.refusal
        if refusal is not None and offset > refusal.entry.after:
            raise _refused(refusal.entry, refusal.error)

    def _not_committed(self, timeout: float, offset: int, level: Level | None) -> HeadgateError:
        trouble = f" ({self._trouble.message})" if self._trouble else ""
        if self.state.incarnation == 0:
            return UnavailableError(
                f"channel {self.name!r} could not be opened within {timeout:g} s{trouble}",
                fix="Look whether writers run and reach the coordinator, then try again.",
            )
        what = f"are not {level}" if level else "could not be taken"
        return NotCommittedError(
            f"rows up to offset {offset} of channel {self.name!r} {what} after {timeout:g} s; durable are those up to "
            f"{self.state.acks.durable}{trouble}",
            fix="They are kept and still being sent: wait again, or end the program and go on behind committed_offset.",
            offset=offset,
            level=level,
            acks=self.state.acks,
        )

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def fail(self, error: HeadgateError) -> None:
        """The channel is finished: every call raises ``error`` from now on."""
        self._failure = self._failure or error
        self._notify()

    async def run(self) -> None:
        """Until the task is cancelled or the channel has failed."""
        try:
            await self._run()
        except asyncio.CancelledError:
            self.fail(_closed(self.name))
            raise
        except HeadgateError as error:
            self.fail(error)
        except Exception as error:  # noqa: BLE001
            # Whatever it is: who waits for this channel has to hear of it.
            problem = InternalError(f"channel {self.name!r} stopped: {error!r}", fix="This is a defect; please report it.")
            problem.__cause__ = error
            self.fail(problem)

    async def _run(self) -> None:
        backoff = Backoff(self._system)
        address, avoided, durable = "", "", 0
        while True:
            try:
                address = address or await self._choose_writer(avoided)
                ending = await self._stream(address)
            except CallFailedError as error:
                ending = error.failure
            with self.lock:
                self.state.broke(restored=ending.code == wire.CODE_TABLE_RESTORED)
            self._trouble = ending.error
            if ending.action not in (wire.ACTION_RETRY, wire.ACTION_RESUME):
                raise ending.error
            self._notify()
            if self.state.acks.durable > durable:
                durable = self.state.acks.durable
                backoff.reset()
            avoided = address
            # Where it says; the same writer when only a round failed; else any that the coordinators name.
            address = ending.address or (address if ending.code == wire.CODE_REWOUND else "")
            await backoff.pause(ending.retry_after)

    async def _choose_writer(self, avoided: str) -> str:
        """Any but the one that has just failed: at the same moment all clients see the same one as the least loaded."""
        writers = await self._coordinators.writers()
        if not writers:
            error = UnavailableError("no writer takes channels now", fix="Start one, or wait until one is ready.")
            raise CallFailedError(Failure(error, wire.ACTION_RETRY))
        others = [writer for writer in writers if writer != avoided] or writers
        return others[int(self._system.randomness.random() * len(others))]

    # --- one stream ---

    async def _stream(self, address: str) -> Failure:
        """From open to the end, and why it ended."""
        async with self._transport.stream(address) as connection:
            stub: ingest_pb2_grpc.IngestServiceAsyncStub = ingest_pb2_grpc.IngestServiceStub(connection)
            call = stub.Append(metadata=self._transport.metadata)
            try:
                async with asyncio.TaskGroup() as tasks:
                    open_it = ingest_pb2.OpenChannel(table=self._table, channel=self.name, incarnation=self.state.incarnation)
                    sender = tasks.create_task(self._send(call, ingest_pb2.AppendRequest(open=open_it)))
                    listener = tasks.create_task(self._listen(call, address))
                    watcher = tasks.create_task(self._watch(address))
                    await asyncio.wait((listener, watcher), return_when=asyncio.FIRST_COMPLETED)
                    ending = listener.result() if listener.done() else watcher.result()
                    for task in (sender, listener, watcher):
                        task.cancel()
            finally:
                call.cancel()
                # gRPC hands the end of a call to its loop, which must not be closed by then.
                await call.code()
            return ending

    async def _send(self, call: _Call, first: ingest_pb2.AppendRequest) -> None:
        """What the state gives, as long as there is a stream. Its end is the listener's to tell."""
        try:
            await call.write(first)
            self._schema = b""
            while True:
                with self.lock:
                    message = self.state.next_message()
                    self._is_asleep = message is None
                    if message is None:
                        self._wake.clear()
                if message is None:
                    await self._wake.wait()
                else:
                    await call.write(self._request(message))
        except (aio.AioRpcError, asyncio.InvalidStateError):
            return

    def _request(self, message: Entry | Ask) -> ingest_pb2.AppendRequest:
        if message is Ask.FLUSH:
            return ingest_pb2.AppendRequest(flush=ingest_pb2.Flush())
        if message is Ask.CLOSE:
            return ingest_pb2.AppendRequest(close=ingest_pb2.CloseChannel())
        if message.kind is None:
            return ingest_pb2.AppendRequest(skip=ingest_pb2.Skip(offset=message.offset))
        schema = message.kind.schema_message
        batch = ingest_pb2.Batch(
            after=message.after,
            offset=message.offset,
            operation=message.kind.operation,
            operation_column=message.kind.operation_column,
            schema=b"" if schema == self._schema else schema,
            rows=self.encoder.merge([piece.content for piece in message.pieces], message.kind.schema),
        )
        self._schema = schema
        return ingest_pb2.AppendRequest(batch=batch)

    async def _listen(self, call: _Call, address: str) -> Failure:
        try:
            while True:
                answer = await call.read()
                if not isinstance(answer, ingest_pb2.AppendResponse):  # the end of the stream
                    status = await call.code()
                    if status is grpc.StatusCode.OK:
                        ended = UnavailableError(f"{address} ended the stream", fix="The SDK opens the channel again.")
                        return Failure(ended, wire.ACTION_RESUME)
                    return failure_of_status(status, await call.details() or "", await call.trailing_metadata(), address)
                self._heard += 1
                ending = self._hear(answer)
                self._notify()
                self.wake()
                if ending is not None:
                    return ending
        except aio.AioRpcError as error:
            return failure_of_status(error.code(), error.details() or "", error.trailing_metadata(), address)
        except HeadgateError as error:
            return Failure(error, wire.ACTION_GIVE_UP)

    def _hear(self, answer: ingest_pb2.AppendResponse) -> Failure | None:
        """Raises UnexplainedAnswerError, TableRestoredError."""
        which = answer.WhichOneof("message")
        with self.lock:
            if which == "opened":
                opened = answer.opened
                self.state.opened(opened.incarnation, opened.committed_offset, opened.max_in_flight_bytes)
            elif which == "acks":
                self.state.acked(Acks(answer.acks.received, answer.acks.durable, answer.acks.queryable))
            elif which == "refused":
                refused = answer.refused
                if refused.error.action != wire.ACTION_FIX_CALL:
                    return failure_of(refused.error)
                self.state.refused(refused.offset, refused.accepted, refused.error)
                self._schema = b""  # the server need not have taken over that of a refused batch
            elif which == "ended":
                return self._ended(answer.ended)
        return None

    def _ended(self, ended: ingest_pb2.Ended) -> Failure:
        if ended.HasField("error"):
            return failure_of(ended.error)
        # Without an error and unasked it is a stream's end like any other.
        return Failure(_closed(self.name), wire.ACTION_GIVE_UP if self._is_closing else wire.ACTION_RESUME)

    async def _watch(self, address: str) -> Failure:
        """Ends a stream that is silent while its writer is gone; a writer that is only slow stays."""
        while True:
            heard = self._heard
            await self._system.clock.sleep(_SILENCE_SECONDS)
            waits = self.state.awaits_answer or not self.state.is_open
            if heard != self._heard or not waits:
                continue
            try:
                is_gone = address not in await self._coordinators.writers()
            except CallFailedError:
                continue
            if is_gone:
                gone = UnavailableError(f"{address} does not answer and is no writer any more", fix="Another is looked for.")
                return Failure(gone, wire.ACTION_RESUME)


def _closed(name: str) -> ClosedError:
    return ClosedError(f"channel {name!r} is closed", fix="Open it again.")


def _refused(entry: Entry, error: wire.Error) -> BatchRefusedError:
    return BatchRefusedError(
        f"the batch behind offset {entry.after} up to {entry.offset} was refused: {error.message}",
        fix=f"{error.fix} Then send the corrected rows with offset={entry.offset}, or skip().",
        reason=code_name(error),
        after=entry.after,
        offset=entry.offset,
        rows=decoded(entry.pieces[0].content, entry.kind.schema),
    )
