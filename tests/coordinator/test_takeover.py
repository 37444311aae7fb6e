"""Coordinators as processes: killed, restarted, paused past their lease."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from demo.ports import free_port
from headgate_runtime.environment import ENVIRONMENT
from headgate_tables.hudi import open_table
from support.processes import READY_S, Process
from support.running_coordinator import FAST, client_of, running_coordinator
from support.scripted_writer import scripted_writer
from support.tables import SCHEMA, notes, rows

FLIGHTS = "flights"
OPTIONS = {"partition_by": ["part"], "ordering": "ts", "buckets": 2}


class Processes:
    """Coordinators of one store, by name; all are killed in the end."""

    def __init__(self, folder: Path, redis: str) -> None:
        self._folder = folder
        self._redis = redis
        self._started: list[Process] = []

    async def start(self, name: str, listen: str = "", **settings: float) -> Process:
        """Ready when this returns."""
        listen = listen or f"127.0.0.1:{free_port()}"
        options = {"store": self._folder / "store", "redis": f"redis://{self._redis}/0", "listen": listen, "name": name}
        options |= {setting: f"{value * 1000:.0f}ms" for setting, value in {**FAST, **settings}.items()}
        flags = [word for option, value in options.items() for word in (f"--{option.replace('_', '-')}", str(value))]
        command = [sys.executable, "-m", "headgate_coordinator", *flags]
        process = Process(name, command, self._folder / f"{name}.log", env=ENVIRONMENT, program="headgate_coordinator")
        self._started.append(process)
        await asyncio.to_thread(process.wait_ready)
        return process

    def end(self) -> None:
        for process in self._started:
            process.kill()


@pytest.fixture
def processes(tmp_path: Path, redis: str) -> Iterator[Processes]:
    made = Processes(tmp_path, redis)
    yield made
    made.end()


async def owned_table(coordinator: Process) -> str:
    """The url of a new table that this coordinator, the only one, owns."""
    async with client_of(coordinator.address) as client:
        table = await client.create(FLIGHTS, SCHEMA, **OPTIONS)
        await client.until(FLIGHTS, state="owned")
        return table.url


async def end_lease(redis: str) -> None:
    """The table's lease runs out now."""
    async with Redis.from_url(f"redis://{redis}/0") as client:
        [lease] = [key async for key in client.scan_iter("*:lease:*")]
        assert await client.pexpire(lease, 1)


@pytest.mark.slow
async def test_a_killed_coordinators_table_is_taken_over_with_its_channels(
    tmp_path: Path, redis: str, processes: Processes
) -> None:
    victim = await processes.start("victim")
    table = await owned_table(victim)
    async with running_coordinator(tmp_path / "store", redis, name="heir") as heir:
        async with scripted_writer(victim.address) as writer:
            await writer.order(FLIGHTS, "attach")
            await writer.open(FLIGHTS, "c", principal="me")
            await writer.commit(FLIGHTS, rows(("a", 1, "x")), "c", 1)
            writer.take(FLIGHTS, rows(("b", 1, "lost")), "c", 2)
            await writer.order(FLIGHTS, "instant")
            await writer.order(FLIGHTS, "instant")
            await asyncio.to_thread(victim.kill)
        await end_lease(redis)
        async with scripted_writer(heir.address) as writer:
            await writer.order(FLIGHTS, "attach")
            assert writer.pair(FLIGHTS) == (2, 1)
            grant = await writer.open(FLIGHTS, "c", incarnation=1, principal="me")
            assert (grant.incarnation, grant.committed_offset) == (1, 1)
            await writer.commit(FLIGHTS, rows(("b", 1, "again")), "c", 2)
        assert notes(open_table(table)) == {"a": "x", "b": "again"}


@pytest.mark.slow
async def test_a_restart_under_the_same_name_does_not_wait_for_the_lease(tmp_path: Path, processes: Processes) -> None:
    first = await processes.start("me", lease_ttl=600)
    async with scripted_writer(first.address) as writer:
        await owned_table(first)
        await writer.order(FLIGHTS, "attach")
        await asyncio.to_thread(first.kill)
    second = await processes.start("me", first.address, lease_ttl=600)
    assert second.address == first.address
    async with asyncio.timeout(READY_S), scripted_writer(second.address) as writer:
        await writer.order(FLIGHTS, "attach")
        assert writer.pair(FLIGHTS) == (2, 1)


@pytest.mark.slow
async def test_a_coordinator_that_slept_past_its_lease_gives_the_table_up(
    tmp_path: Path, redis: str, processes: Processes
) -> None:
    sleeper = await processes.start("sleeper")
    table = await owned_table(sleeper)
    async with running_coordinator(tmp_path / "store", redis, name="heir") as heir, scripted_writer(sleeper.address) as before:
        await before.order(FLIGHTS, "attach")
        await before.open(FLIGHTS, "c")
        before.take(FLIGHTS, rows(("a", 1, "ghost")), "c", 1)
        sleeper.pause()
        await end_lease(redis)
        async with scripted_writer(heir.address, address="w:2") as after:
            await after.order(FLIGHTS, "attach")
            assert after.pair(FLIGHTS) == (2, 1)
            grant = await after.open(FLIGHTS, "c", incarnation=0)
            await after.commit(FLIGHTS, rows(("a", 1, "kept")), "c", grant.committed_offset + 1)
            sleeper.resume()
            await before.order(FLIGHTS, "detach")
            await after.commit(FLIGHTS, rows(("b", 1, "kept")), "c", grant.committed_offset + 2)
        status = await heir.status(FLIGHTS)
        assert (status.state, status.epoch) == ("owned", 2)
        found = notes(open_table(table))
        assert (found["a"], found["b"]) == ("kept", "kept")


@pytest.mark.slow
async def test_coordinator_and_redis_die_together_and_come_back(tmp_path: Path, processes: Processes, redis: str) -> None:
    """FLUSHALL stands for a Redis that restarts without a file."""
    first = await processes.start("one")
    async with scripted_writer(first.address) as writer:
        await owned_table(first)
        await writer.order(FLIGHTS, "attach")
        await writer.open(FLIGHTS, "c")
        await writer.commit(FLIGHTS, rows(("a", 1, "x")), "c", 1)
        await asyncio.to_thread(first.kill)
    async with Redis.from_url(f"redis://{redis}/0") as client:
        await client.flushall()
    second = await processes.start("two", lease_ttl=3.0)  # so long it waits for those whom Redis has forgotten
    async with asyncio.timeout(READY_S), scripted_writer(second.address) as writer:
        attach = await writer.order(FLIGHTS, "attach")
        grant = await writer.open(FLIGHTS, "c", incarnation=1)
        assert grant.committed_offset == 1
        await writer.commit(FLIGHTS, rows(("b", 1, "y")), "c", 2)
    assert notes(open_table(attach.url)) == {"a": "x", "b": "y"}


async def test_sigterm_ends_with_exit_code_0(processes: Processes) -> None:
    process = await processes.start("one")
    assert await asyncio.to_thread(process.terminate) == 0
