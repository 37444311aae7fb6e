"""How much clients bring into one checkpoint: past it they wait for the next, so that no checkpoint is larger than can be
flushed.
"""

import asyncio
from collections.abc import Callable


class CheckpointWindow:
    """``limit``: Arrow bytes of the checkpoint that fills now, 0: not bounded. ``full`` is called once a checkpoint, when they
    are there.

    What clients have kept stays with them meanwhile: they are not read, and send it once (rule CH7).
    """

    def __init__(self, limit: int, full: Callable[[], None]) -> None:
        self._full = full
        self._limit = limit
        self._taken = 0
        self._open = asyncio.Event()
        self._open.set()

    def count_bytes(self, nbytes: int) -> None:
        """A batch was taken. The one that fills the checkpoint is still part of it."""
        self._taken += nbytes
        if self._limit and self._taken >= self._limit and self._open.is_set():
            self._open.clear()
            self._full()

    def begin_checkpoint(self, limit: int) -> None:
        """The next checkpoint fills."""
        self._limit, self._taken = limit, 0
        self._open.set()

    async def wait_open(self) -> None:
        """Returns once a batch may be taken."""
        await self._open.wait()
