"""The sending end of one exchange stream: it connects again until the receiver has everything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias, cast

import grpc

from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_proto.handshake import by_key
from headgate_proto.ranges import OutOfRangeError, check_ranges
from headgate_proto.serialized import inside, requests_of, stream_of_requests
from headgate_proto.stream_reader import StreamReader
from headgate_runtime.channels import UnsafeAddressError, connect
from headgate_runtime.errors import UnknownMessageError
from headgate_runtime.greeting import version_refusal
from headgate_runtime.peers import ServiceKind
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import Clock
from headgate_tables.backoff import Backoff
from headgate_writer.attached import Member
from headgate_writer.buffers import MemoryBudget
from headgate_writer.windows import WINDOW_BYTES, ExchangeError, SendWindow

_Call: TypeAlias = "grpc.aio.StreamStreamCall[bytes, wire.ExchangeResponse]"
"""Its requests are serialized ones."""

_SERVICE: Final = wire.DESCRIPTOR.services_by_name["ExchangeService"]

UNREACHABLE_S: Final = 5.0
"""Seconds without a connection to a writer that rows wait for, until the checkpoint is aborted. Longer than a coordinator needs
to notice that the writer is gone, which is the usual reason."""

_ATTEMPTS: Final = 10
"""Streams in a row that break without an acknowledged frame, until the checkpoint is aborted."""

_PAUSES: Final = Backoff(first=0.01, longest=UNREACHABLE_S)
"""Pauses between these streams, each twice as long as the one before: together as long as ``UNREACHABLE_S``. A connection that
was reset counts as ready until gRPC has closed it, and streams on it break at once
(test_streams_that_break_at_once_for_a_while_do_not_end_the_checkpoint).
"""

_FAILURES: Final = (grpc.aio.AioRpcError, asyncio.InvalidStateError)
"""How a broken stream shows; grpcio raises the second for a write after the end."""


class ExchangeStream:
    """One stream, over as many connections as it takes. Without frames that wait it does not mind being disconnected."""

    def __init__(
        self,
        member: Member,
        name: wire.StreamName,
        settings: ServiceSettings,
        clock: Clock,
        budget: MemoryBudget,
        broken: Callable[[str], None],
    ) -> None:
        self._member = member
        self._name = name
        self._settings = settings
        self._clock = clock
        self._budget = budget
        self._on_broken = broken
        self._frames = SendWindow()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._over = self._finished = False

    async def send_frames(self, checkpoint: int, frames: list[wire.Rows], waits: Callable[[], None]) -> None:
        """Returns when there is room for more; calls ``waits`` if there is none."""
        if not self._over:
            for rows in frames:
                self._budget.reserve(self._frames.append_rows(checkpoint, rows))
            self._update()
        if not self._room.is_set():
            waits()
        await self._room.wait()

    def send_barrier(self, checkpoint: int) -> None:
        """Behind all that was sent."""
        if not self._over:
            self._frames.append_barrier(checkpoint)
            self._update()

    def finish(self) -> None:
        """Ends it when all that was sent has arrived: its member has no part in what comes."""
        self._finished = True
        self._update()

    def close(self) -> None:
        """Drops what has not arrived; what is sent from now on goes nowhere."""
        self._over = True
        self._budget.free(self._frames.nbytes)
        self._frames = SendWindow()
        self._update()

    async def run(self) -> None:
        """Until it is cancelled, cannot go on, or is finished."""
        try:
            channel = connect(self._member.address, self._settings, ServiceKind.WRITER)
        except UnsafeAddressError as unsafe:
            self._broken(str(unsafe))
            return
        try:
            attempts = 0
            while await self._wait_for_frames():
                before = self._frames.acknowledged
                why = await self._connected(channel)
                attempts = attempts + 1 if self._frames.acknowledged == before else 0
                if attempts == _ATTEMPTS:
                    self._broken(why)
                elif attempts:
                    await self._clock.sleep(_PAUSES.after(attempts))
        except ExchangeError as lost:
            self._broken(str(lost))
        finally:
            await channel.close()

    async def _wait_for_frames(self) -> bool:
        """Returns False at the end, when none will come."""
        while not (len(self._frames) or self.ended):
            self._changed.clear()
            await self._changed.wait()
        return not self.ended

    @property
    def ended(self) -> bool:
        """Whether it is closed, or is finished and all has arrived."""
        return self._over or (self._finished and not len(self._frames))

    async def _connected(self, channel: grpc.aio.Channel) -> str:
        """One connection, from name to break; says why it broke."""
        try:
            async with asyncio.timeout(UNREACHABLE_S):
                await channel.channel_ready()
        except TimeoutError:
            self._broken("it cannot be reached")
            return ""
        call = stream_of_requests(channel, _SERVICE, "Exchange", wire.ExchangeResponse)()
        answers = StreamReader(call)
        why = "it ended the stream"
        try:
            await call.write(wire.ExchangeRequest(name=self._name).SerializeToString())
            first = await answers.read()
            if first is grpc.aio.EOF:
                return why
            if skewed := version_refusal(by_key(await call.initial_metadata())):
                self._broken(skewed)
                return ""
            self._receive(cast(wire.ExchangeResponse, first))
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._write(call))
                while not self.ended and (answer := await answers.read()) is not grpc.aio.EOF:
                    self._receive(cast(wire.ExchangeResponse, answer))
                writing.cancel()
        except* _FAILURES as failed:
            why = str(failed.exceptions[0])
        except* ExchangeError as lost:
            self._broken(str(lost.exceptions[0]))
        finally:
            call.cancel()
        return why

    async def _write(self, call: _Call) -> None:
        while True:
            self._changed.clear()
            while (frame := self._frames.next_frame()) is not None:
                await _send(call, frame)
            await self._changed.wait()

    def _receive(self, answer: wire.ExchangeResponse) -> None:
        if self._over:
            return
        try:
            check_ranges(answer)
        except OutOfRangeError as wrong:
            raise ExchangeError(str(wrong)) from wrong
        match answer.WhichOneof("message"):
            case "resume":
                self._budget.free(self._frames.resume(answer.resume.last_number))
            case "credit":
                self._budget.free(self._frames.acknowledge(answer.credit.last_number, answer.credit.bytes))
            case "refused":
                raise ExchangeError(answer.refused.why)
            case None:
                raise ExchangeError(str(UnknownMessageError("its answer")))
        self._update()

    def _update(self) -> None:
        self._changed.set()
        if self._over or self._frames.nbytes < WINDOW_BYTES:
            self._room.set()
        else:
            self._room.clear()

    def _broken(self, why: str) -> None:
        if not self._over:
            self.close()
            self._on_broken(f"rows do not reach the writer at {self._member.address}: {why}")


async def _send(call: _Call, frame: wire.Frame) -> None:
    """Keeps no part of the frame behind it: most streams wait most of the time."""
    request = wire.ExchangeRequest
    pieces = inside(request.FRAME_FIELD_NUMBER, [frame.SerializeToString()])
    for each in requests_of(pieces, request.PART_FIELD_NUMBER):
        await call.write(each)
