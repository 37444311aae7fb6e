"""A coordinator that does what a test says, over real gRPC: it owns tables, and a writer cannot tell the difference."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1.tables_pb2_grpc import TableServiceServicer, add_TableServiceServicer_to_server
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.coordination_pb2_grpc import (
    CoordinationServiceServicer,
    add_CoordinationServiceServicer_to_server,
)
from headgate_runtime.definitions import definition_message
from headgate_runtime.errors import rpc_error
from headgate_runtime.part_reader import PartReader
from headgate_tables.hudi.definition import Definition
from support.serving import before_end, served


class WriterLink:
    """One writer's control stream, as the owner has it. ``loads``: the last heartbeat's."""

    def __init__(self, process: str, address: str) -> None:
        self.process = process
        self.address = address
        self.loads: dict[str, int] = {}
        self.lags: dict[str, dict[str, int]] = {}
        self.left = asyncio.Event()
        self.gone = asyncio.Event()
        self.heartbeats: asyncio.Queue[dict[str, int]] = asyncio.Queue()
        self.orders: asyncio.Queue[wire.ControlResponse | None] = asyncio.Queue()
        self._reports: defaultdict[str, asyncio.Queue[wire.TableReport]] = defaultdict(asyncio.Queue)

    def take(self, message: wire.ControlRequest) -> None:
        """From the stream."""
        match message.WhichOneof("message"):
            case "heartbeat":
                self.loads = {load.table: load.uncommitted_bytes for load in message.heartbeat.loads}
                self.lags = {load.table: dict(load.lags) for load in message.heartbeat.loads}
                self.heartbeats.put_nowait(self.loads)
            case "leave":
                self.left.set()
            case "table":
                self._reports[message.table.WhichOneof("message") or ""].put_nowait(message.table)
            case "hello" | "part" | None:
                raise AssertionError("a writer says no such thing behind its hello")

    async def report(self, kind: str) -> Any:
        """The next report of that kind, in the order of the stream; reports of other kinds wait. Raises StreamEndedError."""
        report = await before_end(self.gone, self._reports[kind].get())
        return getattr(report, kind)

    def count(self, kind: str) -> int:
        """Reports of that kind that nobody has asked for."""
        return self._reports[kind].qsize()

    async def loaded(self, table: str) -> int:
        """Waits for a heartbeat that gives the table a load, and returns it. Raises StreamEndedError."""
        while not (load := (await before_end(self.gone, self.heartbeats.get())).get(table, 0)):
            pass
        return load

    def cut(self) -> None:
        """Ends the stream, as a coordinator does that dies."""
        self.orders.put_nowait(None)

    def release(self) -> None:
        """The answer to `leave`."""
        self.orders.put_nowait(wire.ControlResponse(released=wire.Released()))


class OwnedTable:
    """A table under one (epoch, generation). Orders go to the writers that are named; every test says what it wants."""

    def __init__(self, name: str, url: str, definition: Definition, epoch: int = 1, generation: int = 1) -> None:
        self.intake_bytes = 0
        """Of all checkpoints that begin from now on."""
        self.name = name
        self.url = url
        self.definition = definition
        self.epoch = epoch
        self.generation = generation

    def membership(self, number: int, members: Sequence[WriterLink]) -> wire.Membership:
        """Key groups go round the members."""
        groups = self.definition.key_groups if members else 0
        return wire.Membership(
            checkpoint=number,
            members=[wire.Member(process=writer.process, address=writer.address) for writer in members],
            assignment=[group % len(members) for group in range(groups)],
            intake_bytes=self.intake_bytes,
        )

    def attach(self, writers: Sequence[WriterLink], number: int = 1) -> None:
        """Makes them the members of that checkpoint."""
        definition = definition_message(self.definition)
        for writer in writers:
            attach = wire.Attach(membership=self.membership(number, writers), url=self.url, definition=definition)
            self.order(writer, attach=attach)

    def barrier(self, writers: Sequence[WriterLink], number: int, following: Sequence[WriterLink] | None = None) -> None:
        """Ends the checkpoint; the next one has the members ``following``, the same if None."""
        membership = self.membership(number + 1, writers if following is None else following)
        for writer in writers:
            self.order(writer, barrier=wire.Barrier(checkpoint=number, next=membership))

    def decided(self, writers: Sequence[WriterLink], number: int, level: wire.Level.ValueType) -> None:
        """One level."""
        for writer in writers:
            self.order(writer, decided=wire.Decided(checkpoint=number, level=level))

    async def grant(self, writer: WriterLink, *, hold: int = 1, committed: int = 0) -> wire.OpenRequest:
        """Answers the next open of that writer."""
        asked: wire.OpenRequest = await writer.report("open")
        grant = wire.Grant(
            request=asked.request,
            channel=asked.channel,
            incarnation=asked.incarnation or 1,
            committed_offset=committed,
            hold=hold,
        )
        self.order(writer, grant=grant)
        return asked

    def order(self, writer: WriterLink, **content: Any) -> None:
        """Any order about this table."""
        order = wire.TableOrder(table=self.name, epoch=self.epoch, generation=self.generation, **content)
        writer.orders.put_nowait(wire.ControlResponse(table=order))


class ScriptedOwner(CoordinationServiceServicer, TableServiceServicer):
    """A coordinator. It knows the tables that stand in ``tables``, by name, and of the coordinators at ``others``.

    ``welcomes``: streams that begin. ``answers``: set while it says who is there; ``asked`` is set when it is asked that.
    """

    def __init__(self) -> None:
        self.address = ""
        self.tables: set[str] = set()
        self.others: list[str] = []
        self.welcomes = True
        self.asked, self.answers = asyncio.Event(), asyncio.Event()
        self.answers.set()
        self._joined: asyncio.Queue[WriterLink] = asyncio.Queue()

    async def writer(self) -> WriterLink:
        """The next control stream that has said hello."""
        return await self._joined.get()

    async def Members(self, request: wire.MembersRequest, context: Any) -> wire.MembersResponse:
        self.asked.set()
        await self.answers.wait()
        return wire.MembersResponse(addresses=[self.address, *self.others])

    async def DescribeTable(self, request: tables_pb2.DescribeTableRequest, context: Any) -> tables_pb2.DescribeTableResponse:
        if request.name not in self.tables:
            raise rpc_error(errors_pb2.CODE_TABLE_NOT_FOUND, "no table of this name", "Create it, or correct the name.")
        return tables_pb2.DescribeTableResponse(table=tables_pb2.TableDescription(name=request.name))

    async def Control(self, request_iterator: Any, context: Any) -> None:  # type: ignore[override]
        hello = (await context.read()).hello
        link = WriterLink(hello.process, hello.address)
        if self.welcomes:
            await context.write(wire.ControlResponse(welcome=wire.Welcome(heartbeat_ms=200)))
        self._joined.put_nowait(link)
        try:
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(self._read(context, link))
                while (order := await link.orders.get()) is not None:
                    await context.write(order)
                reading.cancel()
        finally:
            link.gone.set()

    async def _read(self, context: Any, link: WriterLink) -> None:
        async for message in PartReader(context, wire.ControlRequest.FromString, None, ""):
            link.take(message)
        link.gone.set()
        link.cut()


@asynccontextmanager
async def scripted_owner() -> AsyncIterator[ScriptedOwner]:
    """A running one."""
    owner = ScriptedOwner()  # type: ignore[abstract]  # methods that are left out answer UNIMPLEMENTED
    async with served(
        partial(add_CoordinationServiceServicer_to_server, owner), partial(add_TableServiceServicer_to_server, owner)
    ) as owner.address:
        yield owner
