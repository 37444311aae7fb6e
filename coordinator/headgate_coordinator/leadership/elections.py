"""Finds tables, stands for their leases, and has those that are won served.

Leases only suggest an owner (rules R1, R4): a table has a new owner once that one's FENCE slot is won.
"""

import asyncio
import contextlib
import hashlib
import math
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from typing import TypeVar

import structlog

from headgate_coordinator.core import events
from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.leadership.first_look import FirstLook
from headgate_coordinator.leadership.leases import Holder, Leases
from headgate_coordinator.leadership.ownerships import Ownerships
from headgate_coordinator.leadership.witnesses import TimeWitnesses
from headgate_coordinator.metrics import Metrics
from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.storage import TableStorage
from headgate_runtime.world import World
from headgate_tables.errors import TablesError

LOOKS = 5
"""Looks at leases in a ``scan_interval``. Each is a request to Redis; fewer: the tables of a coordinator that has drained wait
longer for the next one.
"""
RANK_WAIT_S = 1.0
"""How much longer the coordinator of each further rank waits before it takes a free lease."""
SEEN_S = 10.0
"""How long a coordinator stays listed after it was last seen: a flushed Redis must not cut control streams."""
AGAIN_S = 0.2
"""Between questions to a Redis that does not answer: leases that it has lost are taken back before others stand for them."""
DRAIN_EXTENSION_S = 15.0
"""How much longer than ``drain_timeout`` a drain takes at most while its checkpoints go on. The time after which a platform kills
has to cover both: the chart's is 20 s above ``drain_timeout``."""

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
        self._unlisted: TablesError | None = None
        self._stands = True
        self._first_look = FirstLook(storage, leases, settings, world.clock, threads)
        self._ownerships = Ownerships(state, leases, storage, settings, world, metrics, threads, guard)
        self.first_look_done = asyncio.Event()
        """Set once a look at store and leases was enough to begin (``FirstLook``), or a drain came before."""

    async def run(self, draining: asyncio.Event) -> None:
        """Runs until ``draining``; then tables commit what is there and their leases are freed, so others take over at once.

        Raises, in groups, SyncFailedError: this process must write nothing more (hazard H14); StartError: it cannot begin.
        """
        async with asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(self._beat())
            asking = tasks.create_task(self._witnesses.ask_store())
            looking = tasks.create_task(self._look(tasks))
            await draining.wait()
            began = self._world.clock.monotonic()
            self._stands = False
            self._ownerships.draining = True
            self._created.set()
            await asyncio.wait([looking], timeout=self._settings.drain_timeout)
            looking.cancel()
            self.first_look_done.set()
            await self._wait_for_redis(began)
            await self._drain(began)
            beating.cancel()
            asking.cancel()

    async def _beat(self) -> None:
        """Renews leases. Ends ownerships whose lease another process holds; asks the log about leases that Redis lost (R1).

        A Redis that does not answer changes nothing (rule R4).
        """
        while True:
            answered = await self._renew()
            await self._world.clock.sleep(self._settings.lease_renewal if answered else AGAIN_S)

    async def _renew(self) -> bool:
        """Returns whether Redis answered."""
        beat = await self._leases.renew(list(self._serving), stands=self._stands)
        self._note_redis()
        if beat is None:
            return False
        self._note_coordinators(beat.coordinators)
        for table, holder in beat.lost.items():
            self._state.holders[table] = holder
            self._give_up(table, f"{holder.name or 'another process'} holds its lease")
        self._recreated.update(beat.recreated)
        self._doubt()
        return True

    def _doubt(self) -> None:
        """Has owned tables ask the log; those that are being opened follow when they are owned."""
        for table in self._recreated & self._state.owned.keys():
            self._state.owned[table].queue_event(events.LeaseRecreated())
        self._recreated &= self._serving.keys() - self._state.owned.keys()

    def _note_redis(self) -> None:
        before, self._state.redis_reachable = self._state.redis_reachable, self._leases.reachable
        if before is self._leases.reachable:
            return
        if self._leases.reachable:
            _log.info("redis answers")
        else:
            _log.warning("redis does not answer: owned tables go on, no other is taken", why=self._leases.last_error)

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
            done = self.first_look_done
            if not done.is_set() and await self._first_look.is_enough(self._state.table_names, self._unlisted):
                done.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.scan_interval / LOOKS):
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
            self._unlisted = error
            self._state.listing_outage.note_failure("listing", error, self._world.clock.now_ms())
            return
        self._unlisted = None
        self._state.listing_outage.note_success("listing")
        for table in self._serving.keys() - set(self._state.table_names):
            self._give_up(table, "its entry in the store is gone")
        for table in [table for table in self._serving if table in self._storage.made]:
            self._give_up(table, "another one of its name was made")

    async def _stand(self, tasks: asyncio.TaskGroup) -> None:
        """Takes free leases in the order of ranks, and at once those that an earlier process of this name holds."""
        others = [table for table in self._state.table_names if table not in self._serving]
        holders = await self._leases.holders(others)
        self._note_redis()
        if holders is None:
            return
        self._state.holders.update(holders)
        if None in holders.values() and (alive := await self._leases.coordinators()) is not None:
            # In the last renewal a coordinator that has just drained would still rank first, and its tables would wait for it.
            self._note_coordinators(alive)
        if self._forgot != self._leases.data_losses:
            self._forgot, self._forgot_at = self._leases.data_losses, self._world.clock.monotonic()
            _log.warning("redis has lost its data: no free lease is taken until holders have had time to take theirs back")
        freed = await self._leases.freed(others) if self._is_forgetful() else ()
        for table, holder in holders.items():
            if self._stands and self._may_take(table, holder, freed) and await self._leases.take_lease(table):
                _log.info("lease taken", table=table)
                self._state.holders[table] = self._leases.own
                self._free_since.pop(table, None)
                self._storage.made.discard(table)
                self._serving[table] = tasks.create_task(self._serve(table))

    def _is_forgetful(self) -> bool:
        """Whether a holder may not have taken back yet what Redis lost."""
        return self._leases.is_new or self._world.clock.monotonic() - self._forgot_at < self._settings.lease_ttl

    def _may_take(self, table: str, holder: Holder | None, freed: Collection[str]) -> bool:
        """A Redis that has lost its data names no holder, but there may be one: it gets as long as its lease would have lasted,
        unless it freed the lease since. Of a table that was made here and that nobody has been seen to hold there is none.

        Otherwise two coordinators would fence each other whenever Redis loses its data (rule R5).
        """
        if holder is not None:
            self._free_since.pop(table, None)
            self._storage.made.discard(table)
            return holder.name == self._leases.own.name
        if self._is_forgetful() and table not in freed and table not in self._storage.made:
            return False
        now = self._world.clock.monotonic()
        since = self._free_since.setdefault(table, now)
        names = {each.name for each in self._state.alive} | {self._leases.own.name}
        return now - since >= owner_rank(table, self._leases.own.name, names) * RANK_WAIT_S

    def _give_up(self, table: str, why: str) -> None:
        if task := self._serving.get(table):
            _log.warning("table given up", table=table, why=why)
            task.cancel()

    async def _serve(self, table: str) -> None:
        try:
            if await self._ownerships.serve(table, self._doubt):
                self._created.set()  # the listing still has it
        finally:
            self._state.adoptions.refuse_adoption(table)
            del self._serving[table]
            await self._leases.release_lease(table)

    async def _wait_for_redis(self, began: float) -> None:
        """While Redis is away nobody takes over (rule R4), so tables that another coordinator could have go on here, up to
        `drain_timeout`.
        """
        clock = self._world.clock
        others = {holder.name for holder in self._state.coordinators} - {self._leases.own.name}
        if not self._serving or not others or await self._renew():
            return
        _log.info("redis does not answer, so nobody could take over: tables go on here until it does", tables=list(self._serving))
        while self._serving and not await self._renew():
            if clock.monotonic() - began >= self._settings.drain_timeout:
                return
            await clock.sleep(AGAIN_S)

    async def _drain(self, began: float) -> None:
        """Takes no more leases; each table ends once its checkpoints are decided, or at ``drain_deadline``."""
        await self._leases.leave_registry()
        async with asyncio.TaskGroup() as waiting:
            for table, task in self._serving.items():
                if owned := self._state.owned.get(table):
                    owned.queue_event(events.DrainAsked())
                else:
                    task.cancel()
                waiting.create_task(self._wait_for_end(table, task, began))
        if late := list(self._serving.values()):
            _log.warning("tables were handed over before their checkpoints were decided", tables=list(self._serving))
            for task in late:
                task.cancel()
            await asyncio.wait(late)

    async def _wait_for_end(self, table: str, serving: asyncio.Task[None], began: float) -> None:
        """Returns once the table is no longer served, or at its ``drain_deadline``."""
        while not serving.done():
            owned = self._state.owned.get(table)
            deadline = drain_deadline(began, owned.progressed_at if owned else 0.0, self._settings.drain_timeout)
            if (left := deadline - self._world.clock.monotonic()) <= 0:
                return
            await asyncio.wait([serving], timeout=left)

    async def _blocking(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def drain_deadline(began: float, progressed_at: float, drain_timeout: float) -> float:
    """When a table whose drain ``began`` is handed over although checkpoints are undecided; monotonic seconds.

    What was flushed is lost then, and clients send it again (rule RO6), so a drain goes on while its checkpoints do.
    """
    return min(max(began, progressed_at) + drain_timeout, began + drain_timeout + DRAIN_EXTENSION_S)


def owner_rank(table: str, name: str, coordinators: set[str]) -> int:
    """Rank by rendezvous hashing: 0 for the coordinator that should own the table. One more coordinator moves few ranks."""
    order = sorted(coordinators, key=lambda each: hashlib.sha256(f"{table} {each}".encode()).digest())
    return order.index(name)
