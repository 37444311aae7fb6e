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
from types import TracebackType
from typing import Self

from headgate.acks import Acks, Level
from headgate.coordinators import Coordinators, parse_addresses
from headgate.credentials import Tls, look_for
from headgate.definition import Columns, Listing, TableInfo, checked_channel_name, names_of
from headgate.deleting import Deletable
from headgate.encoding import SMALL_BYTES, Compression, Encoder, encode_call
from headgate.errors import InvalidArgumentError
from headgate.operating import Operated
from headgate.reading.aio import Scan, StoredTable, open  # noqa: A004 - read as headgate.aio.open
from headgate.rows import RowFormat, RowFormats, detect_operation_type
from headgate.runner import ChannelRunner
from headgate.schemas import SchemaLike, schema_of
from headgate.shared_channel import SharedChannel
from headgate.status import Status
from headgate.system import System
from headgate.transport import Transport
from headgate_proto.api.v1 import tables_pb2

__all__ = ["Channel", "Headgate", "Receipt", "Scan", "StoredTable", "Table", "connect", "open"]

DEFAULT_TIMEOUT = 60.0
DEFAULT_IN_FLIGHT = 64 * 1024 * 1024
_INLINE_ROWS = 200
"""Up to this many rows are converted on the event loop, in about 0.2 ms; handing them to a thread takes as long."""


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
        timeout=timeout,
        wait=wait,
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

    async def __aenter__(self) -> Self:
        await self.tasks.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
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
                name=name,
                schema=arrow_schema.serialize().to_pybytes(),
                record_key=names_of(key),
                partition_by=names_of(partition_by),
                ordering=ordering or "",
                buckets=buckets,
                hive_style=hive_style,
                table_version=table_version,
                exist_ok=exist_ok or maybe_done,
            )

        arrow_schema = schema_of(schema)
        answer: tables_pb2.CreateTableResponse = await self.coordinators.call(
            lambda stub: stub.CreateTable, request, self.timeout
        )
        return Table(self, TableInfo.from_wire(answer.table))

    async def table(self, name: str) -> "Table":
        request = tables_pb2.DescribeTableRequest(name=name)
        answer: tables_pb2.DescribeTableResponse
        answer = await self.coordinators.call(lambda stub: stub.DescribeTable, lambda _: request, self.timeout)
        return Table(self, TableInfo.from_wire(answer.table))

    async def tables(self) -> list[TableInfo]:
        return list((await self.listing()).tables)

    async def unreadable_tables(self) -> list[str]:
        return list((await self.listing()).unreadable)

    async def listing(self) -> Listing:
        request = tables_pb2.ListTablesRequest()
        answer: tables_pb2.ListTablesResponse
        answer = await self.coordinators.call(lambda stub: stub.ListTables, lambda _: request, self.timeout)
        return Listing(tuple(map(TableInfo.from_wire, answer.tables)), tuple(answer.unreadable))

    async def status(self, table: str = "", *, coordinator: str = "") -> Status:
        request = tables_pb2.StatusRequest(table=table)
        asked = Coordinators([coordinator], self.transport, self.system) if coordinator else self.coordinators
        answer: tables_pb2.StatusResponse
        answer = await asked.call(lambda stub: stub.Status, lambda _: request, self.timeout)
        return Status.from_wire(answer)

    async def open_channel(self, table: TableInfo, channel: str) -> ChannelRunner:
        """Opens a channel, which ends with the connection at the latest."""
        shared = SharedChannel(table.name, channel, self.encoder, self.in_flight_bytes, table.uuid)
        runner = ChannelRunner(shared, self.coordinators, self.transport, self.system)
        self._runners = [*(known for known in self._runners if not known.is_finished), runner]
        await runner.open(self.tasks, self.timeout)
        return runner


class Table(Operated, Deletable):
    """A table to write to, to read and to operate. ``info`` is its definition."""

    def __init__(self, headgate: Headgate, info: TableInfo) -> None:
        super().__init__(headgate, info)
        self.headgate = headgate

    def channel(self, name: str) -> "Channel":
        """The channel of this name, not yet open: use ``async with`` or ``await channel.open()``."""
        return Channel(self.headgate, self.info, checked_channel_name(name))


class Receipt:
    """Confirms that a call's rows are buffered; ``offset`` is that of the last one."""

    __slots__ = ("_channel", "offset")

    def __init__(self, channel: "Channel", offset: int) -> None:
        self.offset = offset
        self._channel = channel

    async def wait(self, level: Level = "durable", *, timeout: float | None = None) -> None:
        await self._channel.wait(self.offset, level, timeout=timeout)


class Channel:
    """One producer's ordered stream of rows into a table."""

    def __init__(self, headgate: Headgate, table: TableInfo, name: str) -> None:
        self.name = name
        self.formats = RowFormats(table)
        self.encoder = headgate.encoder
        self._headgate = headgate
        self._table = table
        self._runner: ChannelRunner | None = None
        self._order = asyncio.Lock()
        self._calls = 0  # that hold or wait for the lock, which looks free before the next one of them has it

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close("queryable" if kind is None else None)

    async def open(self) -> Self:
        self._runner = await self._headgate.open_channel(self._table, self.name)
        self.formats = self.formats.altered(self._runner.channel.columns)
        return self

    @property
    def runner(self) -> ChannelRunner:
        """What runs the open channel. Raises InvalidArgumentError before ``open``."""
        if self._runner is None:
            raise InvalidArgumentError(f"channel {self.name!r} is not open", fix="Use `async with`, or await channel.open().")
        return self._runner

    @property
    def acks(self) -> Acks:
        return self.runner.channel.state.acks

    @property
    def committed_offset(self) -> int:
        return self.acks.durable

    @property
    def offset(self) -> int:
        return self.runner.channel.offset

    async def upsert(self, rows: object, offset: int | None = None, *, timeout: float | None = None) -> Receipt:
        return await self._append(self.formats.upsert, rows, offset, timeout)

    async def delete(self, rows: object, offset: int | None = None, *, timeout: float | None = None) -> Receipt:
        return await self._append(self.formats.delete, rows, offset, timeout)

    async def write(
        self, rows: object, offset: int | None = None, *, operation_column: str = "op", timeout: float | None = None
    ) -> Receipt:
        rows, kind = detect_operation_type(rows, operation_column)
        return await self._append(self.formats.mixed(operation_column, kind), rows, offset, timeout)

    async def skip(self, offset: int | None = None) -> None:
        self.runner.channel.skip(offset)

    async def flush(self, level: Level = "queryable", *, timeout: float | None = None) -> None:
        await self.runner.flush(level, self.seconds(timeout))

    async def wait(self, offset: int, level: Level = "durable", *, timeout: float | None = None) -> None:
        channel = self.runner.channel
        await channel.wait(lambda: channel.offset_at(level) >= offset, self.seconds(timeout), offset, level)

    async def close(self, level: Level | None = "queryable", *, timeout: float | None = None) -> None:
        await self.runner.close(level, self.seconds(timeout))

    def seconds(self, timeout: float | None) -> float:
        """The connection's timeout, unless the call has one."""
        return self._headgate.timeout if timeout is None else timeout

    async def _append(self, row_format: RowFormat, rows: object, offset: int | None, timeout: float | None) -> Receipt:
        shared = self.runner.channel
        if not self._calls and shared.single_rows.rows and (single := shared.try_row(row_format, rows, offset)) is not None:
            return Receipt(self, single)
        self._calls += 1
        try:
            async with self._order:  # conversions on threads must keep the order of the calls
                await asyncio.sleep(0)  # a program that never waits must let rows be sent
                single = shared.try_row(row_format, rows, offset)
                return Receipt(self, await self._append_all(row_format, rows, offset, timeout) if single is None else single)
        finally:
            self._calls -= 1

    async def _append_all(self, row_format: RowFormat, rows: object, offset: int | None, timeout: float | None) -> int:
        runner = self.runner
        runner.channel.check_accepts(offset)
        messages = iter(encode_call(self.encoder, row_format, rows, offset))
        taken = runner.channel.offset if offset is None else offset
        while (encoded := next(messages, None) if _is_small(rows) else await asyncio.to_thread(next, messages, None)) is not None:
            taken = await runner.append_rows(row_format, encoded, offset, self.seconds(timeout))
        return taken


def _is_small(rows: object) -> bool:
    """Whether converting the rows takes less time than handing them to a thread."""
    size = getattr(rows, "nbytes", None)
    if isinstance(size, int):
        return size <= SMALL_BYTES
    return not hasattr(rows, "__len__") or hasattr(rows, "keys") or len(rows) <= _INLINE_ROWS
