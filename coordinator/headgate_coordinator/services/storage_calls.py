"""What services of tables share: the state, the storage, and threads for calls of it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.tables.storage import TableStorage

_T = TypeVar("_T")


class StorageCalls:
    """``created`` is set with each new table, so that it is served before the next scan. ``threads`` runs blocking calls."""

    def __init__(self, state: CoordinatorState, storage: TableStorage, threads: Executor, created: asyncio.Event) -> None:
        self._state = state
        self._storage = storage
        self._threads = threads
        self._created = created

    async def _blocking(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
