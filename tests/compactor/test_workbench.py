"""Capacity, attempts and coordinators of one compactor: without streams and files."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from headgate_compactor.runner import Job
from headgate_compactor.workbench import Workbench
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.world import World


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
    """Does the work: each attempt goes on until it is let go by its number, or given up."""

    jobs: dict[int, Job] = field(default_factory=dict)
    done: dict[int, threading.Event] = field(default_factory=dict)

    def work(self, job: Job) -> wire.WorkRequest:
        attempt = job.order.attempt
        done = self.done.setdefault(attempt.number, threading.Event())
        self.jobs[attempt.number] = job
        while not done.wait(0.001):
            if job.given_up:
                return wire.WorkRequest(returned=wire.AttemptReturned(attempt=attempt))
        return wire.WorkRequest(finished=wire.AttemptFinished(attempt=attempt))

    def finish(self, number: int) -> None:
        self.done.setdefault(number, threading.Event()).set()

    async def begun(self, *numbers: int) -> None:
        while not self.jobs.keys() >= set(numbers):
            await asyncio.sleep(0.001)


@asynccontextmanager
async def workbench(capacity: int) -> AsyncIterator[tuple[Workbench, Hands]]:
    hands = Hands()
    with ThreadPoolExecutor(4) as threads:
        try:
            async with asyncio.timeout(20), asyncio.TaskGroup() as group:
                yield Workbench(capacity, hands.work, threads, group, World.real()), hands
        finally:
            for number in range(10):
                hands.finish(number)


def attempt(number: int) -> wire.Attempt:
    return wire.Attempt(table="t", epoch=1, instant="1", operation=0, number=number)


def run(bench: Workbench, coordinator: Coordinator, *numbers: int) -> None:
    for number in numbers:
        bench.start_attempt(coordinator, wire.RunAttempt(attempt=attempt(number)))


async def test_a_coordinator_that_is_lost_takes_its_own_attempts_along_and_no_others() -> None:
    async with workbench(2) as (bench, hands):
        one, other = Coordinator(), Coordinator()
        bench.add_coordinator(one)
        bench.add_coordinator(other)
        run(bench, one, 1)
        run(bench, other, 2)
        await hands.begun(1, 2)
        for coordinator, number in ((one, 1), (other, 2)):
            assert [each.attempt.number for each in bench.progress(coordinator)] == [number]
        bench.remove_coordinator(one)
        heard = list(one.told)
        await other.until("ready 1")
        while bench.running > 1:
            await asyncio.sleep(0.001)
        assert not hands.jobs[2].given_up
        hands.finish(2)
        await other.until("finished")
        assert one.told == [*heard, "returned"], "of capacity it hears nothing any more"


async def test_a_drop_ends_the_attempt_that_it_names() -> None:
    async with workbench(2) as (bench, hands):
        coordinator = Coordinator()
        bench.add_coordinator(coordinator)
        run(bench, coordinator, 1, 2)
        await hands.begun(1, 2)
        bench.drop_attempt(attempt(2))
        await coordinator.until("returned")
        assert (hands.jobs[1].given_up, hands.jobs[2].given_up) == (False, True)
        hands.finish(1)
        await coordinator.until("finished")


async def test_a_drain_waits_for_all_that_runs_and_starts_nothing_meanwhile() -> None:
    async with workbench(3) as (bench, hands):
        coordinator = Coordinator()
        bench.add_coordinator(coordinator)
        run(bench, coordinator, 1, 2)
        await hands.begun(1, 2)
        bench.begin_drain()
        finishing = asyncio.ensure_future(bench.finish(60))
        coordinator.told.clear()
        run(bench, coordinator, 3)
        assert coordinator.told == ["returned"]
        hands.finish(1)
        await coordinator.until("finished")
        await asyncio.sleep(0)
        assert coordinator.told == ["returned", "finished", "ready 0"], "one that leaves has no room"
        assert not finishing.done()
        late = Coordinator()
        bench.add_coordinator(late)
        assert late.told == ["ready 0"]
        hands.finish(2)
        await finishing


def test_bytes_done_never_pass_those_of_the_input() -> None:
    """Rows that are new make more of them than the base had."""
    job = Job(wire.RunAttempt())
    job.input_bytes, job.base_rows = 1000, 10
    job.progress(5)
    assert job.bytes == 500
    job.progress(25)
    assert job.bytes == 1000
