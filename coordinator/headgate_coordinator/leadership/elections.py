"""Which tables there are, for which of them this coordinator stands, and serving those that it wins.

Leases only suggest (rules R1, R4); a table is ours once its FENCE slot is won, and stays so until another's is.
"""

import asyncio
import contextlib
import hashlib
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

import structlog

from headgate_coordinator.core import events
from headgate_coordinator.core.compactions import CompactionPolicy
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_coordinator.core.table_coordinator import TableCoordinator
from headgate_coordinator.leadership.coordinator_state import CoordinatorState, TableTrouble
from headgate_coordinator.leadership.leases import Holder, Leases
from headgate_coordinator.leadership.troubles import trouble_of
from headgate_coordinator.leadership.witnesses import TimeWitnesses
from headgate_coordinator.metrics import Metrics
from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.streams.messages import Address
from headgate_coordinator.tables.committer import Committer, figures_of
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.owned_table import OwnedTable, ServicePolicy
from headgate_coordinator.tables.storage import TableStorage
from headgate_runtime.world import World
from headgate_tables.backoff import Backoff
from headgate_tables.errors import DeposedError, OperatorNeeded, TablesError

RANK_WAIT_S = 1.0
"""How much longer each further coordinator waits before it stands for a free table."""
PAUSES = Backoff(first=0.2, longest=5.0)
"""Between tries at a table that will not open: each try is a few reads, and a fence when it succeeds (rule R5)."""
CALM_S = 10.0
"""After an ownership that lasted so long the next pause is the first again."""
SEEN_S = 10.0
"""A coordinator stays on the list of members for so long after it was last seen: a flushed Redis must cut no control stream."""

_log = structlog.get_logger()
_T = TypeVar("_T")


class Elections:
    """Keeps ``state`` current and the tables of this coordinator served. ``threads`` runs what blocks. ``created`` is set when
    there is a new table, which then need not wait for the next scan.
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
        created: asyncio.Event,
        guard: GuardedClock,
        witnesses: TimeWitnesses,
    ) -> None:
        self._state = state
        self._leases = leases
        self._storage = storage
        self._settings = settings
        self._world = world
        self._metrics = metrics
        self._threads = threads
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._free_since: dict[str, float] = {}
        self._seen: dict[str, tuple[float, Holder]] = {}
        self._created = created
        self._guard = guard
        self._witnesses = witnesses
        self._recreated: set[str] = set()
        self._forgot = 0
        self._forgot_at = -math.inf
        self._list_at = 0.0
        self._stands = True
        self._policy = CheckpointPolicy(
            settings.checkpoint_interval,
            settings.checkpoint_min_interval,
            settings.checkpoint_bytes,
            settings.checkpoint_timeout,
            settings.writer_timeout,
        )
        self._service_policy = ServicePolicy(
            settings.service_interval, CompactionPolicy(settings.compaction_timeout, settings.compaction_pause)
        )
        self.first_look_done = asyncio.Event()
        """Set once the first look has come to its end."""

    async def run(self, draining: asyncio.Event) -> None:
        """Until ``draining``; then tables commit what is there and their leases are freed, so that others take over at once.

        Raises SyncFailedError: this process must not write any more (hazard H14).
        """
        async with asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(self._beat())
            asking = tasks.create_task(self._witnesses.ask_store())
            looking = tasks.create_task(self._look(tasks))
            await draining.wait()
            self._stands = False
            self._created.set()
            await asyncio.wait([looking], timeout=self._settings.drain_timeout)
            looking.cancel()
            await self._drain()
            beating.cancel()
            asking.cancel()

    async def _beat(self) -> None:
        """Rule R1: what another process holds is given up, and what Redis has forgotten the log is asked about. Rule R4: a Redis
        that does not answer changes nothing.
        """
        while True:
            beat = await self._leases.renew(list(self._serving), stands=self._stands)
            self._note_redis()
            if beat is not None:
                self._note_coordinators(beat.coordinators)
                for table, holder in beat.lost.items():
                    self._state.holders[table] = holder
                    self._give_up(table, f"{holder.name or 'somebody'} holds its lease")
                self._recreated.update(beat.recreated)
                self._doubt()
            await self._world.clock.sleep(self._settings.lease_renewal)

    def _doubt(self) -> None:
        """Tables that are being opened are asked about as soon as they are."""
        for table in self._recreated & self._state.owned.keys():
            self._state.owned[table].queue_event(events.LeaseRecreated())
        self._recreated &= self._serving.keys() - self._state.owned.keys()

    def _note_redis(self) -> None:
        if self._state.redis_reachable != self._leases.reachable:
            if self._leases.reachable:
                _log.info("redis answers")
            else:
                _log.warning("redis does not answer: our tables go on, nothing new is taken", why=self._leases.last_error)
        self._state.redis_reachable = self._leases.reachable
        self._metrics.redis.set(self._leases.reachable)

    def _note_coordinators(self, alive: Sequence[Holder]) -> None:
        now = self._world.clock.monotonic()
        self._seen.update({holder.name: (now, holder) for holder in alive})
        self._seen = {name: seen for name, seen in self._seen.items() if now - seen[0] < SEEN_S}
        self._state.alive = alive
        self._state.coordinators = [holder for _, holder in self._seen.values()]

    async def _look(self, tasks: asyncio.TaskGroup) -> None:
        while self._stands:
            await self._witnesses.ask_redis()
            await self._list()
            await self._stand(tasks)
            self._metrics.owned.set(len(self._state.owned))
            self.first_look_done.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.scan_interval / 2):
                    await self._created.wait()

    async def _list(self) -> None:
        now = self._world.clock.monotonic()
        if now < self._list_at and not self._created.is_set():
            return
        self._created.clear()
        self._list_at = now + self._settings.scan_interval
        try:
            self._state.table_names = await self._blocking(self._storage.table_names)
        except TablesError as error:
            if not self._state.listing_outage.is_on:
                _log.warning("the store's tables cannot be listed", error=str(error))
            self._state.listing_outage.note_failure("listing", error, self._world.clock.now_ms())
            return
        self._state.listing_outage.note_success("listing")
        for table in self._serving.keys() - set(self._state.table_names):
            self._give_up(table, "its entry in the store is gone")

    async def _stand(self, tasks: asyncio.TaskGroup) -> None:
        """Takes what is free and ours to take by rank, and at once what an earlier process of our name holds."""
        others = [table for table in self._state.table_names if table not in self._serving]
        holders = await self._leases.holders(others)
        self._note_redis()
        if holders is None:
            return
        self._state.holders.update(holders)
        if None in holders.values() and (alive := await self._leases.coordinators()) is not None:
            # Of the last beat, who has just drained would still come before us, and its tables wait a second for nobody.
            self._note_coordinators(alive)
        if self._forgot != self._leases.data_losses:
            self._forgot, self._forgot_at = self._leases.data_losses, self._world.clock.monotonic()
            _log.warning("redis has lost its data: nobody stands before holders have had the time to take their leases back")
        for table, holder in holders.items():
            if self._stands and self._may_take(table, holder) and await self._leases.take_lease(table):
                _log.info("lease taken", table=table)
                self._state.holders[table] = self._leases.own
                self._free_since.pop(table, None)
                self._serving[table] = tasks.create_task(self._serve(table))

    def _may_take(self, table: str, holder: Holder | None) -> bool:
        """A Redis that has lost its data names no holder, but there may be one: it has as long as its lease would have lasted.

        Else two coordinators would fence each other as often as Redis loses its data (rule R5).
        """
        if holder is not None:
            self._free_since.pop(table, None)
            return holder.name == self._leases.own.name
        now = self._world.clock.monotonic()
        if now - self._forgot_at < self._settings.lease_ttl:
            return False
        since = self._free_since.setdefault(table, now)
        names = {each.name for each in self._state.alive} | {self._leases.own.name}
        return now - since >= rank(table, self._leases.own.name, names) * RANK_WAIT_S

    def _give_up(self, table: str, why: str) -> None:
        if task := self._serving.get(table):
            _log.warning("table given up", table=table, why=why)
            task.cancel()

    async def _serve(self, table: str) -> None:
        """Owns the table again and again, until it is drained, cancelled, or somebody else's."""
        failures = 0
        clock = self._world.clock
        try:
            while True:
                began = clock.monotonic()
                trouble = await self._own(table)
                if trouble is None or (isinstance(trouble, DeposedError) and not await self._is_ours(table)):
                    return
                if isinstance(trouble, OperatorNeeded):  # while a folder goes, what is left of it looks like damage
                    trouble = await self._blocking(lambda: self._storage.why_gone(table)) or trouble
                before = self._state.troubles.get(table)
                self._state.troubles[table] = TableTrouble(trouble, before.since_ms if before else clock.now_ms())
                _log.warning("table does not serve", table=table, error=str(trouble), kind=type(trouble).__name__)
                failures = 1 if clock.monotonic() - began > CALM_S else failures + 1
                await clock.sleep(PAUSES.after(failures))
        finally:
            self._state.troubles.pop(table, None)
            self._state.adoptions.refuse_adoption(table)
            del self._serving[table]
            await self._leases.release_lease(table)

    async def _is_ours(self, table: str) -> bool:
        """After a deposition only what Redis says now counts: without it the other one keeps the table (rule R4)."""
        holders = await self._leases.holders([table])
        return holders is not None and holders[table] == self._leases.own

    async def _own(self, table: str) -> TablesError | None:
        """One ownership, from the fence to its end; None after a drain. An error of one table ends its ownership alone."""
        try:
            while await self._own_once(table) and self._stands:
                pass
            return None
        except Exception as error:  # noqa: BLE001 - whatever it is, other tables go on; it is logged, an alarm, and tried again
            return trouble_of(table, error)

    async def _own_once(self, table: str) -> bool:
        """Whether it ended for a request, and is ours still."""
        owned = await self._open(table)
        self._state.troubles.pop(table, None)
        self._state.owned[table] = owned
        self._doubt()
        self._state.adoptions.refuse_adoption(table)
        try:
            await owned.run()
        finally:
            del self._state.owned[table]
        return owned.ended_by_request

    async def _open(self, table: str) -> OwnedTable:
        adoption = self._state.adoptions.take_adoption(table)
        handle = await self._blocking(lambda: self._storage.open_owned(table, self._leases.own.address, adoption))
        definition = self._storage.describe(table).definition
        metrics = self._metrics.for_table(table)
        metrics.fences.inc()
        _log.info("table owned", table=table, epoch=handle.epoch, channels=len(handle.channels))
        clock = self._world.clock
        drop_beaten, restored = self._settings.drop_beaten, handle.restored
        address = Address.of(table, handle.epoch, handle.url, definition, drop_beaten=drop_beaten, restored=restored)
        limits = await self._blocking(lambda: figures_of(handle))
        core = TableCoordinator(handle.epoch, handle.channels, self._policy, definition.key_groups, clock.monotonic(), limits)
        return OwnedTable(
            address,
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

    async def _drain(self) -> None:
        """Nothing new is taken; each table ends as soon as its checkpoints are decided, all of them after ``drain_timeout``."""
        await self._leases.leave_registry()
        for table, task in self._serving.items():
            if owned := self._state.owned.get(table):
                owned.queue_event(events.DrainAsked())
            else:
                task.cancel()
        if running := list(self._serving.values()):
            await asyncio.wait(running, timeout=self._settings.drain_timeout)
        if late := list(self._serving.values()):
            _log.warning("tables were handed over before their checkpoints were decided", tables=list(self._serving))
            for task in late:
                task.cancel()
            await asyncio.wait(late)

    async def _blocking(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def rank(table: str, name: str, coordinators: set[str]) -> int:
    """Rendezvous hashing: 0 for the coordinator that should own the table. One more coordinator moves few ranks."""
    order = sorted(coordinators, key=lambda each: hashlib.sha256(f"{table} {each}".encode()).digest())
    return order.index(name)
