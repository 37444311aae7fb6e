"""A disk that refuses to make something durable, once: the kernel then drops what was written, and says yes the next time."""

import errno
import os
from dataclasses import dataclass, field

import pytest


@dataclass
class FailingSyncs:
    """``failed``: paths whose sync was refused. ``synced``: all others since."""

    failed: list[str] = field(default_factory=list)
    synced: list[str] = field(default_factory=list)


def fail_syncs(monkeypatch: pytest.MonkeyPatch, part: str, times: int = 1) -> FailingSyncs:
    """The next ``times`` syncs of paths that hold ``part`` fail, in this process, and none after them."""
    seen, fsync = FailingSyncs(), os.fsync

    def answer(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if part in path and len(seen.failed) < times:
            seen.failed.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        seen.synced.append(path)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", answer)
    return seen
