"""The machine's own clock, randomness and name."""

import os
import time

from headgate_runtime.world import World


async def test_the_real_world_is_the_machines() -> None:
    world = World.real()
    assert abs(world.clock.now_ms() - time.time() * 1000) < 60_000
    before = world.clock.monotonic()
    await world.clock.sleep(0.001)
    assert world.clock.monotonic() > before
    assert world.pid == os.getpid()
    assert len({world.ids.token() for _ in range(1000)}) == 1000
    assert len(world.ids.token()) == 32
    world.reached("slot_won")
