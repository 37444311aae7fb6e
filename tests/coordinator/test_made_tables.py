"""Which tables a coordinator knows as made by itself: nobody has held them, so that it may take them at once."""

from pathlib import Path
from typing import Any

import pytest

from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.tables.described import NewTable
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.storage import TableStorage
from headgate_runtime.world import World
from headgate_tables.catalog import Catalog
from headgate_tables.errors import StoreUnavailableError
from headgate_tables.system import System
from support.tables import SCHEMA

NEW = NewTable("t", SCHEMA, ["id"], ["part"], "ts", 2, False, False, 0)


@pytest.fixture
def storage(tmp_path: Path) -> TableStorage:
    world, system = World.real(), System.real()
    settings = CoordinatorSettings(store=f"file://{tmp_path}", redis="redis://nowhere")
    return TableStorage(settings, world, system, GuardedClock(system.clock, world.clock))


def test_a_table_is_known_as_made_before_a_listing_can_show_it(storage: TableStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be served at once, and a table that is made while it is served is another one of its name."""
    entered, known = Catalog.add, list[bool]()

    def noted(catalog: Catalog, *entry: Any) -> None:
        known.append("t" in storage.made)
        entered(catalog, *entry)

    monkeypatch.setattr(Catalog, "add", noted)
    storage.create(NEW)
    assert (known, storage.made) == ([True], {"t"})


def test_a_table_whose_entry_fails_is_not_made(storage: TableStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_entry: Any) -> None:
        raise StoreUnavailableError("busy", fix="Wait.")

    monkeypatch.setattr(Catalog, "add", fails)
    with pytest.raises(StoreUnavailableError):
        storage.create(NEW)
    assert storage.made == set()
