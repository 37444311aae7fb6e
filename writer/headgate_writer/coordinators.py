"""A link to each coordinator, and what any of them can be asked."""

import asyncio
from collections.abc import Sequence

import grpc

from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1.tables_pb2_grpc import TableServiceStub
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime import coordinators
from headgate_runtime.coordinators import ANSWER_S
from headgate_runtime.errors import from_call, wire_error
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import World
from headgate_writer.control import Link, Orders, Session


class Coordinators:
    """``configured``: host:port of one or more; the rest is found through them."""

    def __init__(
        self, configured: Sequence[str], hello: wire.Hello, orders: Orders, settings: ServiceSettings, world: World
    ) -> None:
        def link(address: str, channel: grpc.aio.Channel) -> Link:
            return Link(address, channel, hello, orders, world, self._welcome)

        self._known = coordinators.Coordinators(configured, link, settings, world.clock)
        self._leaving = False
        self.welcomed = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        await self._known.run()

    async def leave(self) -> None:
        """Says so to all coordinators and returns when each has let this process go, or is gone itself."""
        self._leaving = True
        sessions = [link.session for link in self._known.links if link.session is not None]
        for session in sessions:
            session.send(wire.ControlRequest(leave=wire.Leave()))
        for session in sessions:
            await session.released.wait()

    async def refusal(self, table: str) -> errors_pb2.Error | None:
        """Why no rows of the table are taken: it does not exist, or is quarantined. None if they may be, or nobody can say."""
        for link in self._known.links:
            if link.session is None:
                continue
            tables = TableServiceStub(link.channel)
            try:
                await tables.DescribeTable(tables_pb2.DescribeTableRequest(name=table), timeout=ANSWER_S)
                status = await tables.Status(tables_pb2.StatusRequest(table=table), timeout=ANSWER_S)
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

    def _welcome(self, session: Session) -> None:
        if self._leaving:
            session.send(wire.ControlRequest(leave=wire.Leave()))
        self.welcomed.set()
