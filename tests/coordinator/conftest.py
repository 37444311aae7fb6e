"""A Redis for the tests of a module."""

from collections.abc import Iterator

import pytest

from support.processes import Process
from support.redis_server import ask, start_redis


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
