"""Leases of tables and the registry of coordinators, in Redis (rules R1, R3, R4).

No answer of Redis decides anything: a lease can be lost, doubled or outlasted by a paused process, and then a slot decides. A
Redis that does not answer is a state (``reachable``) and the answer None, not an error: owners go on, and no table is taken.
Keys hold hex digits of names, never a user's text; there is no Lua, so that ``-@scripting`` may be denied.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import RedisError, WatchError

NEW_MS = 2000
"""How long Redis counts as new after a coordinator has found it without data: holders take leases of before back in that time.
Longer: after a start of everything, tables wait longer for an owner."""
_SCAN_COUNT = 1000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Holder:
    """One process of a coordinator and its addresses. The name survives restarts, ``process`` does not.

    ``cluster_address``: where services reach it; ``address``: where clients do.
    """

    name: str
    process: str
    address: str
    cluster_address: str = ""

    def encode(self) -> str:
        """The value in Redis; settings keep spaces out of name and addresses.

        Coordinators of the versions beside this one read it and take nothing else, not even a fifth word.
        """
        return f"{self.name} {self.process} {self.address} {self.cluster_address}"

    @classmethod
    def decode(cls, value: str | bytes) -> "Holder":
        """The holder; NOBODY for a value that no coordinator wrote."""
        parts = str(value).split(" ")
        return cls(*parts) if len(parts) == 4 else NOBODY


NOBODY = Holder("", "", "")


@dataclass(frozen=True, slots=True)
class Renewal:
    """Result of a renewal. ``lost``: tables that another process holds now; ``coordinators``: all that live, this one included.

    ``recreated``: leases that were gone, also at a renewal before that ended without an answer. Others may have held them in
    between, so the log has to name the tables' owners.
    """

    lost: Mapping[str, Holder]
    recreated: Sequence[str]
    coordinators: Sequence[Holder]


class Leases:
    """The leases of one process ``own``. ``ttl_s``: how long a lease outlives its holder's last renewal.

    ``redis`` decodes answers and is closed with this; each command is tried once (``redis_access.open_redis``).
    ``data_losses`` counts how often the own entry was gone from the registry: then Redis has lost its data, or this process
    slept, and a missing lease says nothing about its holder. ``is_new``: Redis had no data at all a moment ago, so this process,
    which may be new itself, cannot know what it has lost.
    """

    def __init__(self, redis: Redis, cluster: str, own: Holder, *, ttl_s: float) -> None:
        self.own = own
        self.reachable = False
        self.last_error = "not asked yet"
        self.data_losses = 0
        self.is_new = True
        self._registered = False
        self._left = False
        self._freed: set[str] = set()
        self._doubted: set[str] = set()
        """Tables whose lease was gone, that no renewal has returned yet: Redis may have made it anew although no answer came."""
        self._prefix = f"headgate:{cluster.encode().hex()}"
        self._known, self._new = f"{self._prefix}:known", f"{self._prefix}:new"
        self._ttl_ms = round(ttl_s * 1000)
        self._redis = redis

    async def close(self) -> None:
        """Closes the connections."""
        await self._redis.aclose()

    async def setup_problem(self) -> str | None:
        """What is wrong with Redis's configuration (rule R3), in one sentence; None: nothing, or it cannot be read."""
        policy = await self._ask(lambda: self._redis.config_get("maxmemory-policy"))
        if policy is None:
            return None
        found = policy.get("maxmemory-policy", "unknown")
        if found == "noeviction":
            return None
        return f"Redis has maxmemory-policy {found}: leases may be evicted and tables change hands; set noeviction"

    async def renew(self, held: Collection[str], *, stands: bool = True) -> Renewal | None:
        """Renews the leases of the tables ``held`` and, with ``stands``, the entry in the registry, in one transaction."""
        return await self._ask(lambda: self._beat(list(held), stands=stands))

    async def _beat(self, held: Sequence[str], *, stands: bool) -> Renewal:
        keys = [self._lease(table) for table in held]
        member = self._member(self.own.name)
        async with self._watching([*keys, member]) as pipe:
            known, registration, *found = await pipe.mget([self._known, member, *keys])
            self._note_registration(registration)
            pipe.multi()  # type: ignore[no-untyped-call]
            if known is None:
                pipe.set(self._known, "1")
                pipe.set(self._new, "1", px=NEW_MS)
            # The caller may not have known what was freed in the meantime.
            stands = stands and not self._left
            if stands:
                pipe.set(member, self.own.encode(), px=self._ttl_ms)
            lost: dict[str, Holder] = {}
            for table, key, value in zip(held, keys, found, strict=True):
                if table in self._freed:
                    continue
                if value is None or value == self.own.encode():
                    if value is None:  # FLUSHALL, a restart without a file, or this process was paused
                        self._doubted.add(table)
                    pipe.set(key, self.own.encode(), px=self._ttl_ms)
                else:
                    lost[table] = Holder.decode(value)
            await pipe.execute()
        self._registered = stands
        coordinators = await self._coordinators()
        recreated = [table for table in held if table in self._doubted]
        self._doubted.difference_update(recreated)
        return Renewal(lost, recreated, coordinators)

    async def coordinators(self) -> list[Holder] | None:
        """Living coordinators, by name; renewals return them too, but less often."""
        return await self._ask(self._coordinators)

    async def _coordinators(self) -> list[Holder]:
        keys = [key async for key in self._redis.scan_iter(match=f"{self._prefix}:coordinator:*", count=_SCAN_COUNT)]
        values = await self._redis.mget(keys) if keys else []
        return sorted((Holder.decode(value) for value in values if value is not None), key=lambda holder: holder.name)

    async def holders(self, tables: Sequence[str]) -> Mapping[str, Holder | None] | None:
        """Holder of each table; None for a free one. None instead of the mapping when Redis does not answer."""
        if not tables:
            return {}
        keys = [self._known, self._new, self._member(self.own.name), *(self._lease(table) for table in tables)]
        values = await self._ask(lambda: self._redis.mget(keys))
        if values is None:
            return None
        known, new, registration, *values = values
        self.is_new = known is None or new is not None
        self._note_registration(registration)
        return {table: None if value is None else Holder.decode(value) for table, value in zip(tables, values, strict=True)}

    def _note_registration(self, found: str | bytes | None) -> None:
        if found is None and self._registered:
            self._registered = False
            self.data_losses += 1

    async def take_lease(self, table: str) -> bool:
        """Takes a free lease, or one that an earlier process of this name holds. False also when Redis does not answer."""
        self._freed.discard(table)
        return await self._ask(lambda: self._take(self._lease(table))) or False

    async def _take(self, key: str) -> bool:
        if await self._redis.set(key, self.own.encode(), nx=True, px=self._ttl_ms):
            return True
        async with self._watching([key]) as pipe:
            value = await pipe.get(key)
            if value is not None and Holder.decode(value).name != self.own.name:
                return False
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.set(key, self.own.encode(), px=self._ttl_ms)
            await pipe.execute()
        return True

    async def release_lease(self, table: str) -> None:
        """Frees the lease if this process holds it; without an answer it expires. No renewal keeps it any more.

        For one lease's length Redis remembers that it was freed and did not get lost.
        """
        self._freed.add(table)
        self._doubted.discard(table)
        await self._ask_twice(lambda: self._drop(self._lease(table), note=self._freed_note(table)))

    async def freed(self, tables: Sequence[str]) -> Collection[str]:
        """Those of the tables whose holder freed the lease lately; none when Redis does not answer."""
        notes = [self._freed_note(table) for table in tables]
        found = await self._ask(lambda: self._redis.mget(notes)) if notes else []
        return () if found is None else {table for table, note in zip(tables, found, strict=True) if note is not None}

    async def time_ms(self) -> float | None:
        """Redis's time in ms since the epoch; None when it does not answer."""
        time = await self._ask(lambda: self._redis.time())
        return None if time is None else time[0] * 1000 + time[1] / 1000

    async def leave_registry(self) -> None:
        """Removes this coordinator from the registry for good, so that others do not wait for it to take leases."""
        self._left = True
        await self._ask_twice(lambda: self._drop(self._member(self.own.name)))

    async def _drop(self, key: str, *, note: str = "") -> bool:
        while True:  # a renewal between read and deletion must not keep the key for its whole time
            with contextlib.suppress(WatchError):
                return await self._drop_unless_changed(key, note)

    async def _drop_unless_changed(self, key: str, note: str) -> bool:
        async with self._watching([key]) as pipe:
            if await pipe.get(key) != self.own.encode():
                return False
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.delete(key)
            if note:
                pipe.set(note, "1", px=self._ttl_ms)
            await pipe.execute()
        return True

    @asynccontextmanager
    async def _watching(self, keys: Sequence[str]) -> AsyncIterator[Pipeline]:
        async with self._redis.pipeline(transaction=True) as pipe:
            await pipe.watch(*keys)
            yield pipe

    async def _ask(self, question: Callable[[], Awaitable[_T]]) -> _T | None:
        before = _cancellations()
        try:
            answer = await question()
        except WatchError:
            answer = None  # another process wrote in between; the next look sees what
        except (RedisError, OSError, TimeoutError) as error:
            self.reachable, self.last_error = False, f"{type(error).__name__}: {error}"
            answer = None
        else:
            self.reachable, self.last_error = True, ""
        if _cancellations() > before:
            # redis-py loses cancellations that come while it waits, and the caller would go on
            # (test_a_cancelled_question_ends_as_cancelled).
            raise asyncio.CancelledError
        return answer

    async def _ask_twice(self, question: Callable[[], Awaitable[_T]]) -> None:
        """For what nobody asks again later. A Redis that was restarted ends the first on a connection of before."""
        await self._ask(question)
        if not self.reachable:
            await self._ask(question)

    def _lease(self, table: str) -> str:
        return f"{self._prefix}:lease:{table.encode().hex()}"

    def _freed_note(self, table: str) -> str:
        return f"{self._prefix}:freed:{table.encode().hex()}"

    def _member(self, name: str) -> str:
        return f"{self._prefix}:coordinator:{name.encode().hex()}"


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0
