"""A drain that comes before a coordinator has served anything."""

import asyncio
from pathlib import Path

from headgate_coordinator.service import serve
from headgate_coordinator.settings import CoordinatorSettings
from headgate_runtime.world import World
from support.processes import READY_S
from support.running_coordinator import FAST


async def test_a_drain_before_the_first_look_at_the_store_ends_the_coordinator(tmp_path: Path, redis: str) -> None:
    settings = CoordinatorSettings(store=str(tmp_path), redis=f"redis://{redis}/0", **FAST)
    draining = asyncio.Event()
    draining.set()
    ready: list[str] = []
    async with asyncio.timeout(READY_S):
        await serve(settings, World.real(), draining, ready.append)
    assert ready == [], "nobody may be sent there"
