"""Wall clocks of a test's processes, which another process moves while they run; monotonic time stays what it is."""

import os
from pathlib import Path
from typing import Any

from headgate_runtime import world
from headgate_tables import system


def move_clock(offset: Path, seconds: float) -> None:
    """From now on the processes that follow this file are ``seconds`` ahead of the machine; 0 is the machine's own time."""
    new = offset.with_suffix(".new")
    new.write_text(str(round(seconds * 1000)), encoding="ascii")
    new.replace(offset)


def follow_clock(offset: Path) -> None:
    """All wall clocks of this process are ahead by what ``offset`` says at each look; without that file by nothing."""
    for clock in (world.SystemClock, system.SystemClock):
        _follow(clock, offset)


def _follow(clock: Any, offset: Path) -> None:
    right = clock.now_ms

    def now_ms(self: Any) -> int:
        try:
            file = os.open(offset, os.O_RDONLY)
        except FileNotFoundError:
            return int(right(self))
        try:
            return int(right(self)) + int(os.read(file, 32))
        finally:
            os.close(file)

    clock.now_ms = now_ms
