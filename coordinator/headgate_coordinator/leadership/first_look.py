"""What a coordinator needs before it is ready: a Redis that answers, and a store that can be listed and written."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor

import structlog

from headgate_coordinator.leadership.leases import Leases
from headgate_coordinator.leadership.redis_access import shown_address
from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.tables.storage import TableStorage
from headgate_runtime.lifecycle import StartError
from headgate_runtime.world import Clock
from headgate_tables.errors import TablesError, UnsafeStoreError

TEST_EVERY_S = 5.0
"""Between two tests of a store that failed one, each of about ten requests."""

_log = structlog.get_logger()


class FirstLook:
    """Asked after each look at Redis and the store, until one is enough. ``threads`` runs what blocks.

    Only a start waits for this. Once ready, a coordinator goes on without Redis and without the store (rule R4), and one that
    finds tables in the store takes it as it is: somebody could write it, and each table has an alarm of its own.
    """

    def __init__(
        self, storage: TableStorage, leases: Leases, settings: CoordinatorSettings, clock: Clock, threads: Executor
    ) -> None:
        self._storage = storage
        self._leases = leases
        self._redis = shown_address(settings.redis)
        self._clock = clock
        self._threads = threads
        self._timeout_s = settings.start_timeout
        self._began = clock.monotonic()
        self._tested_at: float | None = None
        self._refused: TablesError | None = None
        self._logged: set[str] = set()

    async def is_enough(self, tables: Sequence[str], unlisted: TablesError | None) -> bool:
        """Whether the coordinator can begin. ``tables``: what the store lists; ``unlisted``: why it could not be listed.

        Raises StartError for a store on which no table can ever be, and once `start_timeout` is over.
        """
        problems = {}
        if not self._leases.reachable:
            why = self._leases.last_error.rstrip(".")
            problems["Redis"] = (
                f"Redis at {self._redis} does not answer: {why}. Start it, or correct `redis`: its address, user, password and "
                "certificates, and the network's rules."
            )
        if store := unlisted or (None if tables else await self._refusal()):
            problems["the store"] = str(store)
        if problems and 0 < self._timeout_s <= self._clock.monotonic() - self._began:
            after = f"within {self._timeout_s:g} s (start_timeout)"
            raise StartError(f"this coordinator could not begin {after}: {' '.join(problems.values())}")
        for what in problems.keys() - self._logged:
            _log.error(f"not ready: it waits for {what}", why=problems[what])
        self._logged = set(problems)
        return not problems

    async def _refusal(self) -> TablesError | None:
        """Why tables cannot be created in the empty store now; None: they can."""
        now = self._clock.monotonic()
        if self._tested_at is not None and now - self._tested_at < TEST_EVERY_S:
            return self._refused
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._storage.test_store)
        except UnsafeStoreError as error:
            raise StartError(str(error)) from None
        except TablesError as error:
            self._refused = error
        else:
            self._refused = None
        self._tested_at = now
        return self._refused
