"""Asks coordinators whether a table takes rows, for a client that opens a channel before the table is attached."""

import asyncio
from collections.abc import Iterable

import grpc

from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1.tables_pb2_grpc import TableServiceStub
from headgate_runtime.cancelling import raise_if_cancelled
from headgate_runtime.coordinator_client import ANSWER_S
from headgate_runtime.errors import from_call, rpc_error, wire_error

_NO_TABLE = (errors_pb2.CODE_TABLE_NOT_FOUND, errors_pb2.CODE_TABLE_DROPPED, errors_pb2.CODE_TABLE_RENAMED)


async def check_identity(table: str, wanted: str, attached: str, coordinators: Iterable[grpc.aio.Channel]) -> None:
    """Raises RpcError unless the table that is attached is the one that the producer means, by their ids (rule D8). Of two, a
    coordinator says which has the name: the attached one may be a dropped one, whose owner sleeps. While none answers, the
    producer is to come again: that its table was dropped would end it for good.
    """
    if wanted in ("", attached):
        return
    answered = False
    for channel in coordinators:
        try:
            request = tables_pb2.DescribeTableRequest(name=table)
            described = await TableServiceStub(channel).DescribeTable(request, timeout=ANSWER_S)
        except grpc.aio.AioRpcError as failed:
            answered = answered or from_call(failed).code in _NO_TABLE
            continue
        except asyncio.CancelledError:
            raise_if_cancelled()
            continue
        answered = True
        if described.table.table_uuid == wanted:
            raise rpc_error(errors_pb2.CODE_MOVED, "this writer has an older table of this name", "Open it at another writer.")
    if not answered:
        what = f"no coordinator says which table has the name {table!r} now"
        raise rpc_error(errors_pb2.CODE_UNAVAILABLE, what, "Open the channel again.")
    raise rpc_error(
        errors_pb2.CODE_TABLE_DROPPED,
        f"the table {table!r} in which the channel was opened was dropped, and another one has its name",
        "Look at the new table, and open the channel in it anew if its rows belong there.",
    )


async def find_refusal(table: str, coordinators: Iterable[grpc.aio.Channel]) -> errors_pb2.Error | None:
    """Returns why the table takes no rows: it does not exist, was dropped or renamed, or is quarantined. None if it may take
    rows, or no coordinator answers.
    """
    for channel in coordinators:
        tables = TableServiceStub(channel)
        try:
            await tables.DescribeTable(tables_pb2.DescribeTableRequest(name=table), timeout=ANSWER_S)
            status = await tables.Status(tables_pb2.StatusRequest(table=table), timeout=ANSWER_S)
        except grpc.aio.AioRpcError as failed:
            error = from_call(failed)
            if error.code in _NO_TABLE:
                return error
            continue
        except asyncio.CancelledError:
            raise_if_cancelled()
            continue  # its connection was closed meanwhile, which grpcio shows as a cancelled call
        # Only the coordinator with the table's lease knows of a quarantine.
        if any(each.state == "quarantined" for each in status.tables):
            return wire_error(
                errors_pb2.CODE_TABLE_QUARANTINED,
                f"table {table!r} takes no rows until an operator has looked at it",
                "Ask the operators of the cluster: `headgate status` says what is wrong. Committed rows stay readable.",
            )
    return None
