"""When a refusal is answered: those of a flood one after the other, and never more of them waiting than there are places."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from headgate_runtime.tarpit import LONGEST_WAIT_S, Tarpit
from support.hand_clock import HandClock
from support.processes import READY_S


class Recording(HandClock):
    """Says how long each sleeps; ``over`` ends all sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        await self.over.wait()


@contextlib.asynccontextmanager
async def waiting(wait: Callable[[str], Coroutine[Any, Any, None]], *callers: str) -> AsyncIterator[list["asyncio.Future[None]"]]:
    """These callers wait, in this order, while the block runs."""
    tasks = [asyncio.ensure_future(wait(caller)) for caller in callers]
    await asyncio.sleep(0)
    yield tasks
    for task in tasks:
        task.cancel()


async def test_some_refusals_are_free_and_those_behind_them_are_evenly_spaced() -> None:
    clock = Recording()
    tarpit = Tarpit(clock, places=8, at_once=2)
    async with waiting(tarpit.wait, *["a"] * 3), waiting(tarpit.wait_in_a_place, *["a"] * 2):
        assert clock.slept == [0.5, 1.0, 1.5]


async def test_the_refusals_of_one_caller_delay_none_of_another() -> None:
    clock = Recording()
    async with waiting(Tarpit(clock, places=8, at_once=1).wait, "a", "a", "a", "b"):
        assert clock.slept == [1.0, 2.0]


async def test_as_many_wait_as_there_are_places_and_all_of_these_for_places_of_their_own() -> None:
    """The longest wait is that of the last place, so that those who wait do not end together."""
    clock = Recording()
    async with waiting(Tarpit(clock, places=4, at_once=1).wait_in_a_place, *["a"] * 6) as tasks:
        assert clock.slept == [1.0, 2.0, 3.0]
        await asyncio.wait(tasks[4:])
        assert [task.done() for task in tasks] == [True, False, False, False, True, True]


async def test_no_refusal_waits_longer_than_programs_wait_for_an_answer() -> None:
    clock = Recording()
    async with waiting(Tarpit(clock, places=1_000, at_once=0.1).wait, *["a"] * 4):
        assert clock.slept == [9.0, 19.0, LONGEST_WAIT_S, LONGEST_WAIT_S]


async def test_who_has_a_place_among_the_calls_of_clients_waits_also_when_those_of_the_tarpit_are_taken() -> None:
    clock = Recording()
    tarpit = Tarpit(clock, places=1, at_once=1)
    async with waiting(tarpit.wait_in_a_place, "stranger", "stranger"), waiting(tarpit.wait, "ann", "ann") as (first, second):
        await asyncio.wait([first])
        assert not second.done()


async def test_a_caller_that_goes_away_leaves_its_place_to_the_next() -> None:
    clock = Recording()
    wait = Tarpit(clock, places=1, at_once=1).wait_in_a_place
    async with waiting(wait, "a", "a") as (_, held):
        held.cancel()
        await asyncio.wait([held])
        async with waiting(wait, "b", "b") as (_, following):
            assert not following.done()


async def test_a_refusal_waits_no_longer_than_its_time() -> None:
    clock = Recording()
    async with waiting(Tarpit(clock, places=1, at_once=1).wait_in_a_place, "a", "a") as tasks:
        clock.over.set()
        await asyncio.wait(tasks)


async def test_health_checks_do_not_wait_while_few_come_not_even_those_of_one_connection() -> None:
    clock = Recording()
    tarpit = Tarpit(clock, places=32, at_once=5)
    async with waiting(tarpit.wait_for_check, *["c"] * 5):
        assert clock.slept == []


async def test_a_health_check_of_the_one_connection_from_which_too_many_come_waits_as_long_as_for_its_others() -> None:
    clock = Recording()
    async with waiting(Tarpit(clock, places=32, at_once=5).wait_for_check, *["c"] * 6):
        assert clock.slept == [5.0]


@pytest.mark.parametrize("known", [300, 1_000], ids=["some connections", "very many"])
async def test_while_many_health_checks_come_each_connection_makes_one_a_second(known: int) -> None:
    """Evenly spaced, or all that come from one would begin together in the end."""
    clock = Recording()
    tarpit = Tarpit(clock, places=32, at_once=5)
    for number in range(known):
        await tarpit.wait_for_check(f"other {number}")
    async with waiting(tarpit.wait_for_check, *["c"] * 4):
        assert clock.slept == [1.0, 2.0, 3.0]
        await asyncio.wait_for(tarpit.wait_for_check("a probe"), READY_S)


async def test_health_checks_that_wait_leave_the_places_of_refusals_free() -> None:
    clock = Recording()
    tarpit = Tarpit(clock, places=4, at_once=1)
    async with waiting(tarpit.wait_for_check, *["c"] * 9), waiting(tarpit.wait_in_a_place, *["a"] * 4):
        assert clock.slept == [1.0, 1.0, 2.0, 3.0]


async def test_refusals_that_wait_leave_a_place_of_health_checks_free() -> None:
    clock = Recording()
    tarpit = Tarpit(clock, places=4, at_once=1)
    async with waiting(tarpit.wait_in_a_place, *["a"] * 9), waiting(tarpit.wait_for_check, *["c"] * 2):
        assert clock.slept == [1.0, 2.0, 3.0, 1.0]
