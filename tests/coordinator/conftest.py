"""A Redis for the tests of a module, a coordinator that owns a table, and a writer that the table is attached to."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.processes import Process
from support.redis_server import ask, start_redis
from support.running_coordinator import OPTIONS, Running, T, running_coordinator
from support.scripted_writer import ScriptedWriter, scripted_writer
from support.tables import SCHEMA


@pytest.fixture(scope="module")
def redis_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    process = start_redis(tmp_path_factory.mktemp("redis") / "redis.log")
    yield process
    process.kill()


@pytest.fixture
def redis(redis_process: Process) -> str:
    """host:port of an empty Redis."""
    assert ask(redis_process.address, "FLUSHALL") == "+OK"
    return redis_process.address


@pytest.fixture
async def coordinator(tmp_path: Path, redis: str) -> AsyncIterator[Running]:
    """Owns the table ``T``."""
    async with running_coordinator(tmp_path, redis) as running:
        await running.create(T, SCHEMA, **OPTIONS)
        await running.until(T, state="owned")
        yield running


@pytest.fixture
async def writer(coordinator: Running) -> AsyncIterator[ScriptedWriter]:
    """Has a part in the table ``T``."""
    async with scripted_writer(coordinator.address) as writer:
        await writer.order(T, "attach")
        yield writer
