"""The owner lends its table: nobody else writes it until the caller is done, or the time is over, and then it goes on."""

import asyncio

import pytest

from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1.maintenance_pb2_grpc import MaintenanceServiceStub
from headgate_tables import hudi
from headgate_tables.errors import DeposedError
from support.running_coordinator import Running, T
from support.scripted_writer import ScriptedWriter
from support.tables import by_hudi_rs, rows

LONG_MS = 60_000


def lend(coordinator: Running, longest_ms: int = LONG_MS):  # type: ignore[no-untyped-def]  # a call of gRPC's
    return MaintenanceServiceStub(coordinator.channel).Lend(api.LendRequest(table=T, longest_ms=longest_ms))


async def filled(writer: ScriptedWriter) -> None:
    await writer.open(T, "c")
    await writer.commit(T, rows(*((f"k{at}", 1, "x") for at in range(20))), "c", 1)


async def goes_on(coordinator: Running, writer: ScriptedWriter) -> api.LendResponse:
    """The table is attached again, with what was done to it, and the channel goes on."""
    attached = await writer.order(T, "attach")
    assert (await writer.open(T, "c", incarnation=1)).committed_offset == 1
    await writer.commit(T, rows(("new", 1, "x")), "c", 2)
    return attached


async def url(coordinator: Running) -> str:
    answer = await coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name=T))
    return str(answer.table.url)


async def test_a_program_works_on_the_lent_table_and_writers_go_on_with_what_it_did(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    await filled(writer)
    before = writer.pair(T)
    call = lend(coordinator)
    lent = await call.read()
    assert (await writer.order(T, "detach")).error.code == errors_pb2.CODE_MOVED
    with hudi.open_table(lent.url, take_over=True) as table:
        done = table.rescale(5)
    call.cancel()
    attached = await goes_on(coordinator, writer)
    assert (attached.definition.buckets, attached.definition.rescaled) == (5, done.instant)
    assert writer.pair(T)[0] > before[0]
    assert len(by_hudi_rs(await url(coordinator))) == 21


async def test_after_the_time_the_owner_takes_the_table_back_and_the_program_commits_nothing(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    await filled(writer)
    call = lend(coordinator, 300)
    lent = await call.read()
    await writer.order(T, "detach")
    with hudi.open_table(lent.url, take_over=True) as table:
        table.own()
        assert await call.read() != lent, "the stream ends with the loan"
        attached = await goes_on(coordinator, writer)
        with pytest.raises(DeposedError):
            table.rescale(5)
    assert attached.definition.buckets == 2
    assert len(by_hudi_rs(await url(coordinator))) == 21


async def test_a_caller_that_goes_before_the_table_is_lent_costs_a_moment(coordinator: Running, writer: ScriptedWriter) -> None:
    await filled(writer)
    call = lend(coordinator)
    await asyncio.sleep(0)
    call.cancel()
    second = lend(coordinator)
    assert (await second.read()).url == await url(coordinator)
    second.cancel()
