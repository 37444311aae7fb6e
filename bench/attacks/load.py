"""As much CPU as an attacker takes, in processes that send nothing: what others notice of that is no harm of the attack."""

import asyncio
import math
import time
from typing import Final

from bench.tables.child import run_child

_STEP_S: Final = 0.001


async def computing(share: float, seconds: float) -> None:
    """Takes ``share`` CPU seconds a second for so long, in as few processes as that needs."""
    processes = max(1, math.ceil(share))
    arguments = {"share": share / processes, "seconds": seconds}
    each = [asyncio.to_thread(run_child, "bench.attacks.load:compute", **arguments) for _ in range(processes)]
    await asyncio.gather(*each)


def compute(share: float, seconds: float) -> float:
    """Takes this process's ``share`` of each moment, in steps, and catches up on what it did not get. Returns its CPU seconds."""
    begun, spent = time.monotonic(), time.thread_time()
    while (passed := time.monotonic() - begun) < seconds:
        if time.thread_time() - spent >= share * passed:
            time.sleep(_STEP_S)
    return time.thread_time() - spent
