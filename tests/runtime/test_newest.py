"""Places that the newest callers have: the turn of the oldest ends for one more, and nobody else hears of that."""

import asyncio

import pytest

from headgate_runtime.errors import RpcError
from headgate_runtime.newest import Newest


async def stay(newest: Newest, seconds: float | None) -> None:
    async with newest.turn(seconds):
        await asyncio.Event().wait()


async def test_one_more_ends_the_turn_of_the_oldest() -> None:
    newest = Newest(2)
    oldest, other = (asyncio.create_task(stay(newest, None)) for _ in range(2))
    await asyncio.sleep(0)
    async with newest.turn(None):
        with pytest.raises(RpcError):
            await oldest
        assert not other.done()
    other.cancel()


async def test_a_caller_has_the_place_of_one_whose_time_ends_in_the_same_step() -> None:
    newest = Newest(1)
    oldest = asyncio.create_task(stay(newest, 0))
    for _ in range(2):  # its turn begins, and its time ends; it hears of that in the next step
        await asyncio.sleep(0)
    async with newest.turn(None):
        with pytest.raises(RpcError):
            await oldest
