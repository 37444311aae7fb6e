"""Capacity, attempts and coordinators of one compactor: without streams and files."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from headgate_compactor.attempt_pool import AttemptPool
from headgate_compactor.runner import RunningAttempt
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.world import World
from support.processes import READY_S


@dataclass(eq=False)
class Coordinator:
    """``told``: what it heard, by kind, with the capacity of a Ready."""

    told: list[str] = field(default_factory=list)

    def send(self, message: wire.WorkRequest) -> None:
        kind = message.WhichOneof("message") or ""
        self.told.append(f"ready {message.ready.operations}" if kind == "ready" else kind)

    async def until(self, kind: str) -> None:
        while kind not in self.told:
            await asyncio.sleep(0.001)


@dataclass
class Hands:
    """Does the work: each attempt goes on until a test finishes it by its number, or it is given up."""

    running: dict[int, RunningAttempt] = field(default_factory=dict)
    done: dict[int, threading.Event] = field(default_factory=dict)

    def work(self, running: RunningAttempt) -> wire.WorkRequest:
        attempt = running.order.attempt
        done = self.done.setdefault(attempt.number, threading.Event())
        self.running[attempt.number] = running
        while not done.wait(0.001):
            if running.dropped:
                return wire.WorkRequest(returned=wire.AttemptReturned(attempt=attempt))
        return wire.WorkRequest(finished=wire.AttemptFinished(attempt=attempt))

    def finish(self, number: int) -> None:
        self.done.setdefault(number, threading.Event()).set()

    async def begun(self, *numbers: int) -> None:
        while not self.running.keys() >= set(numbers):
            await asyncio.sleep(0.001)


@asynccontextmanager
async def attempt_pool(capacity: int) -> AsyncIterator[tuple[AttemptPool, Hands]]:
    hands = Hands()
    with ThreadPoolExecutor(4) as threads:
        try:
            async with asyncio.timeout(READY_S), asyncio.TaskGroup() as group:
                yield AttemptPool(capacity, hands.work, threads, group, World.real()), hands
        finally:
            for number in range(10):
                hands.finish(number)


def attempt(number: int) -> wire.Attempt:
    return wire.Attempt(table="t", epoch=1, instant="1", operation=0, number=number)


def run(pool: AttemptPool, coordinator: Coordinator, *numbers: int) -> None:
    for number in numbers:
        pool.start_attempt(coordinator, wire.RunAttempt(attempt=attempt(number)))


async def test_an_attempt_that_is_handed_out_while_it_runs_is_returned_and_ends_once() -> None:
    async with attempt_pool(3) as (pool, hands):
        one = Coordinator()
        pool.add_coordinator(one)
        run(pool, one, 1, 1)
        assert one.told == ["ready 3", "ready 2", "returned"]
        hands.finish(1)
        await pool.finish(READY_S)
        assert one.told[3:] == ["finished", "ready 3"]


async def test_a_coordinator_that_is_lost_takes_its_own_attempts_along_and_no_others() -> None:
    async with attempt_pool(2) as (pool, hands):
        one, other = Coordinator(), Coordinator()
        pool.add_coordinator(one)
        pool.add_coordinator(other)
        run(pool, one, 1)
        run(pool, other, 2)
        await hands.begun(1, 2)
        for coordinator, number in ((one, 1), (other, 2)):
            assert [each.attempt.number for each in pool.progress(coordinator)] == [number]
        pool.remove_coordinator(one)
        heard = list(one.told)
        await other.until("ready 1")
        while pool.running > 1:
            await asyncio.sleep(0.001)
        assert not hands.running[2].dropped
        hands.finish(2)
        await other.until("finished")
        assert one.told == [*heard, "returned"], "of capacity it hears nothing any more"


async def test_a_drop_ends_the_attempt_that_it_names() -> None:
    async with attempt_pool(2) as (pool, hands):
        coordinator = Coordinator()
        pool.add_coordinator(coordinator)
        run(pool, coordinator, 1, 2)
        await hands.begun(1, 2)
        pool.drop_attempt(attempt(2))
        await coordinator.until("returned")
        assert (hands.running[1].dropped, hands.running[2].dropped) == (False, True)
        hands.finish(1)
        await coordinator.until("finished")


async def test_a_drain_waits_for_all_that_runs_and_starts_nothing_meanwhile() -> None:
    async with attempt_pool(3) as (pool, hands):
        coordinator = Coordinator()
        pool.add_coordinator(coordinator)
        run(pool, coordinator, 1, 2)
        await hands.begun(1, 2)
        pool.begin_drain()
        finishing = asyncio.ensure_future(pool.finish(60))
        coordinator.told.clear()
        run(pool, coordinator, 3)
        assert coordinator.told == ["returned"]
        hands.finish(1)
        await coordinator.until("finished")
        await asyncio.sleep(0)
        assert coordinator.told == ["returned", "finished", "ready 0"], "one that leaves has no room"
        assert not finishing.done()
        late = Coordinator()
        pool.add_coordinator(late)
        assert late.told == ["ready 0"]
        hands.finish(2)
        await finishing


def test_bytes_done_never_pass_those_of_the_input() -> None:
    """Rows that are new make more of them than the base had."""
    running = RunningAttempt(wire.RunAttempt())
    running.input_bytes, running.base_rows = 1000, 10
    running.progress(5)
    assert running.bytes == 500
    running.progress(25)
    assert running.bytes == 1000
