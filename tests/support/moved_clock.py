"""Wall clocks of a test's processes, which another process moves while they run; monotonic time stays what it is."""

import os
from pathlib import Path
from typing import Any

from headgate_runtime import world
from headgate_tables import system

_WIDTH = 20
"""Bytes of an offset."""


def move_clock(offset: Path, seconds: float) -> None:
    """From now on the processes that follow this file are ``seconds`` ahead of the machine; 0 is the machine's own time."""
    file = os.open(offset, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(file, f"{round(seconds * 1000):{_WIDTH}}".encode(), 0)  # in one go, over the whole of what was there
    finally:
        os.close(file)


def follow_clock(offset: Path) -> None:
    """All wall clocks of this process are ahead by what ``offset`` says at each look; while that file is empty, by nothing.

    The file stays open: a process that may open no more files still has a clock.
    """
    file = os.open(offset, os.O_RDONLY | os.O_CREAT, 0o644)
    for clock in (world.SystemClock, system.SystemClock):
        _follow(clock, file)


def _follow(clock: Any, file: int) -> None:
    right = clock.now_ms

    def now_ms(self: Any) -> int:
        return int(right(self)) + int(os.pread(file, _WIDTH, 0) or b"0")

    clock.now_ms = now_ms
