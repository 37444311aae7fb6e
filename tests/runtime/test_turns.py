"""Costly work of several callers: one at a time, and many requests of one are no queue before another's."""

import asyncio

import pytest

from headgate_runtime.turns import Turns


class Work:
    """Notes who works, in order; each works until it is told that it is done."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.begun: list[str] = []
        self.at_work = 0
        self._done = asyncio.Semaphore(0)

    async def one(self, caller: str) -> None:
        async with self.turns.turn(caller):
            self.begun.append(caller)
            self.at_work += 1
            assert self.at_work == 1
            try:
                await self._done.acquire()
            finally:
                self.at_work -= 1

    async def ask(self, caller: str) -> asyncio.Task[None]:
        """Asks for a turn; returns when it has one or waits."""
        asked = asyncio.create_task(self.one(caller))
        await asyncio.sleep(0)
        return asked

    def let_one_end(self) -> None:
        self._done.release()


async def test_one_works_at_a_time_and_callers_have_turns_however_many_requests_of_one_wait() -> None:
    work = Work()
    asked = [await work.ask(caller) for caller in ("ann", "ann", "ann", "bob", "carl", "bob")]
    for _ in asked:
        work.let_one_end()
    await asyncio.gather(*asked)
    assert work.begun == ["ann", "bob", "carl", "ann", "bob", "ann"]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["at work", "waiting for its caller's", "waiting for all others'"])
async def test_a_request_that_is_given_up_leaves_its_place_to_the_next(place: int) -> None:
    work = Work()
    asked = [await work.ask(caller) for caller in ("ann", "ann", "bob")]
    asked.pop(place).cancel()
    for _ in range(3):
        work.let_one_end()
    await asyncio.gather(*asked, work.one("carl"))
    assert sorted(work.begun) == [["ann", "ann", "bob"], ["ann", "bob"], ["ann", "ann"]][place] + ["carl"]
