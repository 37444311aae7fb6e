"""Asks coordinators whether a table takes rows, for a client that opens a channel before the table is attached."""

import asyncio
from collections.abc import Iterable

import grpc

from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1.tables_pb2_grpc import TableServiceStub
from headgate_runtime.cancelling import raise_if_cancelled
from headgate_runtime.coordinator_client import ANSWER_S
from headgate_runtime.errors import from_call, wire_error


async def find_refusal(table: str, coordinators: Iterable[grpc.aio.Channel]) -> errors_pb2.Error | None:
    """Returns why the table takes no rows: it does not exist, or is quarantined. None if it may take rows, or no coordinator
    answers.
    """
    for channel in coordinators:
        tables = TableServiceStub(channel)
        try:
            await tables.DescribeTable(tables_pb2.DescribeTableRequest(name=table), timeout=ANSWER_S)
            status = await tables.Status(tables_pb2.StatusRequest(table=table), timeout=ANSWER_S)
        except grpc.aio.AioRpcError as failed:
            error = from_call(failed)
            if error.code == errors_pb2.CODE_TABLE_NOT_FOUND:
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
