"""Bounds the bytes that clients send into one checkpoint, so that none is larger than can be flushed."""

import asyncio
from collections.abc import Callable


class CheckpointWindow:
    """``limit``: Arrow bytes of the checkpoint that fills now; 0: not bounded. Calls ``full`` once a checkpoint, at the limit.

    Past the limit clients are not read, and keep their batches until the next checkpoint (rule CH7).
    """

    def __init__(self, limit: int, full: Callable[[], None]) -> None:
        self._full = full
        self._limit = limit
        self._taken = 0
        self._open = asyncio.Event()
        self._open.set()

    def count_bytes(self, nbytes: int) -> None:
        """Counts a batch that was taken. The one that passes the limit still belongs to the checkpoint."""
        self._taken += nbytes
        if self._limit and self._taken >= self._limit and self._open.is_set():
            self._open.clear()
            self._full()

    def begin_checkpoint(self, limit: int) -> None:
        """Opens the window for the next checkpoint."""
        self._limit, self._taken = limit, 0
        self._open.set()

    async def wait_open(self) -> None:
        """Waits until a batch may be taken."""
        await self._open.wait()
