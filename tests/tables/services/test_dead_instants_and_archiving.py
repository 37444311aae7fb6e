"""How long an instant that died holds the archiver back (hazards H8, H9; rules W2, W3)."""

from pathlib import Path

import pytest

from headgate_tables import hudi
from support.faults import FailingStore, InPlaceStore
from support.handles import open_on
from support.systems import SetClock, system
from support.tables import create, rows

FEW = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}


def handle(path: Path, store: type[FailingStore]) -> hudi.Table:
    world = system(SetClock())
    return open_on(store(path / "table", world.ids), world)


def worn(table: hudi.Table) -> str:
    """A commit, an instant that dies, more commits. Returns the dead instant."""
    table.configure({**FEW, "headgate.clean.min.age": "0"})
    table.upsert(rows(("a", 1, "first")))
    given_up = table.transaction()
    given_up.upsert(rows(("a", 2, "never")))
    given_up.rollback()
    for number in range(8):
        table.upsert(rows(("a", number + 3, "next")))
    table.tidy()
    return given_up.instant


@pytest.mark.parametrize("store", [FailingStore, InPlaceStore], ids=["staged", "in place"])
def test_only_where_a_paused_process_could_still_show_its_files_does_a_dead_instant_hold_archiving_back(
    store: type[FailingStore], tmp_path: Path
) -> None:
    create(tmp_path, system=system(SetClock()))
    table = handle(tmp_path, store)
    dead = worn(table)
    gone = table.archive().instants
    assert bool(gone) and max(gone) > dead if store is FailingStore else not gone or max(gone) < dead
    assert table.verify().ok


def test_an_instant_that_died_with_its_owner_holds_archiving_back_until_it_is_forgotten(tmp_path: Path) -> None:
    create(tmp_path, system=system(SetClock()))
    first = handle(tmp_path, FailingStore)
    open_still = first.transaction()
    open_still.announce()
    successor = handle(tmp_path, FailingStore)
    worn(successor)
    gone = successor.archive().instants
    assert not gone or max(gone) < open_still.instant
