"""Serves tables whose leases this coordinator holds: one ownership after the other, from the fence to its end."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

import structlog

from headgate_coordinator.core.compactions import CompactionPolicy
from headgate_coordinator.core.events import SliceFigures
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_coordinator.core.table_coordinator import TableCoordinator
from headgate_coordinator.leadership.coordinator_state import CoordinatorState, TableTrouble
from headgate_coordinator.leadership.leases import Leases
from headgate_coordinator.leadership.troubles import trouble_of
from headgate_coordinator.metrics import Metrics
from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.streams.messages import OrderTarget
from headgate_coordinator.tables.committer import Committer
from headgate_coordinator.tables.expiring import Expiry
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.owned_table import OwnedTable
from headgate_coordinator.tables.passed import EpochPassedError
from headgate_coordinator.tables.service_policy import ServicePolicy
from headgate_coordinator.tables.slice_figures import read_slice_figures
from headgate_coordinator.tables.storage import TableStorage
from headgate_runtime.world import World
from headgate_tables.backoff import Backoff
from headgate_tables.errors import (
    DeposedError,
    NotATableError,
    OperatorNeeded,
    TableInGraceError,
    TablesError,
)
from headgate_tables.face.definition import Definition
from headgate_tables.face.owner import Table

PAUSES = Backoff(first=0.2, longest=5.0)
"""Between tries to open a table: each costs a few reads, and a fence when it succeeds (rule R5)."""
CALM_S = 10.0
"""After an ownership of this length pauses start over."""

_log = structlog.get_logger()
_T = TypeVar("_T")


class Ownerships:
    """Keeps ``state`` current about the tables that it serves. ``threads`` runs what blocks. ``draining``: no ownership follows
    the one that ends.
    """

    def __init__(
        self,
        state: CoordinatorState,
        leases: Leases,
        storage: TableStorage,
        settings: CoordinatorSettings,
        world: World,
        metrics: Metrics,
        threads: Executor,
        guard: GuardedClock,
    ) -> None:
        self.draining = False
        self._followed: dict[str, int] = {}
        self._state = state
        self._leases = leases
        self._storage = storage
        self._settings = settings
        self._world = world
        self._metrics = metrics
        self._threads = threads
        self._guard = guard
        self._policy = CheckpointPolicy(
            settings.checkpoint_interval,
            settings.checkpoint_min_interval,
            settings.checkpoint_bytes,
            settings.checkpoint_timeout,
            settings.writer_timeout,
            channel_retention=settings.channel_retention,
        )
        self._service_policy = ServicePolicy(
            settings.service_interval, CompactionPolicy(settings.compaction_timeout, settings.compaction_pause)
        )

    async def serve(self, table: str, owned: Callable[[], None]) -> bool:
        """Owns the table again and again, until it is drained, cancelled, dropped, renamed, forgotten, or another coordinator's,
        or this coordinator drains. Returns whether the store has no table of this name any more.

        ``owned`` is called at the beginning of each ownership.
        """
        failures = 0
        clock = self._world.clock
        try:
            while not self.draining:
                began = clock.monotonic()
                trouble = await self._own(table, owned)
                if trouble is None or (isinstance(trouble, DeposedError) and not await self._is_ours(table)):
                    return False
                if isinstance(trouble, OperatorNeeded):  # while a folder is being deleted, the rest of it looks like damage
                    trouble = await self._blocking(lambda: self._storage.why_gone(table)) or trouble
                in_grace = isinstance(trouble, TableInGraceError)
                if isinstance(trouble, NotATableError) and not in_grace:  # a new table may get the name at any time
                    return True
                if isinstance(trouble, EpochPassedError):
                    self._followed[table] = trouble.followed
                before = self._state.troubles.get(table)
                self._state.troubles[table] = TableTrouble(trouble, before.since_ms if before else clock.now_ms())
                if before is None or not in_grace:
                    _log.warning("table is not served", table=table, error=str(trouble), kind=type(trouble).__name__)
                failures = 1 if clock.monotonic() - began > CALM_S else failures + 1
                if not self.draining:
                    await clock.sleep(PAUSES.after(failures))
            return False
        finally:
            self._state.troubles.pop(table, None)
            self._followed.pop(table, None)

    async def _is_ours(self, table: str) -> bool:
        """Whether the lease is still held here, by Redis's answer now; without one the other owner keeps the table (rule R4)."""
        holders = await self._leases.holders([table])
        return holders is not None and holders[table] == self._leases.own

    async def _own(self, table: str, owned: Callable[[], None]) -> TablesError | None:
        """One ownership, from the fence to its end; None after a drain. An error of one table ends its ownership alone."""
        try:
            while await self._own_once(table, owned) and not self.draining:
                pass
            return None
        except Exception as error:  # noqa: BLE001 - whatever it is, other tables go on; it is logged, an alarm, and tried again
            return trouble_of(table, error)

    async def _own_once(self, table: str, began: Callable[[], None]) -> bool:
        """Opens and serves the table. Returns whether a request ended the ownership, so that another follows."""
        owned = await self._open(table)
        self._state.troubles.pop(table, None)
        self._state.owned[table] = owned
        began()
        self._state.adoptions.refuse_adoption(table)
        try:
            async with asyncio.TaskGroup() as tasks:
                expiry = tasks.create_task(self._expiry(table, owned).run())
                await owned.run()
                expiry.cancel()
        finally:
            del self._state.owned[table]
        return owned.ended_by_request

    def _expiry(self, table: str, owned: OwnedTable) -> Expiry:
        interval, metrics = self._settings.expiry_interval, self._metrics.for_table(table)
        return Expiry(owned, self._guard, self._world.clock, interval, lambda: self._storage.note_change(table), metrics)

    async def _open(self, table: str) -> OwnedTable:
        """Fences the table; all that blocks is done in one call, so that nothing is awaited between the fence and ``run``."""
        adoption = self._state.adoptions.take_adoption(table)
        after = self._followed.get(table, 0)

        def opened() -> tuple[Table, Definition, SliceFigures]:
            handle, definition = self._storage.open_owned(table, self._leases.own.address, adoption, after_epoch=after)
            return handle, definition, read_slice_figures(handle)

        handle, definition, limits = await self._blocking(opened)
        metrics = self._metrics.for_table(table)
        metrics.fences.inc()
        _log.info("table owned", table=table, epoch=handle.epoch, channels=len(handle.channels))
        clock = self._world.clock
        target = OrderTarget.of(table, handle.epoch, handle.url, definition, restored=handle.restored)
        core = TableCoordinator(handle.epoch, handle.channels, self._policy, definition.key_groups, clock.monotonic(), limits)
        return OwnedTable(
            target,
            core,
            lambda report: Committer(handle, clock.now_ms, report),
            self._state.writers,
            self._state.compactors,
            self._service_policy,
            self._world,
            self._guard,
            metrics,
            self._threads,
        )

    async def _blocking(self, work: Callable[[], _T]) -> _T:
        """Returns the result of ``work``. When it is cancelled, however often, it ends after work that has begun: that cannot be
        stopped and may win a fence, and a table whose lease is free by then may have another owner, which is fenced for nothing
        (rule R5).
        """
        submitted = self._threads.submit(work)
        result = asyncio.wrap_future(submitted)
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            while not (submitted.cancel() or result.done()):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([result])
            raise
