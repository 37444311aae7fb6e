"""Rows on their way between writers: streams that survive a broken connection and neither lose, double nor swap a frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from typing import Any, Final, Protocol

import grpc
import pyarrow as pa

from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_proto.cluster.v1 import exchange_pb2_grpc
from headgate_runtime.channels import connect
from headgate_runtime.settings import ServiceSettings
from headgate_writer.adopted import AdoptedTable, Member
from headgate_writer.buffers import Budget
from headgate_writer.frames import decode, encode
from headgate_writer.routing import RoutedRows
from headgate_writer.windows import Arrivals, ExchangeError, Outgoing

WINDOW_BYTES: Final = 8 << 20
"""Bytes under way on one stream. Lower: a sender waits for its receiver more often; higher: so much more memory at both ends."""

UNREACHABLE_S: Final = 5.0
"""Seconds without a connection to a writer that rows wait for, until the round is given up. Longer than a coordinator needs to
notice that the writer is gone, which is the usual reason."""

_ATTEMPTS: Final = 10
"""Streams in a row that broke without a frame having arrived."""

_LARGE: Final = 64 << 10
"""Arrow bytes from which encoding and decoding leave the event loop."""

_FAILURES: Final = (grpc.aio.AioRpcError, asyncio.InvalidStateError)
"""How a broken stream shows; grpcio raises the second for a write after the end."""


class ExchangeOut:
    """All streams of one table in one (epoch, generation) from this process to others. ``close`` ends it for good.

    ``broken`` is told when rows cannot reach their bucket side any more: the owner has to abort.
    """

    def __init__(
        self,
        adopted: AdoptedTable,
        process: str,
        settings: ServiceSettings,
        broken: Callable[[str], None],
        budget: Budget,
        executor: Executor,
    ) -> None:
        self._adopted = adopted
        self._process = process
        self._settings = settings
        self._executor = executor
        self._budget = budget
        self._broken = broken
        self._links: dict[str, _Link] = {}
        self._new: asyncio.Queue[_Link] = asyncio.Queue()
        self._closed = False

    async def send(self, member: Member, round: int, rows: RoutedRows) -> None:
        """Returns when there is room for more. After ``close`` or ``broken`` the rows go nowhere: they will be sent again."""
        if rows.nbytes < _LARGE:
            frames = encode(rows)
        else:
            frames = await asyncio.get_running_loop().run_in_executor(self._executor, encode, rows)
        if not self._closed:
            await self._link(member).send(round, frames)

    async def barrier(self, member: Member, round: int) -> None:
        """Ends the round for that member, behind all that was sent to it."""
        if not self._closed:
            self._link(member).barrier(round)

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                link = await self._new.get()
                group.create_task(link.run())

    def close(self) -> None:
        """Drops what has not arrived. ``run`` has to be cancelled, too."""
        self._closed = True
        for link in self._links.values():
            link.close()

    def _link(self, member: Member) -> _Link:
        link = self._links.get(member.process)
        if link is None:
            name = wire.StreamName(
                table=self._adopted.name,
                epoch=self._adopted.epoch,
                generation=self._adopted.generation,
                sender=self._process,
                receiver=member.process,
            )
            link = self._links[member.process] = _Link(member, name, self._settings, self._budget, self._broken)
            self._new.put_nowait(link)
        return link


class _Link:
    """One stream, over as many connections as it takes. Without frames that wait it does not mind being disconnected."""

    def __init__(
        self, member: Member, name: wire.StreamName, settings: ServiceSettings, budget: Budget, broken: Callable[[str], None]
    ) -> None:
        self._member = member
        self._name = name
        self._settings = settings
        self._budget = budget
        self._tell_broken = broken
        self._frames = Outgoing()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._over = False

    async def send(self, round: int, frames: list[wire.Rows]) -> None:
        if not self._over:
            for rows in frames:
                self._budget.hold(self._frames.rows(round, rows))
            self._update()
        await self._room.wait()

    def barrier(self, round: int) -> None:
        if not self._over:
            self._frames.barrier(round)
            self._update()

    def close(self) -> None:
        self._over = True
        self._budget.give_back(self._frames.nbytes)
        self._frames = Outgoing()
        self._update()

    async def run(self) -> None:
        channel = connect(self._member.address, self._settings)
        try:
            attempts = 0
            while not self._over:
                await self._until_frames_wait()
                before = self._frames.acknowledged
                why = await self._connected(channel)
                attempts = attempts + 1 if self._frames.acknowledged == before else 0
                if attempts == _ATTEMPTS:
                    self._broken(why)
        except ExchangeError as lost:
            self._broken(str(lost))
        finally:
            await channel.close()

    async def _until_frames_wait(self) -> None:
        while not (len(self._frames) or self._over):
            self._changed.clear()
            await self._changed.wait()

    async def _connected(self, channel: grpc.aio.Channel) -> str:
        """One connection, from name to break; says why it broke."""
        try:
            async with asyncio.timeout(UNREACHABLE_S):
                await channel.channel_ready()
        except TimeoutError:
            self._broken("it cannot be reached")
            return ""
        call: Any = exchange_pb2_grpc.ExchangeServiceStub(channel).Exchange()
        why = "it ended the stream"
        try:
            await call.write(wire.ExchangeRequest(name=self._name))
            first = await call.read()
            if first is grpc.aio.EOF:
                return why
            self._hear(first)
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._write(call))
                while (answer := await call.read()) is not grpc.aio.EOF and not self._over:
                    self._hear(answer)
                writing.cancel()
        except* _FAILURES as failed:
            why = str(failed.exceptions[0])
        except* ExchangeError as lost:
            self._broken(str(lost.exceptions[0]))
        finally:
            call.cancel()
        return why

    async def _write(self, call: Any) -> None:
        while True:
            self._changed.clear()
            while (frame := self._frames.next()) is not None:
                await call.write(wire.ExchangeRequest(frame=frame))
            await self._changed.wait()

    def _hear(self, answer: wire.ExchangeResponse) -> None:
        if self._over:
            return
        kind = answer.WhichOneof("message")
        if kind == "resume":
            self._budget.give_back(self._frames.resumed(answer.resume.last_number))
        elif kind == "credit":
            self._budget.give_back(self._frames.arrived(answer.credit.last_number, answer.credit.bytes))
        else:
            raise ExchangeError(answer.refused.why)
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
            self._tell_broken(f"rows do not reach the writer at {self._member.address}: {why}")


class Receiver(Protocol):
    """A bucket side. ``arrivals``: by process id of the sender; ``over``: rows go nowhere any more."""

    arrivals: dict[str, Arrivals]

    @property
    def over(self) -> bool: ...

    def take(self, round: int, rows: RoutedRows) -> None: ...

    def barrier(self, round: int, sender: str) -> None: ...

    def broken(self, why: str) -> None: ...


class Adoptions(Protocol):
    """What this process has adopted."""

    def current(self, table: str) -> tuple[int, int, Receiver] | None:
        """The (epoch, generation, bucket side) of now; None before any."""

    async def changed(self, table: str) -> None:
        """Returns at the next adoption or release of that table after this call."""


class ExchangeService(exchange_pb2_grpc.ExchangeServiceServicer):
    """The receiving end. Only what ``side`` has taken counts as arrived."""

    def __init__(self, adoptions: Adoptions, process: str, budget: Budget, executor: Executor) -> None:
        self._process = process
        self._adoptions = adoptions
        self._budget = budget
        self._executor = executor

    async def Exchange(self, request_iterator: AsyncIterator[wire.ExchangeRequest], context: Any) -> None:  # type: ignore[override]
        first = await anext(aiter(request_iterator), None)
        if first is None:
            return
        try:
            side = await self._side(first.name)
            arrivals = side.arrivals.setdefault(first.name.sender, Arrivals())
            await context.write(wire.ExchangeResponse(resume=wire.Resume(last_number=arrivals.last)))
            progress = asyncio.Event()
            progress.set()
            async with asyncio.TaskGroup() as group:
                crediting = group.create_task(self._credit(arrivals, progress, context))
                async for request in request_iterator:
                    await self._take(side, first.name.sender, arrivals, request.frame)
                    progress.set()
                crediting.cancel()
        except* ExchangeError as refused:
            why = str(refused.exceptions[0])
            await context.write(wire.ExchangeResponse(refused=wire.Refused(why=why)))

    async def _side(self, name: wire.StreamName) -> Receiver:
        """Waits for a pair that is newer than the one adopted here: the exchange can be faster than the owner (rule EX5)."""
        if name.receiver != self._process:
            raise ExchangeError("another process is at this address")
        wanted = (name.epoch, name.generation)
        while (current := self._adoptions.current(name.table)) is None or current[:2] < wanted:
            await self._adoptions.changed(name.table)
        if current[:2] != wanted:
            raise ExchangeError(f"epoch {wanted[0]}, generation {wanted[1]} of the table is over")
        return current[2]

    async def _take(self, side: Receiver, sender: str, arrivals: Arrivals, frame: wire.Frame) -> None:
        rows = None
        if frame.WhichOneof("content") == "rows":
            rows = await self._decoded(frame.rows)
        # Nothing may be awaited from here on: another connection of the same stream could be taking the same frame.
        if side.over:
            raise ExchangeError("the table has moved on")
        if not arrivals.is_new(frame):
            return
        if rows is not None:
            arrivals.rows(frame)
            side.take(frame.round, rows)
        else:
            try:
                arrivals.barrier(frame)
            except ExchangeError as lost:
                side.broken(str(lost))
                raise
            side.barrier(frame.round, sender)

    async def _decoded(self, rows: wire.Rows) -> RoutedRows:
        try:
            if rows.ByteSize() < _LARGE:
                return decode(rows)
            return await asyncio.get_running_loop().run_in_executor(self._executor, decode, rows)
        except pa.ArrowException as damaged:
            raise ExchangeError(f"a frame cannot be read: {damaged}") from damaged

    async def _credit(self, arrivals: Arrivals, progress: asyncio.Event, context: Any) -> None:
        """What has arrived may be forgotten by its sender; more may come while there is room (rule EX4)."""
        while True:
            await progress.wait()
            progress.clear()
            room = self._budget.has_room
            credit = wire.Credit(last_number=arrivals.last, bytes=WINDOW_BYTES if room else 0)
            await context.write(wire.ExchangeResponse(credit=credit))
            if not room:
                await self._budget.room()
                progress.set()
