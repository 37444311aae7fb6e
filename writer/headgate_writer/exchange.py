"""Rows on their way between writers: streams that survive a broken connection and neither lose, double nor swap a frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Executor
from typing import Final, Protocol, TypeAlias

import grpc

from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_proto.cluster.v1 import exchange_pb2_grpc
from headgate_runtime.errors import UnknownMessageError
from headgate_runtime.logs import get_logger
from headgate_runtime.part_reader import PartReader
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import Clock
from headgate_writer.attached import AttachedTable, Member
from headgate_writer.buffers import MemoryBudget
from headgate_writer.exchange_stream import ExchangeStream
from headgate_writer.frame_reader import FrameReader
from headgate_writer.frames import encode_rows
from headgate_writer.known_members import KnownMembers
from headgate_writer.routing import RoutedRows
from headgate_writer.tallies import Tally
from headgate_writer.windows import WINDOW_BYTES, ExchangeError, ReceiveWindow

ExchangeContext: TypeAlias = "grpc.aio.ServicerContext[wire.ExchangeRequest, wire.ExchangeResponse]"

_log = get_logger()

_LARGE: Final = 64 << 10
"""Arrow bytes from which encoding and decoding leave the event loop."""


class ExchangeSender:
    """All streams of one table in one (epoch, generation) from this process to others. ``close`` ends it for good.

    Calls ``broken`` when rows cannot reach their bucket side any more: the owner has to abort.
    """

    def __init__(
        self,
        attached: AttachedTable,
        process: str,
        settings: ServiceSettings,
        clock: Clock,
        broken: Callable[[str], None],
        budget: MemoryBudget,
        executor: Executor,
    ) -> None:
        self._attached = attached
        self._process = process
        self._settings = settings
        self._clock = clock
        self._executor = executor
        self._budget = budget
        self._broken = broken
        self._streams: dict[str, ExchangeStream] = {}
        self._departed: list[ExchangeStream] = []
        self._new: asyncio.Queue[ExchangeStream] = asyncio.Queue()
        self._closed = False

    async def send_rows(
        self, member: Member, checkpoint: int, rows: RoutedRows, tally: Tally, waits: Callable[[], None] = lambda: None
    ) -> None:
        """Counts the frames in ``tally``, and returns when there is room for more; calls ``waits`` if there is none. After
        ``close`` or ``broken`` the rows go nowhere: they will be sent again.
        """
        if rows.nbytes < _LARGE:
            frames = encode_rows(rows)
        else:
            frames = await asyncio.get_running_loop().run_in_executor(self._executor, encode_rows, rows)
        for frame in frames:
            tally.add(frame.rows, frame.checksum)
        if not self._closed:
            await self._stream_to(member).send_frames(checkpoint, [frame.message for frame in frames], waits)

    async def send_barrier(self, member: Member, checkpoint: int) -> None:
        """Ends the checkpoint for that member, behind all that was sent to it."""
        if not self._closed:
            self._stream_to(member).send_barrier(checkpoint)

    def finish_departed(self, members: Iterable[Member]) -> None:
        """Ends the streams to all others once what was sent has arrived: they have no part in what comes."""
        for process in self._streams.keys() - {member.process for member in members}:
            stream = self._streams.pop(process)
            stream.finish()
            self._departed.append(stream)
        self._departed = [stream for stream in self._departed if not stream.ended]

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                stream = await self._new.get()
                group.create_task(stream.run())

    def close(self) -> None:
        """Drops what has not arrived. ``run`` has to be cancelled, too."""
        self._closed = True
        for stream in (*self._streams.values(), *self._departed):
            stream.close()

    def _stream_to(self, member: Member) -> ExchangeStream:
        stream = self._streams.get(member.process)
        if stream is None:
            name = wire.StreamName(
                table=self._attached.name,
                epoch=self._attached.epoch,
                generation=self._attached.generation,
                sender=self._process,
                receiver=member.process,
            )
            stream = self._streams[member.process] = ExchangeStream(
                member, name, self._settings, self._clock, self._budget, self._broken
            )
            self._new.put_nowait(stream)
        return stream


class Receiver(Protocol):
    """A bucket side. ``received``: by process id of the sender; ``frames``: of its table; ``members``: who may send some;
    ``over``: rows go nowhere any more.
    """

    received: dict[str, ReceiveWindow]
    frames: FrameReader
    members: KnownMembers

    @property
    def over(self) -> bool: ...

    def add_rows(self, checkpoint: int, rows: RoutedRows, sender: str) -> None: ...

    def add_barrier(self, checkpoint: int, sender: str) -> None: ...

    def report_broken(self, why: str, *, own: bool = False) -> None: ...


class Attachments(Protocol):
    """What this process has attached."""

    def current_side(self, table: str) -> tuple[int, int, Receiver] | None:
        """The (epoch, generation, bucket side) of now; None before any."""

    async def wait_for_change(self, table: str) -> None:
        """Returns at the next attachment or detachment of that table after this call."""


class ExchangeService(exchange_pb2_grpc.ExchangeServiceServicer):
    """The receiving end. Only what ``side`` has taken counts as arrived. ``decode``: of requests that come in parts."""

    def __init__(
        self,
        attachments: Attachments,
        process: str,
        budget: MemoryBudget,
        executor: Executor,
        decode: Callable[[bytes], wire.ExchangeRequest],
    ) -> None:
        self._process = process
        self._attachments = attachments
        self._budget = budget
        self._executor = executor
        self._decode = decode

    async def Exchange(  # type: ignore[override]
        self,
        request_iterator: AsyncIterator[wire.ExchangeRequest],  # noqa: ARG002 - gRPC's
        context: ExchangeContext,
    ) -> None:
        requests = PartReader(context, self._decode, None, "")
        if (first := await requests.read()) is None:
            return
        try:
            side = await self._side(first.name)
            sender = first.name.sender
            await context.write(wire.ExchangeResponse(resume=wire.Resume(last_number=_last_of(side, sender))))
            progress = asyncio.Event()
            progress.set()
            writing = asyncio.Lock()  # gRPC takes one write at a time, and goes on with one whose task is cancelled
            async with asyncio.TaskGroup() as group:
                crediting = group.create_task(self._credit(side, sender, progress, context, writing))
                try:
                    while (request := await requests.read()) is not None:
                        await self._take(side, sender, request.frame)
                        progress.set()
                finally:
                    async with writing:
                        crediting.cancel()
        except* ExchangeError as refused:
            why = str(refused.exceptions[0])
            await context.write(wire.ExchangeResponse(refused=wire.Refused(why=why)))

    async def _side(self, name: wire.StreamName) -> Receiver:
        """Waits for a pair that is newer than the one attached here: the exchange can be faster than the owner (rule EX5)."""
        if name.receiver != self._process:
            raise ExchangeError("another process is at this address")
        wanted = (name.epoch, name.generation)
        while (current := self._attachments.current_side(name.table)) is None or current[:2] < wanted:
            await self._attachments.wait_for_change(name.table)
        if current[:2] != wanted:
            raise ExchangeError(f"epoch {wanted[0]}, generation {wanted[1]} of the table is over")
        return current[2]

    async def _take(self, side: Receiver, sender: str, frame: wire.Frame) -> None:
        """Before anything else of a frame counts, its sender has a part in the frame's checkpoint (rule EX7)."""
        await side.members.check_sender(sender, frame.checkpoint)
        rows = None
        match frame.WhichOneof("content"):
            case "rows":
                rows = await self._decoded(frame.rows, side.frames)
            case "barrier":
                pass
            case None:
                raise ExchangeError(str(UnknownMessageError("the content of a frame")))
        # Nothing may be awaited from here on: another connection of the same stream could be taking the same frame.
        if side.over:
            raise ExchangeError("the table has moved on")
        arrivals = side.received.setdefault(sender, ReceiveWindow())
        if not arrivals.is_new(frame):
            return
        try:
            if rows is not None:
                arrivals.count_rows(frame)
                side.add_rows(frame.checkpoint, rows, sender)
            else:
                arrivals.check_barrier(frame)
                side.add_barrier(frame.checkpoint, sender)
        except ExchangeError as lost:
            side.report_broken(str(lost))
            raise
        except Exception as error:  # whatever it is, the frame is half taken, and is never offered again (rule RO12)
            _log.error("a frame failed here", checkpoint=frame.checkpoint, exc_info=error)
            why = f"{type(error).__name__}: {error}, while a frame of checkpoint {frame.checkpoint} was taken"
            side.report_broken(why, own=True)
            raise ExchangeError("a frame failed at its receiver, whose log says more") from error

    async def _decoded(self, rows: wire.Rows, frames: FrameReader) -> RoutedRows:
        if rows.ByteSize() < _LARGE:
            return frames.decode(rows)
        return await asyncio.get_running_loop().run_in_executor(self._executor, frames.decode, rows)

    async def _credit(
        self, side: Receiver, sender: str, progress: asyncio.Event, context: ExchangeContext, writing: asyncio.Lock
    ) -> None:
        """What has arrived may be forgotten by its sender; more may come while buckets have room (rule EX4)."""
        while True:
            await progress.wait()
            progress.clear()
            room = self._budget.has_bucket_room
            credit = wire.Credit(last_number=_last_of(side, sender), bytes=WINDOW_BYTES if room else 0)
            async with writing:
                await context.write(wire.ExchangeResponse(credit=credit))
            if not room:
                await self._budget.wait_for_bucket_room()
                progress.set()


def _last_of(side: Receiver, sender: str) -> int:
    """Number of the last frame that has arrived. Nothing is kept of a sender that none has been taken of."""
    return side.received[sender].last if sender in side.received else 0
