"""A writer of few lines: it speaks CoordinationService over real gRPC, its files are real, and a test says what it does.

By itself it sends heartbeats, takes part in checkpoints and lets channels go when it is told to. There is no exchange: it flushes
the rows that it takes, whoever has their key groups. A bool switches each of these habits off.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
import pyarrow as pa

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.coordination_pb2_grpc import CoordinationServiceStub
from headgate_proto.stream_reader import StreamReader
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.place import place
from headgate_tables.opening import as_hudi
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds
from headgate_writer.orders import read_definition
from support.splitting import split

_T = TypeVar("_T")


@dataclass
class Taken:
    """What a checkpoint has taken here: rows, accepted offsets, and the instant once it is known."""

    rows: list[pa.Table] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    instant: "asyncio.Future[str]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def size(self) -> int:
        return sum(each.nbytes for each in self.rows)


@dataclass
class Attached:
    """A table under one (epoch, generation), and its checkpoints that are not queryable yet."""

    epoch: int
    generation: int
    order: wire.Attach
    filling: int
    taken: dict[int, Taken] = field(default_factory=dict)


class ScriptedWriter:
    """``orders`` of each kind wait, in the order of the stream, for who asks for them, whether they were acted on or not."""

    def __init__(self, process: str, address: str, *, beats: bool, flushes: bool, lets_go: bool) -> None:
        self.process = process
        self.address = address
        self.released = asyncio.Event()
        self.ended = asyncio.Event()
        self.why = ""
        self._beats, self._flushes, self._lets_go = beats, flushes, lets_go
        self._outbox: asyncio.Queue[wire.ControlRequest] = asyncio.Queue()
        self._orders: defaultdict[tuple[str, str], asyncio.Queue[wire.TableOrder]] = defaultdict(asyncio.Queue)
        self._tables: dict[str, Attached] = {}
        self._decided = asyncio.Condition()
        self._requests = 0
        self.send(hello=wire.Hello(process=process, address=address))

    # --- what it hears ---

    async def order(self, table: str, kind: str) -> Any:
        """The next order of that kind. Fails when the stream has ended without one."""
        return getattr(await self._unless_ended(self._orders[table, kind].get()), kind)

    def waiting(self, table: str, kind: str) -> int:
        """Orders of that kind that nobody has asked for."""
        return self._orders[table, kind].qsize()

    def pair(self, table: str) -> tuple[int, int]:
        """Epoch and generation under which it has the table now; zeros if it has not."""
        attached = self._tables.get(table)
        return (attached.epoch, attached.generation) if attached else (0, 0)

    def filling(self, table: str) -> int:
        """The checkpoint that takes rows now."""
        return self._tables[table].filling

    async def attached(self, table: str) -> None:
        """Returns once it has a part in the table. Fails when the stream has ended before.

        It may still have the part of an ownership that is over: wait for the "detach" of that one first.
        """
        async with self._decided:
            await self._decided.wait_for(lambda: self.ended.is_set() or table in self._tables)
        assert not self.ended.is_set(), self.why

    async def _unless_ended(self, arrives: Coroutine[Any, Any, _T]) -> _T:
        """What arrives. A test that waits for what an ended stream can no longer bring would wait for ever."""
        waiting, over = asyncio.ensure_future(arrives), asyncio.ensure_future(self.ended.wait())
        try:
            await asyncio.wait({waiting, over}, return_when=asyncio.FIRST_COMPLETED)
            assert waiting.done(), f"the writer's stream has ended: {self.why}"
            return waiting.result()
        finally:
            waiting.cancel()
            over.cancel()

    # --- what it says ---

    def send(self, **message: Any) -> None:
        """Any message of the stream."""
        self._outbox.put_nowait(wire.ControlRequest(**message))

    def report(self, table: str, *, pair: tuple[int, int] | None = None, **content: Any) -> None:
        """About one table, under the pair of now or another one."""
        epoch, generation = pair or self.pair(table)
        self.send(table=wire.TableReport(table=table, epoch=epoch, generation=generation, **content))

    async def open(self, table: str, channel: str, incarnation: int = 0, principal: str = "anonymous") -> wire.Grant:
        """Waits for the grant."""
        self.ask_open(table, channel, incarnation, principal)
        granted: wire.Grant = await self.order(table, "grant")
        return granted

    def ask_open(self, table: str, channel: str, incarnation: int = 0, principal: str = "anonymous") -> None:
        """Does not wait."""
        self._requests += 1
        asked = wire.OpenRequest(request=self._requests, channel=channel, incarnation=incarnation, principal=principal)
        self.report(table, open=asked)

    def take(self, table: str, rows: pa.Table, channel: str, offset: int) -> None:
        """A client's batch: into the checkpoint that fills."""
        attached = self._tables[table]
        taken = attached.taken.setdefault(attached.filling, Taken())
        if not taken.rows:
            self.report(table, ask_instant=wire.AskInstant(checkpoint=attached.filling))
        taken.rows.append(rows)
        taken.offsets[channel] = offset
        self.beat()

    async def commit(self, table: str, rows: pa.Table, channel: str, offset: int) -> None:
        """Takes, asks for a checkpoint, and waits until it is queryable."""
        self.take(table, rows, channel, offset)
        self.report(table, ask_checkpoint=wire.AskCheckpoint())
        await self.committed(table)

    async def committed(self, table: str) -> None:
        """Returns when nothing that was taken is left; fails when it was dropped."""
        pair = self.pair(table)
        async with self._decided:
            await self._decided.wait_for(
                lambda: self.ended.is_set() or not (self.pair(table) == pair and self._tables[table].taken)
            )
        assert not self.ended.is_set(), self.why
        assert self.pair(table) == pair, "a new generation began"

    async def flush(self, table: str, number: int) -> None:
        """Flushes a checkpoint whose barrier has come, for a writer that does not by itself."""
        await self._flush(table, self._tables[table], number)

    def beat(self) -> None:
        """A heartbeat now."""
        loads = [
            wire.Load(table=table, uncommitted_bytes=sum(taken.size for taken in attached.taken.values()))
            for table, attached in self._tables.items()
        ]
        self.send(heartbeat=wire.Heartbeat(loads=loads))

    def fall_silent(self) -> None:
        """No heartbeats by itself any more."""
        self._beats = False

    # --- its habits ---

    async def _obey(self, order: wire.TableOrder, group: asyncio.TaskGroup) -> None:
        kind = order.WhichOneof("message")
        table, attached = order.table, self._tables.get(order.table)
        if kind == "attach":
            self._tables[table] = Attached(order.epoch, order.generation, order.attach, order.attach.membership.checkpoint)
            await self._tell()
        elif attached is None or self.pair(table) != (order.epoch, order.generation):
            return
        elif kind == "instant":
            attached.taken.setdefault(order.instant.checkpoint, Taken()).instant.set_result(order.instant.instant)
        elif kind == "barrier" and self._flushes:
            attached.filling = order.barrier.next.checkpoint
            group.create_task(self._flush(table, attached, order.barrier.checkpoint))
        elif kind == "decided" and order.decided.level == wire.LEVEL_QUERYABLE:
            attached.taken.pop(order.decided.checkpoint, None)
            await self._tell()
        elif kind == "end_channel" and self._lets_go:
            name = order.end_channel.channel
            uncommitted = any(name in taken.offsets for taken in attached.taken.values())
            ended = wire.ChannelEnded(channel=name, hold=order.end_channel.hold, uncommitted=uncommitted)
            self.report(table, channel_ended=ended)
        elif kind == "detach":
            del self._tables[table]
            await self._tell()

    async def _tell(self) -> None:
        async with self._decided:
            self._decided.notify_all()

    async def _flush(self, table: str, attached: Attached, number: int) -> None:
        taken = attached.taken.get(number, Taken())
        pair = (attached.epoch, attached.generation)
        count = sum(each.num_rows for each in taken.rows)
        tallies = [wire.Tally(process=self.process, rows=count)]
        passed = wire.BarrierPassed(checkpoint=number, offsets=taken.offsets, bytes=taken.size, handed=tallies)
        self.report(table, pair=pair, barrier_passed=passed)
        files: Sequence[wire.FileStatus] = ()
        if taken.rows:
            instant = await taken.instant
            files = await asyncio.to_thread(write_files, attached, self.process, taken.rows, instant)
        beaten = count - sum(file.rows + file.deletes for file in files)
        flushed = wire.Flushed(checkpoint=number, files=files, received=tallies, beaten=beaten)
        self.report(table, pair=pair, flushed=flushed)

    # --- the stream ---

    async def serve(self, channel: grpc.aio.Channel) -> None:
        """Until the coordinator ends it; ``why`` is then what it said."""
        call: Any = CoordinationServiceStub(channel).Control()
        reader: StreamReader[wire.ControlResponse] = StreamReader(call)
        try:
            async with asyncio.TaskGroup() as group:
                others = [group.create_task(self._send_all(call))]
                while (response := await reader.read()) is not grpc.aio.EOF:
                    match response.WhichOneof("message"):
                        case "welcome" if self._beats:
                            others.append(group.create_task(self._beat_on(response.welcome.heartbeat_ms / 1000)))
                        case "table":
                            await self._obey(response.table, group)
                            self._orders[response.table.table, response.table.WhichOneof("message")].put_nowait(response.table)
                        case "released":
                            self.released.set()
                        case _:
                            pass  # a welcome to a writer that sends no heartbeats
                for each in others:
                    each.cancel()
        except* grpc.aio.AioRpcError as broken:
            self.why = _details(broken)
        finally:
            call.cancel()
            self.ended.set()
            await self._tell()

    async def _send_all(self, call: Any) -> None:
        while True:
            message = await self._outbox.get()
            try:
                await call.write(message)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                return  # the stream is over, and the reader learns why

    async def _beat_on(self, interval: float) -> None:
        while self._beats:
            self.beat()
            await asyncio.sleep(interval)


def _details(broken: "BaseExceptionGroup[grpc.aio.AioRpcError]") -> str:
    first = broken.exceptions[0]
    return _details(first) if isinstance(first, BaseExceptionGroup) else str(first.details())


def write_files(attached: Attached, process: str, rows: Sequence[pa.Table], instant: str) -> list[wire.FileStatus]:
    """The log files of a checkpoint, as a bucket side writes them."""
    definition = as_hudi(read_definition(attached.order.definition))
    store = open_store(attached.order.url, None, SystemIds())
    writer = ChangeWriter(store, definition, epoch=attached.epoch, process=process, ordinal=0)
    changes = split(place(pa.concat_tables(rows), None, definition))
    return [
        wire.FileStatus(
            partition=status.stat.partition,
            file_id=status.stat.file_id,
            name=status.stat.name,
            size=status.stat.size,
            rows=status.stat.rows,
            deletes=status.stat.deletes,
            log_version=status.stat.log_version,
            sha256=status.file.sha256,
            stage=status.file.stage,
        )
        for status in writer.write(instant, changes, [1] * len(changes), block_format="parquet")
    ]


@asynccontextmanager
async def scripted_writer(
    coordinator: str,
    *,
    process: str = "",
    address: str = "127.0.0.1:1",
    beats: bool = True,
    flushes: bool = True,
    lets_go: bool = True,
    kind: type[ScriptedWriter] = ScriptedWriter,
) -> AsyncIterator[ScriptedWriter]:
    """A control stream to the coordinator at host:port, cut at the end."""
    writer = kind(process or SystemIds().token(), address, beats=beats, flushes=flushes, lets_go=lets_go)
    async with grpc.aio.insecure_channel(coordinator) as channel:
        serving = asyncio.ensure_future(writer.serve(channel))
        try:
            yield writer
        finally:
            serving.cancel()
            await asyncio.wait([serving])
        if not serving.cancelled() and (error := serving.exception()) is not None:
            raise error
