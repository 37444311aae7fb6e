"""The owner alters its table: channels end, writers get the new columns, and a refused change touches nothing (rule C7)."""

from collections.abc import Awaitable
from typing import Any

import grpc
import pyarrow as pa
import pytest

from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1.maintenance_pb2_grpc import MaintenanceServiceStub
from headgate_runtime.errors import from_call
from headgate_tables.hudi import open_table
from support.running_coordinator import Running, T
from support.scripted_writer import ScriptedWriter
from support.tables import SCHEMA, by_hudi_rs, rows

GATE = pa.field("gate", pa.string())


def message(*fields: Any) -> bytes:
    return pa.schema(list(fields)).serialize().to_pybytes()


async def alter(coordinator: Running, **change: Any) -> api.AlterResponse:
    answer: api.AlterResponse = await MaintenanceServiceStub(coordinator.channel).Alter(api.AlterRequest(table=T, **change))
    return answer


async def refused(call: Awaitable[Any]) -> errors_pb2.Error:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return from_call(failed.value)


def columns_of(table: tables_pb2.TableDescription) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(table.schema))


async def described(coordinator: Running) -> tables_pb2.TableDescription:
    answer = await coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name=T))
    found: tables_pb2.TableDescription = answer.table
    return found


async def test_channels_end_and_writers_get_the_table_with_the_new_column_under_another_epoch(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    before = writer.pair(T)
    answer = await alter(coordinator, add=message(GATE))
    assert (list(answer.added), bool(answer.instant)) == (["gate: string"], True)
    assert columns_of(answer.table) == columns_of(await described(coordinator)) == SCHEMA.append(GATE)
    detached = await writer.order(T, "detach")
    assert detached.error.code == errors_pb2.CODE_MOVED
    attached = await writer.order(T, "attach")
    assert pa.ipc.read_schema(pa.py_buffer(attached.definition.schema)) == SCHEMA.append(GATE)
    assert writer.pair(T)[0] > before[0]
    grant = await writer.open(T, "c", incarnation=1)
    assert grant.committed_offset == 1
    await writer.commit(T, rows(("b", 1, "y")).append_column(GATE, pa.array(["A1"])), "c", 2)
    found = {row["id"]: row["gate"] for row in by_hudi_rs(answer.table.url)}
    assert found == {"a": None, "b": "A1"}


async def test_a_change_that_is_made_already_and_a_plan_of_one_end_no_channel(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    await writer.open(T, "c")
    before = writer.pair(T)
    planned = await alter(coordinator, add=message(GATE), plan_only=True)
    assert (list(planned.added), planned.instant) == (["gate: string"], "")
    assert columns_of(planned.table) == SCHEMA.append(GATE)
    same = await alter(coordinator, add=message(SCHEMA.field("note")), widen=message(SCHEMA.field("ts")), nullable=["note"])
    assert (list(same.added), list(same.widened), list(same.nullable), same.instant) == ([], [], [], "")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    assert writer.pair(T) == before
    assert columns_of(await described(coordinator)) == SCHEMA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({}, errors_pb2.CODE_INVALID_ARGUMENT, "does not say what to change"),
        ({"add": b"no arrow"}, errors_pb2.CODE_SCHEMA, "no Arrow IPC schema"),
        ({"add": message(GATE, GATE)}, errors_pb2.CODE_SCHEMA, "names a column twice"),
        ({"add": message(pa.field("note", pa.int64()))}, errors_pb2.CODE_SCHEMA, "has a column 'note' already"),
        ({"widen": message(pa.field("note", pa.int64()))}, errors_pb2.CODE_SCHEMA, "cannot become int64"),
        ({"widen": message(pa.field("ts", pa.float64()))}, errors_pb2.CODE_SCHEMA, "a part of the key, partition or ordering"),
        ({"nullable": ["nothing"]}, errors_pb2.CODE_SCHEMA, "no column 'nothing'"),
        ({"add": message(*(pa.field(f"c{n}", pa.int32()) for n in range(1_999)))}, errors_pb2.CODE_TOO_LARGE, "columns"),
    ],
    ids=["nothing", "no schema", "twice", "there", "narrower", "ordering", "unknown", "too many"],
)
async def test_a_refused_change_says_why_and_ends_no_channel(
    change: dict[str, Any], code: int, said: str, coordinator: Running, writer: ScriptedWriter
) -> None:
    await writer.open(T, "c")
    before = writer.pair(T)
    error = await refused(alter(coordinator, **change))
    assert error.code == code
    assert said in error.message
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    assert writer.pair(T) == before
    assert open_table((await described(coordinator)).url).schema == SCHEMA
