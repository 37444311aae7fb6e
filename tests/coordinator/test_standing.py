"""When a coordinator stands for a free table, and whom it takes for one: by leases and clock alone (rules R1, R4, R5)."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.leadership.elections import AGAIN_S, RANK_WAIT_S, SEEN_S, Elections, owner_rank
from headgate_coordinator.leadership.leases import Holder, Renewal
from headgate_coordinator.metrics import Metrics
from headgate_coordinator.settings import CoordinatorSettings
from headgate_runtime.world import World, pass_on
from headgate_tables.errors import StoreUnavailableError
from support.alarms import text_of
from support.hand_clock import HandClock
from support.processes import READY_S

OWN, OTHER = Holder("own", "1", "own:1"), Holder("other", "2", "other:1")
TTL_S = 5.0


class Clock(HandClock):
    """Who sleeps on it goes on at once."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.001)


class Scene:
    """A coordinator, and the Redis and the store that it sees. No table opens."""

    own = OWN
    reachable, last_error = True, ""

    def __init__(self) -> None:
        self.clock = Clock()
        self.state = CoordinatorState(own=OWN)
        self.tables = ["t"]
        self.store_answers = self.answers = True
        self.held: dict[str, Holder | None] = {}
        self.alive = [OWN]
        self.beats_say: list[Holder] | None = None
        self.data_losses = 0
        self.is_new = False
        self.made: set[str] = set()
        self.freed_leases: set[str] = set()
        self.taken: list[str] = []
        self.looks = self.beats = 0

    async def looked(self, after: float = 0.0) -> None:
        """``after`` seconds have passed, and then everything was looked at."""
        self.clock.now += after
        looks, beats = self.looks, self.beats
        while self.looks < looks + 3 or self.beats < beats + 3:
            await asyncio.sleep(0.001)

    # As leases.

    async def renew(self, held: Any, *, stands: bool = True) -> Renewal | None:
        self.beats += 1
        return None if not self.answers else Renewal({}, [], list(self.alive if self.beats_say is None else self.beats_say))

    async def coordinators(self) -> list[Holder]:
        return list(self.alive)

    async def holders(self, tables: Any) -> Any:
        self.looks += 1
        return {table: self.held.get(table) for table in tables}

    async def freed(self, tables: Any) -> set[str]:
        return self.freed_leases & set(tables)

    async def take_lease(self, table: str) -> bool:
        self.taken.append(table)
        return True

    async def release_lease(self, table: str) -> None: ...

    async def leave_registry(self) -> None: ...

    # As the storage.

    def table_names(self) -> list[str]:
        if not self.store_answers:
            raise StoreUnavailableError("busy", fix="Wait.")
        return self.tables

    def own_table(self, *arguments: Any, **options: Any) -> Any:
        raise StoreUnavailableError("busy", fix="Wait.")

    # As witnesses of the time.

    async def ask_redis(self) -> None: ...

    async def ask_store(self) -> None: ...


class _Storage:
    def __init__(self, scene: Scene) -> None:
        self.table_names, self.open_owned, self.made = scene.table_names, scene.own_table, scene.made


@asynccontextmanager
async def standing(**held: Holder) -> AsyncIterator[Scene]:
    """``held``: tables that another has from the beginning."""
    scene: Any = Scene()
    scene.held.update(held)
    world = World(scene.clock, World.real().ids, "host", 1, pass_on)
    settings = CoordinatorSettings(
        store="/nowhere", redis="redis://nowhere", scan_interval=0.002, lease_ttl=TTL_S, lease_renewal=1.5
    )
    created, draining = asyncio.Event(), asyncio.Event()
    created.set()
    metrics: Any = Metrics(CollectorRegistry())
    with ThreadPoolExecutor(1) as threads:
        storage, guard = _Storage(scene), None
        parts: Any = (scene.state, scene, storage, settings, world, metrics, threads, created, guard, scene)
        async with asyncio.timeout(READY_S), asyncio.TaskGroup() as group:
            running = group.create_task(Elections(*parts).run(draining))
            await scene.looked()
            yield scene
            draining.set()
            await running


def names_by_rank(alive: set[str]) -> tuple[str, str]:
    """A table that is ours first, and one that is the other's."""
    tables = [f"t{number}" for number in range(100)]
    ours = next(table for table in tables if owner_rank(table, "own", alive) == 0)
    theirs = next(table for table in tables if owner_rank(table, "own", alive) == 1)
    return ours, theirs


async def test_a_free_table_is_taken_at_once_by_who_comes_first_and_later_by_the_next() -> None:
    async with standing() as scene:
        scene.alive = [OWN, OTHER]
        await scene.looked()
        ours, theirs = names_by_rank({"own", "other"})
        scene.taken.clear()
        scene.tables = [ours, theirs]
        await scene.looked(after=1.0)
        await scene.looked()
        assert scene.taken == [ours]
        await scene.looked(after=RANK_WAIT_S - 0.1)
        assert scene.taken == [ours]
        await scene.looked(after=0.2)
        assert scene.taken == [ours, theirs]


async def test_who_has_left_is_not_waited_for_though_the_last_beat_still_told_of_it() -> None:
    async with standing() as scene:
        scene.alive = [OWN, OTHER]
        scene.beats_say = [OWN, OTHER]
        await scene.looked()
        _, theirs = names_by_rank({"own", "other"})
        scene.taken.clear()
        scene.alive = [OWN]
        scene.tables = [theirs]
        await scene.looked(after=1.0)
        assert scene.taken == [theirs]


async def test_a_table_that_is_made_again_under_its_owner_is_given_up_and_taken_anew() -> None:
    """Somebody has removed its entry and its folder in between, and the owner has seen neither."""
    async with standing() as scene:
        assert scene.taken == ["t"]
        scene.made.add("t")
        for _ in range(2):
            await scene.looked(after=1.0)
            assert scene.taken == ["t", "t"]


async def test_a_table_that_was_held_in_between_has_to_be_free_for_the_whole_time_again() -> None:
    async with standing() as scene:
        scene.alive = [OWN, OTHER]
        await scene.looked()
        _, theirs = names_by_rank({"own", "other"})
        scene.taken.clear()
        scene.tables = [theirs]
        await scene.looked(after=1.0)
        await scene.looked(after=0.6)
        scene.held[theirs] = OTHER
        await scene.looked()
        scene.held.clear()
        await scene.looked(after=0.6)
        await scene.looked(after=0.6)
        assert scene.taken == []
        await scene.looked(after=0.6)
        assert scene.taken == [theirs]


async def test_nobody_stands_before_holders_that_redis_has_forgotten_could_take_their_leases_back() -> None:
    """Rule R5: two coordinators would fence each other as often as Redis loses its data."""
    async with standing() as scene:
        scene.taken.clear()
        scene.data_losses = 1
        scene.tables = ["t", "u"]
        await scene.looked(after=1.0)
        await scene.looked(after=TTL_S - 0.1)
        assert scene.taken == []
        await scene.looked(after=0.2)
        assert scene.taken == ["u"]


async def test_beside_a_new_redis_a_new_coordinator_stands_for_no_table_that_may_have_a_holder() -> None:
    """Rule R5. It has never registered, so it cannot miss its registration; and the table that it has made has no owner yet."""
    async with standing() as scene:
        scene.taken.clear()
        scene.is_new = True
        scene.tables = ["t", "held", "made", "taken"]
        scene.made.update(["made", "taken"])
        scene.held = {"taken": OTHER}
        await scene.looked(after=1.0)
        await scene.looked(after=1.0)
        assert (scene.taken, scene.made) == (["made"], set()), "each has, or has had, an owner now"
        scene.held = {}
        await scene.looked(after=1.0)
        assert scene.taken == ["made"]
        scene.is_new = False
        await scene.looked(after=1.0)
        assert sorted(scene.taken) == ["held", "made", "taken"]


async def test_a_redis_that_does_not_answer_is_asked_again_soon() -> None:
    """Who holds leases takes them back before a coordinator that has just begun finds them free.

    Nothing else sleeps: a table that cannot be opened is tried again after such times, too.
    """
    async with standing(t=OTHER) as scene:
        slept: list[float] = []
        sleep = scene.clock.sleep

        async def noted(seconds: float) -> None:
            slept.append(seconds)
            await sleep(seconds)

        scene.clock.sleep = noted  # type: ignore[method-assign]
        await scene.looked()
        assert (1.5 in slept, AGAIN_S in slept) == (True, False)
        scene.answers = False
        slept.clear()
        await scene.looked()
        assert (1.5 in slept, AGAIN_S in slept) == (False, True)


async def test_a_lease_that_was_freed_after_redis_lost_its_data_is_taken_at_once() -> None:
    """Its holder had taken it back, and has ended since."""
    async with standing() as scene:
        scene.taken.clear()
        scene.data_losses = 1
        scene.freed_leases = {"u"}
        scene.tables = ["t", "u", "v"]
        await scene.looked(after=1.0)
        await scene.looked()
        assert scene.taken == ["u"]


async def test_coordinators_stay_on_the_list_for_a_while_when_redis_has_forgotten_them() -> None:
    """No control stream is cut for it."""
    async with standing() as scene:
        scene.alive = [OWN, OTHER]
        await scene.looked()
        scene.alive = [OWN]
        await scene.looked(after=SEEN_S - 1.0)
        assert set(scene.state.coordinators) == {OWN, OTHER}
        assert list(scene.state.alive) == [OWN]
        await scene.looked(after=1.5)
        assert set(scene.state.coordinators) == {OWN}


async def test_a_store_that_cannot_be_listed_is_an_alarm_and_the_last_list_holds() -> None:
    async with standing() as scene:
        scene.store_answers = False
        await scene.looked(after=1.0)
        assert "the store's tables cannot be listed" in text_of(scene.state.listing_outage.alarm)
        assert list(scene.state.table_names) == ["t"]
        scene.store_answers = True
        scene.tables = ["t", "u"]
        await scene.looked(after=1.0)
        await scene.looked()
        assert not scene.state.listing_outage.is_on
        assert list(scene.state.table_names) == ["t", "u"]
