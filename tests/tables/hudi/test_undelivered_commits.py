"""What a handle decided, and did not come to know of in its view: an error or an interrupt came right behind the slot."""

from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import OutcomeUnknownError, StoreFullError, StoreUnavailableError
from headgate_tables.hudi.guard import Guard
from headgate_tables.hudi.services.planning import plans
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.storage.store import Outcome
from support.handles import open_on
from support.systems import FaultyStore, system
from support.tables import create, notes, rows


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    create(tmp_path, buckets=1)
    return FaultyStore(tmp_path / "table")


@pytest.fixture
def table(store: FaultyStore) -> hudi.Table:
    """Of one group with one row, which its owner has in its view."""
    made = open_on(store, system())
    made.upsert(rows(("a", 1, "a")))
    return made


def full_once(store: FaultyStore) -> None:
    """The next completed instant of the store's timeline finds no space."""
    left = [StoreFullError("full", fix="Free space.")]

    def refuse(path: str) -> Outcome | None:
        if left and path.startswith(TIMELINE_FOLDER) and path.endswith(".deltacommit"):
            raise left.pop()
        return None

    store.before_create = refuse


def test_rows_of_a_commit_that_was_published_late_are_in_the_next_compaction(store: FaultyStore, table: hudi.Table) -> None:
    full_once(store)
    with pytest.raises(OutcomeUnknownError):
        table.upsert(rows(("b", 1, "b")))
    table.upsert(rows(("c", 1, "c")))
    assert table.compact().completion
    assert notes(hudi.open_table(table.url)) == {"a": "a", "b": "b", "c": "c"}


def test_rows_of_a_commit_behind_which_an_interrupt_came_are_in_the_next_compaction(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Guard) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Guard, "note_commit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            table.upsert(rows(("b", 1, "b")))
    table.upsert(rows(("c", 1, "c")))
    assert table.compact().completion
    assert notes(hudi.open_table(table.url)) == {"a": "a", "b": "b", "c": "c"}


def test_a_plan_that_is_decided_has_ended_although_its_staged_files_cannot_be_deleted(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreUnavailableError("busy", fix="Wait.")

    for number in range(2):
        table.upsert(rows(("b", number, f"{number}")))
    while table.maintain().more:
        pass
    with monkeypatch.context() as patch:
        patch.setattr(plans, "drop_staged", refuse)
        assert table.compact().completion
        largest = table.largest_slice()
        assert largest is not None
        assert largest.log_files == 0
        table.upsert(rows(("b", 9, "9")))
        plan = table.plan_compaction(forced=True)
        assert plan is not None
        table.cancel_plan(plan.instant)
    assert not table.plans


def test_a_commit_that_nobody_has_published_is_not_lost_for_readers_behind_a_grace_time(
    store: FaultyStore, table: hudi.Table
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    transaction = table.transaction()
    transaction.upsert(rows(("b", 1, "b")))
    with pytest.raises(KeyboardInterrupt):
        transaction.commit(on_durable=interrupt)
    with open_on(store, system()) as another:
        another.drop("ann", grace_ms=60_000)
    with open_on(store, system()) as third:
        assert third.undrop("ann")
    assert hudi.open_table(table.url).scan().to_table().num_rows == 1, "as far as it is published"
    with open_on(store, system()) as fourth:
        fourth.own()
    assert notes(hudi.open_table(table.url)) == {"a": "a", "b": "b"}
