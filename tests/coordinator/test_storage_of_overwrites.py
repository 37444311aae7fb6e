"""The file groups that a coordinator hands to writers, when another program has overwritten partitions."""

from pathlib import Path

import pyarrow as pa
import pytest

from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.tables.described import NewTable
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.storage import TableStorage
from headgate_runtime.world import World
from headgate_tables import hudi
from headgate_tables.errors import TableDroppedError
from headgate_tables.face.owner import Table
from headgate_tables.storage.mounted import MountedFolder
from headgate_tables.system import System
from support.counting import CountingStore

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])


def test_an_owner_hands_out_the_file_groups_of_an_overwrite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also of one that happens while the coordinator opens the table: until its fence others may own it."""
    url = str(tmp_path / "t")
    with hudi.create_table(url, SCHEMA, record_key=["id"], partition_by=["part"], buckets=2) as table:
        table.upsert(pa.table({"id": ["x"], "part": ["a"]}, schema=SCHEMA))
    world, system = World.real(), System.real()
    settings = CoordinatorSettings(store=f"file://{tmp_path}", redis="redis://nowhere")
    storage = TableStorage(settings, world, system, GuardedClock(system.clock, world.clock))
    storage._catalog.add("t", "t")
    assert storage.describe("t").definition.groups == {}
    open_listed = TableStorage._open_listed

    def overwritten_meanwhile(self: TableStorage, name: str, address: str = "") -> tuple[Table, str]:
        opened = open_listed(self, name, address)
        with hudi.open_table(url) as other:
            other.delete_partitions(["a"])
        return opened

    monkeypatch.setattr(TableStorage, "_open_listed", overwritten_meanwhile)
    owned, handed_out = storage.open_owned("t", "here:1")
    with owned:
        assert storage.describe("t").definition == handed_out
    with hudi.open_table(url) as later:
        assert later.definition is not None
        assert handed_out.groups == later.definition.groups != {}


def test_a_table_that_was_just_described_costs_one_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It has to be one: only the entry tells that the table is still the one of its name."""
    world, system = World.real(), System.real()
    settings = CoordinatorSettings(store=f"file://{tmp_path}", redis="redis://nowhere")
    storage = TableStorage(settings, world, system, GuardedClock(system.clock, world.clock))
    made = storage.create(NewTable("t", SCHEMA, ["id"], [], None, 2, False, False, 0))
    counting = CountingStore(tmp_path)
    monkeypatch.setattr(storage._catalog, "_store", counting)
    monkeypatch.setattr(storage._catalog, "_files", MountedFolder(counting, ".headgate"))
    assert storage.describe("t") == made
    assert (counting.opened, counting.sized, counting.listed) == ([".headgate/tables/t"], [], [])


def test_d8_a_table_that_was_made_again_is_described_at_once_by_another_coordinator(tmp_path: Path) -> None:
    world, system = World.real(), System.real()
    settings = CoordinatorSettings(store=f"file://{tmp_path}", redis="redis://nowhere")
    here, there = (TableStorage(settings, world, system, GuardedClock(system.clock, world.clock)) for _ in range(2))
    wanted = NewTable("t", SCHEMA, ["id"], ["part"], None, 2, False, False, 0)
    old = here.create(wanted)
    assert there.describe("t") == old == there.list().described[0]
    with here.open_owned("t", "here:1")[0] as table:
        here.endings.drop("t", table, "ann")
    with pytest.raises(TableDroppedError):
        there.describe("t")
    new = here.create(wanted)
    for seen in (there.list().described[0], there.describe("t"), here.describe("t")):
        assert (seen.url, seen.definition.table_uuid) == (new.url, new.definition.table_uuid)
    assert new.url == f"{old.url}~2"


def test_d8_a_drop_and_a_creation_that_nobody_looked_between_are_seen(tmp_path: Path) -> None:
    world, system = World.real(), System.real()
    settings = CoordinatorSettings(store=f"file://{tmp_path}", redis="redis://nowhere")
    here, there = (TableStorage(settings, world, system, GuardedClock(system.clock, world.clock)) for _ in range(2))
    wanted = NewTable("t", SCHEMA, ["id"], ["part"], None, 2, False, False, 0)
    here.create(wanted)
    there.describe("t")
    with here.open_owned("t", "here:1")[0] as table:
        here.endings.drop("t", table, "ann")
    assert here.create(wanted).url == there.describe("t").url
