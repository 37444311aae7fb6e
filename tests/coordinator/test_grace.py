"""A dropped table in its grace time, at its coordinator: only a clock that is trusted ends it (rule D9)."""

from pathlib import Path

import pyarrow as pa
import pytest

from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.tables.described import NewTable
from headgate_coordinator.tables.grace import NamedInGraceError
from headgate_coordinator.tables.guarded_clock import GuardedClock, TimeWitness
from headgate_coordinator.tables.storage import TableStorage
from headgate_runtime.world import World
from headgate_tables.errors import TableDroppedError
from headgate_tables.system import System

WEEK_MS = 7 * 86_400_000
WITNESS = TimeWitness("the store", independent=True)


class Wall:
    """A wall clock that jumps when it is told to; otherwise the machine's."""

    def __init__(self) -> None:
        self._real = System.real().clock
        self.jump_ms = 0

    def now_ms(self) -> int:
        return self._real.now_ms() + self.jump_ms

    def monotonic(self) -> float:
        return self._real.monotonic()

    def sleep(self, seconds: float) -> None:
        self._real.sleep(seconds)


class Coordinator:
    """A coordinator's storage with the table ``t``, which it has dropped for a week."""

    def __init__(self, store: Path) -> None:
        self.wall = Wall()
        world = World.real()
        self._monotonic = world.clock
        self.guard = GuardedClock(self.wall, world.clock)
        self.storage = TableStorage(CoordinatorSettings(store=str(store)), world, System.real(), self.guard)
        self.confirm()
        schema = pa.schema([("id", pa.string())])
        self.storage.create(NewTable("t", schema, ["id"], [], None, 1, False, False, 0))
        table, _ = self.storage.open_owned("t", "here:1")
        assert self.storage.endings.drop("t", table, "ann", WEEK_MS).until
        self.storage.note_change("t")

    def confirm(self) -> None:
        """A witness shows what the wall clock shows."""
        self.guard.note_reading(WITNESS, self.wall.now_ms(), self._monotonic.monotonic())

    def owns(self) -> None:
        """Tries to own the table."""
        self.storage.open_owned("t", "here:1")


@pytest.fixture
def coordinator(tmp_path: Path) -> Coordinator:
    return Coordinator(tmp_path)


def test_d9_a_clock_that_is_not_trusted_deletes_nothing(tmp_path: Path, coordinator: Coordinator) -> None:
    coordinator.guard.status()
    coordinator.wall.jump_ms = 2 * WEEK_MS
    with pytest.raises(NamedInGraceError):  # the witness contradicts the clock
        coordinator.owns()
    coordinator.confirm()
    assert coordinator.guard.status().alarm.startswith("the clock jumped ahead")
    with pytest.raises(NamedInGraceError):  # it confirms it, but the clock has just jumped
        coordinator.owns()
    assert (tmp_path / "t/.hoodie").exists()
    unseen = GuardedClock(coordinator.wall, World.real().clock)
    fresh = TableStorage(CoordinatorSettings(store=str(tmp_path)), World.real(), System.real(), unseen)
    with pytest.raises(NamedInGraceError):  # no witness was asked
        fresh.open_owned("t", "here:2")
    unseen.note_reading(WITNESS, coordinator.wall.now_ms(), World.real().clock.monotonic())
    with pytest.raises(TableDroppedError):
        fresh.open_owned("t", "here:2")
    assert not (tmp_path / "t/.hoodie").exists()
    assert fresh.table_names() == []


def test_d9_no_other_table_gets_the_name_and_the_table_is_in_one_list_alone(coordinator: Coordinator) -> None:
    storage = coordinator.storage
    with pytest.raises(NamedInGraceError, match="headgate table undrop t"):
        storage.create(NewTable("t", pa.schema([("id", pa.string())]), ["id"], [], None, 1, False, True, 0))
    listed = storage.list()
    assert ([each.name for each in listed.in_grace], listed.described, listed.unreadable) == (["t"], [], [])
