"""Which coordinators there are, a link to each, and what any of them can be asked."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import grpc

from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1.tables_pb2_grpc import TableServiceStub
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.coordination_pb2_grpc import CoordinationServiceStub
from headgate_runtime.channels import connect
from headgate_runtime.errors import from_call, wire_error
from headgate_runtime.logs import get_logger
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import World
from headgate_writer.control import Link, Orders, Session

if TYPE_CHECKING:
    from headgate_proto.cluster.v1.coordination_pb2_grpc import CoordinationServiceAsyncStub

_log = get_logger()

_POLL_S = 1.0
_ANSWER_S = 2.0
"""A coordinator answers `Members` from memory; one that takes longer is not asked again before the others were."""


class Coordinators:
    """``configured``: host:port of one or more; the rest is found through them."""

    def __init__(
        self, configured: Sequence[str], hello: wire.Hello, orders: Orders, settings: ServiceSettings, world: World
    ) -> None:
        self._configured = list(configured)
        self._hello = hello
        self._orders = orders
        self._settings = settings
        self._world = world
        self._links: dict[str, Link] = {}
        self._asked: dict[str, grpc.aio.Channel] = {}
        self._leaving = False
        self.welcomed = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._follow(await self._members(), group)
                    await self._world.clock.sleep(_POLL_S)
        finally:
            for channel in self._asked.values():
                await channel.close()

    async def leave(self) -> None:
        """Says so to all coordinators and returns when each has let this process go, or is gone itself."""
        self._leaving = True
        sessions = [link.session for link in self._links.values() if link.session is not None]
        for session in sessions:
            session.send(wire.ControlRequest(leave=wire.Leave()))
        for session in sessions:
            await session.released.wait()

    async def refusal(self, table: str) -> errors_pb2.Error | None:
        """Why no rows of the table are taken: it does not exist, or is quarantined. None if they may be, or nobody can say."""
        for link in list(self._links.values()):
            if link.session is None:
                continue
            tables = TableServiceStub(link.channel)
            try:
                await tables.DescribeTable(tables_pb2.DescribeTableRequest(name=table), timeout=_ANSWER_S)
                status = await tables.Status(tables_pb2.StatusRequest(table=table), timeout=_ANSWER_S)
            except grpc.aio.AioRpcError as failed:
                error = from_call(failed)
                if error.code == errors_pb2.CODE_TABLE_NOT_FOUND:
                    return error
                continue
            # Only the coordinator that holds the table's lease knows; to the others it is elsewhere.
            if any(each.state == "quarantined" for each in status.tables):
                return wire_error(
                    errors_pb2.CODE_TABLE_QUARANTINED,
                    f"table {table!r} takes no rows until an operator has looked at it",
                    "What was committed stays readable. `headgate status` says what was found.",
                )
        return None

    def _follow(self, addresses: Sequence[str], group: asyncio.TaskGroup) -> None:
        """An empty list says nothing: whoever was there may still be (rule R4)."""
        for address in addresses:
            link = self._links.get(address)
            if link is None:
                link = self._links[address] = Link(
                    address, connect(address, self._settings), self._hello, self._orders, self._world
                )
                group.create_task(self._run(link))
            link.want()
        for address, link in self._links.items():
            if addresses and address not in addresses and link.session is None:
                link.forget()

    async def _run(self, link: Link) -> None:
        try:
            await link.run(self._welcome)
        finally:
            del self._links[link.address]  # before it is closed, or _members would ask through it
            await link.channel.close()

    def _welcome(self, session: Session) -> None:
        if self._leaving:
            session.send(wire.ControlRequest(leave=wire.Leave()))
        self.welcomed.set()

    async def _members(self) -> Sequence[str]:
        """From the first that answers: those that are connected know, the configured ones are where it begins."""
        connected = [address for address, link in self._links.items() if link.session is not None]
        for address in dict.fromkeys([*connected, *self._configured]):
            try:
                answer = await self._stub(address).Members(wire.MembersRequest(), timeout=_ANSWER_S)
                return list(answer.addresses)
            except grpc.aio.AioRpcError as failed:
                _log.debug("coordinator does not answer", coordinator=address, reason=failed.code().name)
        return []

    def _stub(self, address: str) -> "CoordinationServiceAsyncStub":
        link = self._links.get(address)
        if link is not None:
            return CoordinationServiceStub(link.channel)
        if address not in self._asked:
            self._asked[address] = connect(address, self._settings)
        return CoordinationServiceStub(self._asked[address])
