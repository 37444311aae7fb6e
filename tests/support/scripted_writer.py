"""A writer that does what a test says: it speaks CoordinationService over real gRPC, and its files are real files."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pyarrow as pa

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.coordination_pb2_grpc import CoordinationServiceStub
from headgate_tables.hudi.changes import ChangeWriter, place, split
from headgate_tables.hudi.definition import Definition
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds


class ScriptedWriter:
    """``loads`` is what the heartbeats say. Orders wait by table and kind, in the order of the stream, for who asks for them."""

    def __init__(self, process: str, address: str) -> None:
        self.process = process
        self.address = address
        self.loads: dict[str, int] = {}
        self.epoch = self.generation = 0
        self.released = asyncio.Event()
        self.ended = asyncio.Event()
        self.why = ""
        self._outbox: asyncio.Queue[wire.ControlRequest] = asyncio.Queue()
        self._orders: defaultdict[tuple[str, str], asyncio.Queue[wire.TableOrder]] = defaultdict(asyncio.Queue)
        self._adopted: dict[str, wire.Adopt] = {}
        self._requests = 0

    # --- what it hears ---

    async def order(self, table: str, kind: str) -> Any:
        """The next order of that kind; `adopt` also sets epoch and generation of what is said from then on."""
        order = await self._orders[table, kind].get()
        if kind == "adopt":
            self.epoch, self.generation = order.epoch, order.generation
            self._adopted[table] = order.adopt
        return getattr(order, kind)

    def waiting(self, table: str, kind: str) -> int:
        """Orders of that kind that nobody has asked for."""
        return self._orders[table, kind].qsize()

    # --- what it says ---

    def send(self, **message: Any) -> None:
        """Any message of the stream."""
        self._outbox.put_nowait(wire.ControlRequest(**message))

    def report(self, table: str, **content: Any) -> None:
        """About one table, under the pair of the newest adoption that was asked for."""
        self.send(table=wire.TableReport(table=table, epoch=self.epoch, generation=self.generation, **content))

    def load(self, table: str, uncommitted_bytes: int) -> None:
        """Says so at once and in all later heartbeats."""
        self.loads[table] = uncommitted_bytes
        self._beat()

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

    # --- both sides of a writer, one round ---

    async def take_round(self, table: str, rows: pa.Table, offsets: Mapping[str, int]) -> int:
        """Takes rows, flushes them when the barrier comes, and returns the round once it is queryable."""
        number = await self.flush_round(table, rows, offsets)
        await self.decided(table, number, wire.LEVEL_DURABLE)
        await self.decided(table, number, wire.LEVEL_QUERYABLE)
        return number

    async def flush_round(self, table: str, rows: pa.Table | None, offsets: Mapping[str, int]) -> int:
        """Up to the write statuses."""
        size = rows.nbytes if rows is not None else 0
        files: Sequence[wire.FileStatus] = ()
        if rows is not None:
            number = self._adopted[table].plan.round
            self.report(table, ask_instant=wire.AskInstant(round=number))
            self.load(table, size)
            instant = (await self.order(table, "instant")).instant
            files = await asyncio.to_thread(self._write, table, rows, instant)
        self.report(table, ask_round=wire.AskRound())
        barrier = await self.order(table, "barrier")
        self.report(table, barrier_passed=wire.BarrierPassed(round=barrier.round, offsets=offsets, bytes=size))
        self.report(table, flushed=wire.Flushed(round=barrier.round, files=files))
        self.loads[table] = 0
        self._adopted[table].plan.CopyFrom(barrier.next)
        return int(barrier.round)

    async def decided(self, table: str, number: int, level: int) -> None:
        """The next decision is this one."""
        decided = await self.order(table, "decided")
        assert (decided.round, decided.level) == (number, level)

    def _write(self, table: str, rows: pa.Table, instant: str) -> list[wire.FileStatus]:
        adopted = self._adopted[table]
        definition = Definition.decode(json.loads(adopted.definition))
        store = open_store(adopted.url, None, SystemIds())
        writer = ChangeWriter(store, definition, epoch=self.epoch, process=self.process, ordinal=0)
        changes = split(place(rows, None, definition))
        statuses = writer.write(instant, changes, [1] * len(changes))
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
            for status in statuses
        ]

    # --- the stream ---

    async def serve(self, channel: grpc.aio.Channel, *, beats: bool) -> None:
        """Until the coordinator ends it; ``why`` is then what it said."""
        self.send(hello=wire.Hello(process=self.process, address=self.address))
        call: Any = CoordinationServiceStub(channel).Control()
        try:
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(self._send_all(call))
                beating: asyncio.Task[None] | None = None
                while (response := await call.read()) is not grpc.aio.EOF:
                    match response.WhichOneof("message"):
                        case "welcome" if beats:
                            beating = group.create_task(self._beat_on(response.welcome.heartbeat_ms / 1000))
                        case "table":
                            order = response.table
                            self._orders[order.table, order.WhichOneof("message")].put_nowait(order)
                        case "released":
                            self.released.set()
                sending.cancel()
                if beating:
                    beating.cancel()
        except* grpc.aio.AioRpcError as broken:
            self.why = str(broken.exceptions[0].details())  # type: ignore[union-attr]
        finally:
            call.cancel()
            self.ended.set()

    async def _send_all(self, call: Any) -> None:
        while True:
            message = await self._outbox.get()
            try:
                await call.write(message)
            except asyncio.InvalidStateError:
                return  # the stream is over, and the reader learns why

    async def _beat_on(self, interval: float) -> None:
        while True:
            self._beat()
            await asyncio.sleep(interval)

    def _beat(self) -> None:
        loads = [wire.Load(table=table, uncommitted_bytes=size) for table, size in self.loads.items()]
        self.send(heartbeat=wire.Heartbeat(loads=loads))


@asynccontextmanager
async def scripted_writer(
    coordinator: str, *, process: str = "", address: str = "127.0.0.1:1", beats: bool = True
) -> AsyncIterator[ScriptedWriter]:
    """A control stream to the coordinator at host:port; it is cut at the end. ``beats``: sends heartbeats by itself."""
    writer = ScriptedWriter(process or SystemIds().token(), address)
    async with grpc.aio.insecure_channel(coordinator) as channel:
        serving = asyncio.ensure_future(writer.serve(channel, beats=beats))
        try:
            yield writer
        finally:
            serving.cancel()
            await asyncio.wait([serving])
            if not serving.cancelled() and serving.exception() is not None:
                raise serving.exception()  # type: ignore[misc]
