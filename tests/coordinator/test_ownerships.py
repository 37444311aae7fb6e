"""One ownership after the other, on a real table: what is left of one that is given up while it begins."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from headgate_coordinator.leadership import ownerships
from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.leadership.leases import Holder
from headgate_coordinator.leadership.ownerships import Ownerships
from headgate_coordinator.metrics import Metrics
from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.tables.described import NewTable
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.storage import TableStorage
from headgate_coordinator.tables.work import RunService
from headgate_runtime.world import World
from headgate_tables.backoff import Backoff
from headgate_tables.errors import MissingFileError, StoreUnavailableError, TablesError
from headgate_tables.face.definition import Definition
from headgate_tables.face.owner import Table
from headgate_tables.hudi import OwnerProcess, open_table
from headgate_tables.system import System
from support.processes import READY_S
from support.tables import SCHEMA

OWN = Holder("own", "1", "own:1")


class HeldStorage(TableStorage):
    """Opens a table when it is told to."""

    def __init__(self, settings: CoordinatorSettings) -> None:
        world, system = World.real(), System.real()
        super().__init__(settings, world, system, GuardedClock(system.clock, world.clock))
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self.damage: TablesError | None = None
        self.opens = 0

    def open_owned(
        self, name: str, address: str, adoption: RunService | None = None, *, after_epoch: int = 0
    ) -> tuple[Table, Definition]:
        self.opens += 1
        self.begun.set()
        assert self.goes_on.wait(READY_S)
        if self.damage is not None:
            raise self.damage
        return super().open_owned(name, address, adoption, after_epoch=after_epoch)


class Scene:
    """A coordinator with one thread, and the table ``t``."""

    def __init__(self, folder: Path, threads: ThreadPoolExecutor) -> None:
        settings = CoordinatorSettings(store=f"file://{folder}", redis="redis://nowhere")
        self.threads = threads
        self.storage = HeldStorage(settings)
        self.url = self.storage.create(NewTable("t", SCHEMA, ["id"], ["part"], "ts", 2, False, False, 0)).url
        system, world = System.real(), World.real()
        guard, leases = GuardedClock(system.clock, world.clock), _Leases()
        metrics: Any = Metrics(CollectorRegistry())
        self.state = CoordinatorState(own=OWN)
        parts: Any = (self.state, leases, self.storage, settings, world, metrics, threads, guard)
        self.ownerships = Ownerships(*parts)
        self.serving = asyncio.ensure_future(self.ownerships.serve("t", lambda: None))

    async def until_told(self) -> None:
        """Returns when the table has a trouble, or is not served any more."""
        async with asyncio.timeout(READY_S):
            while not (self.serving.done() or self.state.troubles):
                await asyncio.sleep(0.001)

    def newest_epoch(self) -> int:
        with open_table(self.url) as table:
            return table.epoch


class _Leases:
    own = OWN


async def settled() -> None:
    """All that can go on without a thread has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    with ThreadPoolExecutor(1) as threads:
        made = Scene(tmp_path, threads)
        try:
            yield made
        finally:
            made.storage.goes_on.set()
            made.serving.cancel()
            await asyncio.wait([made.serving])


async def test_an_ownership_that_is_given_up_while_it_begins_ends_after_its_fence(scene: Scene) -> None:
    """Its lease is freed then. Whoever took the table before would be fenced for nothing (rule R5)."""
    assert await asyncio.to_thread(scene.storage.begun.wait, READY_S)
    for _ in range(2):  # its entry is gone, and the coordinator drains
        scene.serving.cancel()
        await settled()
        assert not scene.serving.done()
    scene.storage.goes_on.set()
    await asyncio.wait([scene.serving])
    assert scene.serving.cancelled()
    assert scene.newest_epoch() == 1
    with open_table(scene.url, owner=OwnerProcess("cluster", "host", 2, "other:1")) as other:
        assert other.own() == 2
        scene.threads.shutdown()
        other.check_owner()


async def test_an_ownership_that_waits_for_a_thread_ends_at_once_when_it_is_given_up(tmp_path: Path) -> None:
    busy = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(busy.wait, READY_S)
        scene = Scene(tmp_path, threads)
        try:
            await settled()
            scene.serving.cancel()
            await settled()
            assert scene.serving.cancelled()
        finally:
            busy.set()
            scene.storage.goes_on.set()
    assert not scene.storage.begun.is_set()
    assert scene.newest_epoch() == 0


@pytest.mark.parametrize(
    ("draining_first", "pause_s"), [(True, READY_S), (False, 0.1)], ids=["it drains already", "in the pause"]
)
async def test_an_ownership_that_ends_with_an_error_is_the_last_one_of_a_coordinator_that_drains(
    draining_first: bool, pause_s: float, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would ask the next one to drain, and it would keep the table from others up to the drain's deadline."""
    monkeypatch.setattr(ownerships, "PAUSES", Backoff(first=pause_s, longest=pause_s))
    scene.storage.damage = StoreUnavailableError("busy", fix="Wait.")
    assert await asyncio.to_thread(scene.storage.begun.wait, READY_S)
    scene.ownerships.draining = draining_first
    scene.storage.goes_on.set()
    async with asyncio.timeout(READY_S / 2):
        while "t" not in scene.state.troubles and not scene.serving.done():
            await asyncio.sleep(0)
        scene.ownerships.draining = True
        while not scene.serving.done() and scene.storage.opens == 1:
            await asyncio.sleep(0.001)
    assert scene.storage.opens == 1
    assert scene.serving.result() is False


async def test_a_table_that_is_removed_while_it_is_opened_is_not_taken_for_damage(scene: Scene, tmp_path: Path) -> None:
    """What is left of its folder looks like that, until its entry is gone, too."""
    assert await asyncio.to_thread(scene.storage.begun.wait, READY_S)
    scene.storage.damage = MissingFileError("hoodie.properties is gone", fix="Restore it.")
    (tmp_path / ".headgate/tables/t").unlink()
    scene.storage.goes_on.set()
    await scene.until_told()
    assert not scene.state.troubles
    assert scene.serving.result() is True


async def test_a_table_whose_entry_is_removed_while_it_is_opened_is_given_up_and_not_quarantined(
    scene: Scene, tmp_path: Path
) -> None:
    """An operator forgets it that way, and then makes another of the name: a quarantine would refuse that one's first clients."""
    assert await asyncio.to_thread(scene.storage.begun.wait, READY_S)
    (tmp_path / ".headgate/tables/t").unlink()
    scene.storage.goes_on.set()
    await scene.until_told()
    assert not scene.state.troubles
    assert scene.serving.result() is True


async def test_a_table_that_looks_damaged_while_the_stores_disk_is_not_mounted_is_not_quarantined(
    scene: Scene, tmp_path: Path
) -> None:
    """Its files are missing where its coordinator looks."""
    assert await asyncio.to_thread(scene.storage.begun.wait, READY_S)
    scene.storage.damage = MissingFileError("a file is gone", fix="Restore it.")
    for path in tmp_path.iterdir():
        path.rename(tmp_path.with_name(f"{tmp_path.name}-disk-{path.name}"))
    scene.storage.goes_on.set()
    await scene.until_told()
    assert isinstance(scene.state.troubles["t"].error, StoreUnavailableError)
