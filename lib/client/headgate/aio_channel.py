"""The channels of ``headgate.aio``. The blocking ones say what each method does and raises."""

import asyncio
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from headgate.acks import Acks, Level
from headgate.arguments import checked_integer, checked_seconds
from headgate.coordinators import ClusterConnection
from headgate.definition import TableInfo
from headgate.encoding import SMALL_BYTES, Encoder, encode_call
from headgate.errors import InvalidArgumentError, RowError, SchemaError
from headgate.evolving import brought, rereadable
from headgate.maintenance import Maintenance
from headgate.row_formats import RowFormats
from headgate.rows import RowFormat, detect_operation_type
from headgate.runner import ChannelRunner
from headgate.single_rows import SINGLE_ROW_SECONDS

_INLINE_ROWS = 200
"""Up to this many rows are converted on the event loop, in about 0.2 ms; handing them to a thread takes as long."""


class ChannelConnection(ClusterConnection, Protocol):
    """The part of a connection that channels use."""

    encoder: Encoder

    async def open_channel(self, table: TableInfo, channel: str) -> ChannelRunner:
        """Opens a channel, which ends with the connection at the latest."""


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

    def __init__(self, headgate: ChannelConnection, table: TableInfo, name: str) -> None:
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
        self.runner.channel.skip(whole(offset))

    async def flush(self, level: Level = "queryable", *, timeout: float | None = None) -> None:
        await self.runner.flush(level, self.seconds(timeout))

    async def wait(self, offset: int, level: Level = "durable", *, timeout: float | None = None) -> None:
        channel, offset = self.runner.channel, checked_integer(offset, "offset")
        if level == "received" and channel.single_rows.offsets:
            # However many channels the connection has; what becomes durable with a checkpoint can wait for its turn.
            asyncio.get_running_loop().call_later(SINGLE_ROW_SECONDS, channel.send_single_rows)
        await channel.wait(lambda: channel.offset_at(level) >= offset, self.seconds(timeout), offset, level)

    async def close(self, level: Level | None = "queryable", *, timeout: float | None = None) -> None:
        await self.runner.close(level, self.seconds(timeout))

    def seconds(self, timeout: float | None) -> float:
        """The connection's timeout, unless the call has one."""
        return self._headgate.timeout if timeout is None else checked_seconds(timeout)

    async def _append(self, row_format: RowFormat, rows: object, offset: int | None, timeout: float | None) -> Receipt:
        shared, offset = self.runner.channel, whole(offset)
        if not self._calls and shared.single_rows.offsets and (single := shared.try_row(row_format, rows, offset)) is not None:
            return Receipt(self, single)
        self._calls += 1
        try:
            # Conversions on threads must keep the order of the calls.
            await shared.wait_for_turn(self._order, self.seconds(timeout))
            try:
                await asyncio.sleep(0)  # a program that never waits must let rows be sent
                single = shared.try_row(row_format, rows, offset)
                return Receipt(self, await self._append_all(row_format, rows, offset, timeout) if single is None else single)
            finally:
                self._order.release()
        finally:
            self._calls -= 1

    async def _append_all(self, row_format: RowFormat, rows: object, offset: int | None, timeout: float | None) -> int:
        row_format, rows, columns = self.prepared(row_format, rows)
        if columns is not None:
            row_format = await self.take_columns(columns, row_format)
        while True:
            try:
                return await self._append_as(row_format, rows, offset, timeout)
            except (RowError, SchemaError) as misfit:
                row_format = await self.evolved(row_format, rows, misfit)

    def prepared(self, row_format: RowFormat, rows: object) -> tuple[RowFormat, object, pa.Schema | None]:
        """What ``_append_as`` takes. In a table that evolves: rows that can be read again. A reader cannot, so that the columns
        that its schema brings come, too, and the table has to take them first. Raises SchemaError.
        """
        table = self.formats.table
        if table.evolve == "refuse":
            return row_format, rows, None
        row_format = self.formats.like(row_format)
        columns = brought(table, rows, row_format) if isinstance(rows, pa.RecordBatchReader) else None
        return row_format, rereadable(rows), columns

    async def evolved(self, row_format: RowFormat, rows: object, misfit: RowError | SchemaError) -> RowFormat:
        """The format of these rows in the table as it is after it has taken what they bring.

        Raises ``misfit`` where that is nothing, SchemaError where the types or the table's owner forbid it.
        """
        before = self.formats
        if isinstance(rows, pa.RecordBatchReader):
            raise misfit
        if (newer := before.like(row_format)) is not row_format:
            return newer  # another call has changed the table since this one began
        columns = await asyncio.to_thread(brought, before.table, rows, row_format)
        if columns is None:
            raise misfit
        row_format = await self.take_columns(columns, row_format)
        if self.formats is before:
            raise misfit
        return row_format

    async def take_columns(self, columns: pa.Schema, row_format: RowFormat) -> RowFormat:
        """Has the table's owner change the table; returns the format of the same operation afterwards."""
        answer = await Maintenance(self._headgate, self._table.name).evolve(columns.serialize().to_pybytes())
        self.runner.channel.columns_changed = True
        self.formats = self.formats.altered(answer.table.schema)
        return self.formats.like(row_format)

    async def _append_as(self, row_format: RowFormat, rows: object, offset: int | None, timeout: float | None) -> int:
        runner = self.runner
        runner.channel.check_accepts(offset)
        messages = iter(encode_call(self.encoder, row_format, rows, offset))
        taken = runner.channel.offset if offset is None else offset
        while (encoded := next(messages, None) if _is_small(rows) else await asyncio.to_thread(next, messages, None)) is not None:
            taken = await runner.append_rows(row_format, encoded, offset, self.seconds(timeout))
        return taken


def whole(offset: int | None) -> int | None:
    """The offset that a call gives, or None. Raises InvalidArgumentError for what is no integer."""
    return None if offset is None else checked_integer(offset, "offset")


def _is_small(rows: object) -> bool:
    """Whether converting the rows takes less time than handing them to a thread."""
    size = getattr(rows, "nbytes", None)
    if isinstance(size, int):
        return size <= SMALL_BYTES
    return not hasattr(rows, "__len__") or hasattr(rows, "keys") or len(rows) <= _INLINE_ROWS
