"""Asks coordinators whether a table takes rows, for a client that opens a channel before the table is attached."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import grpc

from headgate_proto.api.v1 import errors_pb2, tables_pb2, tables_pb2_grpc
from headgate_runtime.cancelling import raise_if_cancelled
from headgate_runtime.coordinator_client import ANSWER_S
from headgate_runtime.errors import RpcError, from_call, rpc_error, wire_error

_Answer = TypeVar("_Answer")
_NO_TABLE = (errors_pb2.CODE_TABLE_NOT_FOUND, errors_pb2.CODE_TABLE_DROPPED, errors_pb2.CODE_TABLE_RENAMED)


async def check_identity(table: str, wanted: str, attached: str, coordinators: Iterable[grpc.aio.Channel]) -> None:
    """Raises RpcError unless the table that is attached is the one that the producer means, by their ids (rule D8). Of two, a
    coordinator says which has the name: the attached one may be a dropped one, whose owner sleeps. While none answers, the
    producer is to come again: that its table was dropped would end it for good. One that was renamed is named.
    """
    if wanted in ("", attached):
        return
    request = tables_pb2.DescribeTableRequest(name=table, table_uuid=wanted)
    answered = False
    for channel in coordinators:
        said = await _ask(channel, lambda tables: tables.DescribeTable(request, timeout=ANSWER_S))
        if isinstance(said, errors_pb2.Error):
            if said.code == errors_pb2.CODE_TABLE_RENAMED:
                raise RpcError(said)
            answered = answered or said.code in _NO_TABLE
        elif said is not None:
            answered = True
            if said.table.table_uuid == wanted:
                raise rpc_error(
                    errors_pb2.CODE_MOVED, "this writer has an older table of this name", "Open it at another writer."
                )
    if not answered:
        what = f"no coordinator says which table has the name {table!r} now"
        raise rpc_error(errors_pb2.CODE_UNAVAILABLE, what, "Open the channel again.")
    raise rpc_error(
        errors_pb2.CODE_TABLE_DROPPED,
        f"the table {table!r} in which the channel was opened was dropped, and another one has its name",
        "Look at the new table, and open the channel in it anew if its rows belong there.",
    )


async def find_refusal(table: str, wanted: str, coordinators: Iterable[grpc.aio.Channel]) -> errors_pb2.Error | None:
    """Returns why the table takes no rows: it does not exist, was dropped or renamed, or is quarantined. None if it may take
    rows, or no coordinator answers. ``wanted``: the id of the table that the producer means, "" if it says none.
    """
    request = tables_pb2.DescribeTableRequest(name=table, table_uuid=wanted)

    async def status(tables: "tables_pb2_grpc.TableServiceAsyncStub") -> tables_pb2.StatusResponse:
        await tables.DescribeTable(request, timeout=ANSWER_S)
        return await tables.Status(tables_pb2.StatusRequest(table=table), timeout=ANSWER_S)

    for channel in coordinators:
        said = await _ask(channel, status)
        if isinstance(said, errors_pb2.Error):
            if said.code in _NO_TABLE:
                return said
        # Only the coordinator with the table's lease knows of a quarantine.
        elif said is not None and any(each.state == "quarantined" for each in said.tables):
            return wire_error(
                errors_pb2.CODE_TABLE_QUARANTINED,
                f"table {table!r} takes no rows until an operator has looked at it",
                "Ask the operators of the cluster: `headgate status` says what is wrong. Committed rows stay readable.",
            )
    return None


async def _ask(
    coordinator: grpc.aio.Channel, question: Callable[["tables_pb2_grpc.TableServiceAsyncStub"], Awaitable[_Answer]]
) -> _Answer | errors_pb2.Error | None:
    """Returns what a coordinator answers; None if the connection to it was closed meanwhile."""
    try:
        return await question(tables_pb2_grpc.TableServiceStub(coordinator))
    except grpc.aio.AioRpcError as failed:
        return from_call(failed)
    except asyncio.CancelledError:
        raise_if_cancelled()
        return None  # grpcio shows a closed connection as a cancelled call
