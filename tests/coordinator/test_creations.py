"""What creations of tables may cost a coordinator: refused ones are limited, and schemas are read one at a time."""

import asyncio

import pytest

from headgate_coordinator.services.creations import AT_ONCE, Creations
from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import RpcError, rpc_error
from support.hand_clock import HandClock

FREE = 10


def refuse(creations: Creations, caller: str, code: "errors_pb2.Code.ValueType" = errors_pb2.CODE_SCHEMA) -> None:
    with pytest.raises(RpcError), creations.counted(caller):
        raise rpc_error(code, "no", "Stop.")


async def refusal_of(creations: Creations, caller: str) -> errors_pb2.Error | None:
    """The answer to one that would read its schema now."""
    try:
        with creations.counted(caller):
            async with creations.reading(caller):
                return None
    except RpcError as refused:
        return refused.error


async def test_who_was_refused_too_often_is_refused_unread_and_learns_when_to_come_again() -> None:
    clock = HandClock()
    creations = Creations(clock, refusals=5)
    for _ in range(FREE):
        refuse(creations, "ann")
    assert await refusal_of(creations, "ann") is None
    for _ in range(5):
        refuse(creations, "ann")
    refusal = await refusal_of(creations, "ann")
    assert refusal is not None
    assert (refusal.code, refusal.action) == (errors_pb2.CODE_OVERLOADED, errors_pb2.ACTION_RETRY)
    assert refusal.retry_after_ms == pytest.approx(1_000, abs=1)
    assert "1.0 s" in refusal.fix
    assert await refusal_of(creations, "bob") is None
    clock.now += refusal.retry_after_ms / 1000
    assert await refusal_of(creations, "ann") is None


async def test_to_be_refused_for_its_rate_costs_a_caller_nothing_more() -> None:
    clock = HandClock()
    creations = Creations(clock, refusals=5)
    for _ in range(FREE + 5):
        refuse(creations, "ann")
    for _ in range(100):
        assert await refusal_of(creations, "ann") is not None
    clock.now += 1.001
    assert await refusal_of(creations, "ann") is None


@pytest.mark.parametrize("code", [errors_pb2.CODE_TABLE_EXISTS, errors_pb2.CODE_UNAVAILABLE])
async def test_a_table_that_is_there_and_a_store_that_is_not_are_no_faults_of_the_caller(
    code: "errors_pb2.Code.ValueType",
) -> None:
    creations = Creations(HandClock(), refusals=5)
    for _ in range(10 * FREE):
        refuse(creations, "ann", code)
    assert await refusal_of(creations, "ann") is None


async def test_schemas_are_read_one_at_a_time_and_refused_ones_make_those_behind_them_unread() -> None:
    creations = Creations(HandClock(), refusals=5)
    reading = read = 0

    async def create() -> None:
        nonlocal reading, read
        with creations.counted("ann"):
            async with creations.reading("ann"):
                reading += 1
                assert reading == 1
                await asyncio.sleep(0)
                reading -= 1
                read += 1
            raise rpc_error(errors_pb2.CODE_SCHEMA, "no", "Stop.")

    refused = await asyncio.gather(*(create() for _ in range(40)), return_exceptions=True)
    codes = [each.error.code for each in refused if isinstance(each, RpcError)]
    assert len(codes) == 40
    assert FREE < read <= FREE + 2
    assert codes.count(errors_pb2.CODE_OVERLOADED) == 40 - read


async def test_so_many_creations_are_under_way_at_once_and_no_more() -> None:
    creations = Creations(HandClock(), refusals=5)
    over = asyncio.Event()
    under_way = 0

    async def create(caller: str) -> None:
        nonlocal under_way
        with creations.counted(caller):
            under_way += 1
            await over.wait()

    calls = [asyncio.create_task(create(caller)) for caller in ["ann"] * AT_ONCE + ["bob"] * AT_ONCE]
    await asyncio.sleep(0)
    assert under_way == AT_ONCE
    over.set()
    refused = await asyncio.gather(*calls, return_exceptions=True)
    assert [each.error.code for each in refused if isinstance(each, RpcError)] == [errors_pb2.CODE_OVERLOADED] * AT_ONCE
