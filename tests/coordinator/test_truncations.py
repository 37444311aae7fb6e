"""The owner removes rows of its table: channels end and go on with their offsets, and a refused request touches nothing."""

from collections.abc import Awaitable
from typing import Any

import grpc
import pytest

from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1.maintenance_pb2_grpc import MaintenanceServiceStub
from headgate_runtime.errors import from_call
from support.running_coordinator import Running, T
from support.scripted_writer import ScriptedWriter
from support.tables import by_hudi_rs, rows


async def truncate(coordinator: Running, **what: Any) -> api.TruncateResponse:
    request = api.TruncateRequest(table=T, **what)
    answer: api.TruncateResponse = await MaintenanceServiceStub(coordinator.channel).Truncate(request)
    return answer


async def refused(call: Awaitable[Any]) -> errors_pb2.Error:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return from_call(failed.value)


async def ids(coordinator: Running) -> set[str]:
    answer = await coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name=T))
    return {row["id"] for row in by_hudi_rs(answer.table.url)}


async def two_partitions(writer: ScriptedWriter) -> None:
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x"), part="p"), "c", 1)
    await writer.commit(T, rows(("b", 1, "x"), part="q"), "c", 2)


async def test_rows_of_a_partition_go_and_a_channel_goes_on_at_its_offset(coordinator: Running, writer: ScriptedWriter) -> None:
    await two_partitions(writer)
    before = writer.pair(T)
    done = await truncate(coordinator, partitions=["p"])
    assert (bool(done.instant), done.file_groups) == (True, 1)
    detached = await writer.order(T, "detach")
    assert detached.error.code == errors_pb2.CODE_MOVED
    await writer.order(T, "attach")
    assert writer.pair(T)[0] > before[0]
    grant = await writer.open(T, "c", incarnation=1)
    assert grant.committed_offset == 2
    assert await ids(coordinator) == {"b"}


async def test_the_whole_table_goes_when_the_request_says_so(coordinator: Running, writer: ScriptedWriter) -> None:
    await two_partitions(writer)
    assert (await truncate(coordinator, whole_table=True)).file_groups == 2
    assert await ids(coordinator) == set()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({}, "does not say what to do"),
        ({"partitions": ["p"], "whole_table": True}, "does not say what to do"),
        ({"partitions": ["p", "z"]}, "no partition 'z'"),
        ({"partitions": ["p\0"]}, r"no partition 'p\x00'"),
    ],
    ids=["nothing", "both", "unknown", "impossible"],
)
async def test_a_refused_request_says_why_and_ends_no_channel(
    what: dict[str, Any], said: str, coordinator: Running, writer: ScriptedWriter
) -> None:
    await two_partitions(writer)
    before = writer.pair(T)
    error = await refused(truncate(coordinator, **what))
    assert (error.code, said in error.message) == (errors_pb2.CODE_INVALID_ARGUMENT, True)
    assert await ids(coordinator) == {"a", "b"}
    await writer.commit(T, rows(("c", 1, "x"), part="p"), "c", 3)
    assert writer.pair(T) == before
