"""Serves clients: opens a channel of a table for each stream, and hands the stream over."""

import asyncio
import math
from collections.abc import AsyncIterator
from functools import partial
from typing import TypeAlias

import grpc

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_proto.api.v1.ingest_pb2_grpc import IngestServiceServicer
from headgate_runtime.access.call import Call
from headgate_runtime.access.quotas import Usage
from headgate_runtime.descriptions import describe
from headgate_runtime.errors import RpcError, from_tables, rpc_error
from headgate_runtime.grpc_server import call
from headgate_runtime.part_reader import PartReader
from headgate_tables.catalog_records import check_name
from headgate_tables.errors import OptionError
from headgate_writer.channels import Hold
from headgate_writer.client_stream import AppendContext, ClientStream, PrincipalLimits, Requests, StreamResources
from headgate_writer.control import ControlClient
from headgate_writer.refusal import check_identity, find_refusal
from headgate_writer.table_writer import TableWriter, moved_error
from headgate_writer.tables import Tables

_MAX_CHANNEL_BYTES = 255
_Opened: TypeAlias = tuple[ingest_pb2.OpenChannel, TableWriter, Hold]


class IngestService(IngestServiceServicer):
    """``attach_s``: seconds that a client waits for a table that its owner has not attached to this writer yet."""

    def __init__(self, tables: Tables, coordinators: ControlClient, shared: StreamResources, attach_s: float) -> None:
        self._tables = tables
        self._coordinators = coordinators
        self._shared = shared
        self._attach_s = attach_s

    async def Append(  # type: ignore[override]
        self,
        request_iterator: AsyncIterator[ingest_pb2.AppendRequest],  # noqa: ARG002 - gRPC's
        context: AppendContext,
    ) -> None:
        """Serves one channel (``ingest.proto``). Answers `ended` whenever this side ends the stream."""
        requests = PartReader(context, self._shared.decode, self._shared.receiving, call(context).sharer)
        try:
            await self._serve(requests, context)
        finally:
            requests.release()

    async def _serve(self, requests: Requests, context: AppendContext) -> None:
        caller = call(context)
        principal = caller.identity.principal
        await self._shared.opens.wait(caller.sharer)
        found = await self._open(requests, caller)
        if isinstance(found, errors_pb2.Error):
            requests.release()
            await self._shared.tarpit.wait_if_at_fault(caller.sharer, found)
            await _answer(context, ingest_pb2.AppendResponse(ended=ingest_pb2.Ended(error=found)))
            return
        opening, writer, hold = found
        try:
            self._shared.reached("channel_opened")
            if await _answer(context, ingest_pb2.AppendResponse(opened=self._opened(hold, writer))):
                with (
                    caller.while_allowed(opening.table, opening.channel, partial(writer.end_hold, hold)),
                    self._shared.rates.stream_of(principal, caller.usage) as rate,
                ):
                    limits = PrincipalLimits(caller.sharer, rate, caller.usage)
                    await ClientStream(requests, context, hold, writer, self._shared, limits).serve()
        finally:
            writer.release_hold(hold)

    async def _open(self, requests: Requests, caller: Call) -> _Opened | errors_pb2.Error:
        """The channel that the stream's first message opens, or why it is refused: an exception would keep the message."""
        try:
            opening = _opening(await requests.read())
            with caller.on_table(opening.table, opening.channel):
                writer = await self._writer(opening.table, opening.table_uuid)
                uuid = str(writer.attached.definition.table_uuid)
                await check_identity(opening.table, opening.table_uuid, uuid, self._coordinators.channels)
                quota = _channel_quota(caller.usage())
                hold = await writer.open_channel(opening.channel, opening.incarnation, caller.identity.principal, quota)
        except RpcError as refused:
            return refused.error
        return opening, writer, hold

    async def _writer(self, table: str, wanted: str) -> TableWriter:
        if self._tables.leaving:
            raise RpcError(moved_error())
        if (writer := self._tables.writer_of(table)) is not None:
            return writer
        refusal = await find_refusal(table, wanted, self._coordinators.channels)
        if refusal is not None:
            raise RpcError(refusal)
        try:
            async with asyncio.timeout(self._attach_s):
                while (writer := self._tables.writer_of(table)) is None:
                    await self._tables.wait_for_change(table)
        except TimeoutError:
            raise rpc_error(
                errors_pb2.CODE_UNAVAILABLE, f"table {table!r} has no owner just now", "Send the same again shortly."
            ) from None
        return writer

    def _opened(self, hold: Hold, writer: TableWriter) -> ingest_pb2.Opened:
        attached = writer.attached
        return ingest_pb2.Opened(
            incarnation=hold.incarnation,
            committed_offset=hold.committed_at_open,
            table=describe(attached.name, attached.url, attached.definition),
            max_in_flight_bytes=self._shared.max_in_flight,
            restored=attached.restored,
        )


def _channel_quota(usage: Usage) -> int:
    """As the owner takes it; 0: no quota."""
    return 0 if math.isinf(usage.channels) else int(usage.channels)


async def _answer(context: AppendContext, answer: ingest_pb2.AppendResponse) -> bool:
    """False when the client is gone."""
    try:
        await context.write(answer)
    except grpc.aio.BaseError:
        return False
    return True


def _opening(first: ingest_pb2.AppendRequest | None) -> ingest_pb2.OpenChannel:
    """Returns the open in the stream's first message. Raises RpcError when there is none."""
    if first is None or first.WhichOneof("message") != "open":
        raise rpc_error(errors_pb2.CODE_INVALID_ARGUMENT, "the first message is not `open`", "Open a channel first.")
    opening = first.open
    try:
        check_name(opening.table)
    except OptionError as error:
        raise RpcError(from_tables(error)) from error
    name = opening.channel
    if not 1 <= len(name.encode()) <= _MAX_CHANNEL_BYTES or not name.isprintable():
        raise rpc_error(
            errors_pb2.CODE_INVALID_ARGUMENT,
            "the channel's name is empty, too long, or has control characters",
            f"Use a name of 1 to {_MAX_CHANNEL_BYTES} bytes of UTF-8 without control characters.",
        )
    return opening
