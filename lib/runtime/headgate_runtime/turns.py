"""Costly work one at a time, of which callers have turns: many requests of one keep those of another waiting for one of them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from weakref import WeakValueDictionary


class Turns:
    """Of those that wait, each caller's first one has its place, in the order in which callers came; its others stand behind."""

    def __init__(self) -> None:
        self._at_work = asyncio.Lock()
        self._of_callers: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Of those that work or wait."""

    @contextlib.asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Runs the block alone, when it is this caller's turn."""
        own = self._of_callers.setdefault(caller, asyncio.Lock())
        async with own, self._at_work:
            yield
