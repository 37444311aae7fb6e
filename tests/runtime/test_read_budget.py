"""Memory for requests, shared out among callers."""

import asyncio

import pytest

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import RpcError
from headgate_runtime.read_budget import ReadBudget
from support.processes import READY_S

LONG = 3_600.0


async def waiting(budget: ReadBudget, caller: str, nbytes: int) -> "asyncio.Task[None]":
    """A caller that has asked and waits, or has got it."""
    task = asyncio.create_task(budget.reserve(caller, nbytes))
    await asyncio.sleep(0)
    return task


async def test_never_more_than_all_of_it_is_reserved_and_what_is_freed_goes_to_the_next() -> None:
    budget = ReadBudget(10, LONG)
    await budget.reserve("a", 5)
    await budget.reserve("b", 5)
    third = await waiting(budget, "c", 5)
    assert (budget.used, third.done()) == (10, False)
    budget.free("a", 5)
    await third
    assert budget.used == 10


async def test_a_caller_waits_at_its_half_while_others_are_served() -> None:
    budget = ReadBudget(10, LONG)
    await budget.reserve("a", 5)
    more = [await waiting(budget, "a", 5) for _ in range(20)]
    await asyncio.wait_for(budget.reserve("b", 5), READY_S)
    assert not any(task.done() for task in more)
    budget.free("a", 5)
    await more[0]
    assert not any(task.done() for task in more[1:])
    for task in more:
        task.cancel()


async def test_the_caller_that_holds_least_is_next() -> None:
    budget = ReadBudget(12, LONG)
    for _ in range(2):
        await budget.reserve("a", 3)
        await budget.reserve("b", 3)
    budget.free("b", 3)
    first_a, then_b, at_last_c = [await waiting(budget, name, 4) for name in ("a", "b", "c")]
    budget.free("a", 3)
    await at_last_c
    assert not any(task.done() for task in (first_a, then_b))
    for task in (first_a, then_b):
        task.cancel()


async def test_a_large_request_is_not_overtaken_by_small_ones() -> None:
    budget = ReadBudget(10, LONG)
    await budget.reserve("a", 4)
    await budget.reserve("b", 4)
    large, small = await waiting(budget, "c", 5), await waiting(budget, "d", 2)
    assert not small.done()
    budget.free("a", 4)
    await large
    assert not small.done()
    small.cancel()


async def test_one_that_is_larger_than_everything_gets_its_turn_alone() -> None:
    budget = ReadBudget(10, LONG)
    await budget.reserve("a", 2)
    giant = await waiting(budget, "b", 50)
    assert not giant.done()
    budget.free("a", 2)
    await giant
    assert not (await waiting(budget, "c", 1)).done()


async def test_who_waits_too_long_is_refused_and_keeps_nothing() -> None:
    budget = ReadBudget(10, 0.01)
    await budget.reserve("a", 10)
    with pytest.raises(RpcError) as refused:
        await budget.reserve("b", 1)
    assert (refused.value.error.code, refused.value.error.action) == (errors_pb2.CODE_OVERLOADED, errors_pb2.ACTION_RETRY)
    budget.free("a", 10)
    assert budget.used == 0


@pytest.mark.parametrize("turn_came", [False, True])
async def test_who_is_cancelled_keeps_nothing(turn_came: bool) -> None:
    """Also when the turn came at the very moment."""
    budget = ReadBudget(10, LONG)
    await budget.reserve("a", 10)
    waits = await waiting(budget, "b", 10)
    if turn_came:
        budget.free("a", 10)
    waits.cancel()
    await asyncio.wait((waits,))
    if not turn_came:
        budget.free("a", 10)
    assert budget.used == 0
    await budget.reserve("c", 10)


async def test_the_block_that_has_reserved_frees_it_at_its_end() -> None:
    budget = ReadBudget(10, LONG)
    async with budget.reserved("a", 7):
        assert budget.used == 7
    assert budget.used == 0
