"""A coordinator's start: what it says of Redis, and a drain that comes before it has served anything."""

import asyncio
from pathlib import Path

import structlog

from demo.ports import free_port
from headgate_coordinator.service import serve
from headgate_coordinator.settings import CoordinatorSettings
from headgate_runtime.world import World
from support.processes import READY_S
from support.running_coordinator import FAST, running_coordinator


async def test_a_drain_before_the_first_look_at_the_store_ends_the_coordinator(tmp_path: Path, redis: str) -> None:
    settings = CoordinatorSettings(store=str(tmp_path), redis=f"redis://{redis}/0", **FAST)
    draining = asyncio.Event()
    draining.set()
    ready: list[str] = []
    async with asyncio.timeout(READY_S):
        await serve(settings, World.real(), draining, ready.append)
    assert ready == [], "nobody may be sent there"


async def test_a_coordinator_that_never_reached_redis_says_so(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as logs:
        async with running_coordinator(tmp_path, f"127.0.0.1:{free_port()}"):
            pass
    [line] = [line for line in logs if line["event"].startswith("redis does not answer")]
    assert "ConnectionError" in line["why"]
