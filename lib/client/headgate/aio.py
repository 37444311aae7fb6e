"""``headgate`` for asyncio: the same methods, awaited. The blocking ones say what each does and raises::

async with headgate.aio.connect("localhost:7070") as hg:
    orders = await hg.table("orders")
    async with orders.channel("loader-1") as ch:
        receipt = await ch.upsert(rows)
        await receipt.wait("durable")
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from headgate.aio_channel import Channel, Receipt
from headgate.arguments import checked_integer, checked_seconds, checked_text, checked_texts
from headgate.coordinators import CallFailedError, Coordinators, parse_addresses
from headgate.copying import Copyable
from headgate.credentials import Tls, look_for
from headgate.definition import Columns, Listing, RecoverableTable, TableInfo, checked_channel_name, not_found
from headgate.deleting import Deletable
from headgate.encoding import Compression, Encoder
from headgate.errors import InvalidArgumentError, TableDroppedError, TableNotFoundError, TableRenamedError
from headgate.maintenance import Maintenance
from headgate.operating import Operated
from headgate.reading.aio import Scan, StoredTable, open  # noqa: A004 - read as headgate.aio.open
from headgate.runner import ChannelRunner
from headgate.schemas import SchemaLike, schema_of
from headgate.shared_channel import SharedChannel
from headgate.single_rows import Pace
from headgate.status import Status
from headgate.system import System
from headgate.transport import Transport
from headgate_proto.api.v1 import tables_pb2

__all__ = ["Channel", "Headgate", "Receipt", "Scan", "StoredTable", "Table", "connect", "open"]

DEFAULT_TIMEOUT = 60.0
DEFAULT_IN_FLIGHT = 64 * 1024 * 1024


def connect(
    address: str | Sequence[str],
    *,
    token: str | Path | None = None,
    tls: Tls | bool | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    wait: float = 0.0,
    compression: Compression = None,
    in_flight_bytes: int = DEFAULT_IN_FLIGHT,
    front: bool = False,
    system: System | None = None,
) -> "Headgate":
    """As ``headgate.connect``, for use with ``async with``."""
    addresses = parse_addresses(address)
    transport = Transport(look_for(addresses, token, tls), addresses)
    if front:
        transport.front = addresses[0]
    return Headgate(
        addresses,
        transport,
        timeout=checked_seconds(timeout, "timeout"),
        wait=checked_seconds(wait, "wait"),
        encoder=Encoder(compression),
        in_flight_bytes=in_flight_bytes,
        system=system or System.real(),
    )


class Headgate:
    """A connection to a cluster, made by ``connect``."""

    def __init__(
        self,
        addresses: list[str],
        transport: Transport,
        *,
        timeout: float,
        wait: float,
        encoder: Encoder,
        in_flight_bytes: int,
        system: System,
    ) -> None:
        self.timeout = timeout
        self.encoder = encoder
        self.in_flight_bytes = in_flight_bytes
        self.system = system
        self.transport = transport
        self.coordinators = Coordinators(addresses, transport, system, wait)
        self.tasks = asyncio.TaskGroup()
        self._runners: list[ChannelRunner] = []
        self._pace = Pace()
        self._is_entered = False

    async def __aenter__(self) -> Self:
        self.transport.check_open()
        await self.tasks.__aenter__()
        self._is_entered = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.transport.is_closed = True  # no channel is opened while those that are open end
        for runner in self._runners:
            await runner.stop()
        await self.tasks.__aexit__(None, None, None)
        await self.transport.close()

    async def create_table(
        self,
        name: str,
        schema: SchemaLike,
        *,
        key: Columns,
        ordering: str | None = None,
        partition_by: Columns = None,
        buckets: int = 0,
        hive_style: bool = False,
        table_version: int = 0,
        exist_ok: bool = False,
    ) -> "Table":
        def request(maybe_done: bool) -> tables_pb2.CreateTableRequest:
            return tables_pb2.CreateTableRequest(
                name=checked_text(name, "name"),
                schema=arrow_schema.serialize().to_pybytes(),
                record_key=checked_texts(key, "key"),
                partition_by=checked_texts(partition_by, "partition_by"),
                ordering=checked_text(ordering or "", "ordering"),
                buckets=checked_integer(buckets, "buckets"),
                hive_style=hive_style,
                table_version=checked_integer(table_version, "table_version"),
                exist_ok=exist_ok or maybe_done,
            )

        arrow_schema = schema_of(schema)
        answer: tables_pb2.CreateTableResponse = await self.coordinators.call(
            lambda stub: stub.CreateTable, request, self.timeout
        )
        return Table(self, TableInfo.from_wire(answer.table))

    async def table(self, name: str) -> "Table":
        request = tables_pb2.DescribeTableRequest(name=checked_text(name, "name"))
        answer: tables_pb2.DescribeTableResponse
        try:
            answer = await self.coordinators.call(lambda stub: stub.DescribeTable, lambda _: request, self.timeout)
        except TableNotFoundError as error:
            if isinstance(error, TableDroppedError | TableRenamedError):
                raise  # they say more than a near name
            raise not_found(name, await self._names_in_sight(), error) from None
        return Table(self, TableInfo.from_wire(answer.table))

    async def _names_in_sight(self) -> list[str]:
        """Of the tables that the caller may see; none if no coordinator lists them now."""
        answer: tables_pb2.ListTablesResponse
        try:
            answer = await self.coordinators.call_once(lambda stub: stub.ListTables, tables_pb2.ListTablesRequest())
        except CallFailedError:
            return []
        return [table.name for table in answer.tables]

    async def tables(self) -> list[TableInfo]:
        return list((await self.listing()).tables)

    async def unreadable_tables(self) -> list[str]:
        return list((await self.listing()).unreadable)

    async def listing(self) -> Listing:
        request = tables_pb2.ListTablesRequest()
        answer: tables_pb2.ListTablesResponse
        answer = await self.coordinators.call(lambda stub: stub.ListTables, lambda _: request, self.timeout)
        return Listing.from_wire(answer)

    async def dropped_tables(self) -> list[RecoverableTable]:
        return list((await self.listing()).dropped)

    async def undrop_table(self, name: str) -> "Table":
        await Maintenance(self, checked_text(name, "name")).undrop()
        return await self.table(name)

    async def status(self, table: str = "", *, coordinator: str = "") -> Status:
        request = tables_pb2.StatusRequest(table=checked_text(table, "table"))
        asked = Coordinators([coordinator], self.transport, self.system) if coordinator else self.coordinators
        answer: tables_pb2.StatusResponse
        answer = await asked.call(lambda stub: stub.Status, lambda _: request, self.timeout)
        return Status.from_wire(answer)

    async def open_channel(self, table: TableInfo, channel: str) -> ChannelRunner:
        """Opens a channel, which ends with the connection at the latest. Raises ClosedError, InvalidArgumentError."""
        self.transport.check_open()
        if not self._is_entered:
            raise InvalidArgumentError(
                "the connection is not open", fix="Use `async with headgate.aio.connect(...)`, in which its channels run."
            )
        shared = SharedChannel(table.name, channel, self.encoder, self.in_flight_bytes, table.uuid, self._pace)
        runner = ChannelRunner(shared, self.coordinators, self.transport, self.system)
        self._runners = [*(known for known in self._runners if not known.is_finished), runner]
        await runner.open(self.tasks, self.timeout)
        return runner


class Table(Operated, Deletable, Copyable):
    """A table to write to, to read and to operate. ``info`` is its definition."""

    def __init__(self, headgate: Headgate, info: TableInfo) -> None:
        super().__init__(headgate, info)
        self.headgate = headgate

    def channel(self, name: str) -> "Channel":
        """The channel of this name, not yet open: use ``async with`` or ``await channel.open()``."""
        return Channel(self.headgate, self.info, checked_channel_name(name))

    async def _create_like(self, name: str, *, exist_ok: bool) -> "Table":
        info = self.info
        return await self.headgate.create_table(
            name,
            info.schema,
            key=info.key,
            ordering=info.ordering,
            partition_by=info.partition_by,
            buckets=info.buckets,
            hive_style=info.hive_style,
            table_version=info.table_version,
            exist_ok=exist_ok,
        )
