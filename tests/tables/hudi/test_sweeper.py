"""What dead instants left in a table on an object store is searched for beside commits, and deleted by its owner."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import StoreUnavailableError
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.storage.store import FolderListing
from headgate_tables.system import SystemIds
from support.faults import InPlaceStore
from support.handles import open_on
from support.tables import by_hudi_rs, create, notes, rows
from support.waiting import wait_until

READY_S = 30


class HeldStore(InPlaceStore):
    """A search beside waits in its first listing until ``may_go_on``. ``answers``: False makes it fail."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, SystemIds())
        self.may_go_on = threading.Event()
        self.answers = True
        self.listed: list[str] = []

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        if threading.current_thread().name.startswith("headgate-sweep"):
            self.may_go_on.wait()
            if not self.answers:
                raise StoreUnavailableError("no answer", fix="Wait.")
        else:
            self.listed.append(folder)
        return super().list_folder(folder, after=after, sizes=sizes)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HeldStore]:
    create(tmp_path).configure({"headgate.log.retire.after": "0"})
    held = HeldStore(tmp_path / "table")
    yield held
    held.may_go_on.set()


def owner(store: HeldStore) -> hudi.Table:
    table = open_on(store)
    table.own()
    return table


def left_by(table: hudi.Table) -> str:
    """The instant of a transaction that ends behind its rows: its owner is killed, or gives it up."""
    transaction = table.transaction(tidy=False)
    transaction.upsert(rows((f"lost{transaction.instant}", 1, "lost")))
    return transaction.instant


def given_up_by(table: hudi.Table) -> str:
    transaction = table.transaction(tidy=False)
    transaction.upsert(rows((f"lost{transaction.instant}", 1, "lost")))
    transaction.rollback()
    return transaction.instant


def files_of(store: HeldStore, instant: str) -> list[str]:
    return [name for folder in ("p", TIMELINE_FOLDER) for name in store.list_folder(folder).files if instant in name]


def tidied(store: HeldStore, table: hudi.Table, instant: str) -> bool:
    table.tidy(beside=True)
    return not files_of(store, instant)


def test_commits_go_on_while_a_new_owner_searches_the_table_for_what_the_last_one_left(store: HeldStore) -> None:
    first = owner(store)
    first.upsert(rows(("kept", 1, "kept")))
    dead = left_by(first)
    second = owner(store)
    store.listed.clear()
    second.tidy(beside=True)
    assert store.listed == []
    transaction = second.transaction(tidy=False)
    transaction.upsert(rows(("meanwhile", 1, "meanwhile")))
    transaction.commit()
    store.listed.clear()
    second.tidy(beside=True)
    assert store.listed == []
    assert len(files_of(store, dead)) >= 3
    store.may_go_on.set()
    wait_until("its files are gone", lambda: tidied(store, second, dead), READY_S)
    assert dead in read_state(store, LOG_LAYOUT)[0].dead
    expected = {"kept": "kept", "meanwhile": "meanwhile"}
    assert notes(hudi.open_table(second.url)) == {row["id"]: row["note"] for row in by_hudi_rs(second.url)} == expected
    assert second.verify().ok


def test_an_instant_that_dies_during_a_search_is_searched_for_by_the_next_one(store: HeldStore) -> None:
    first = owner(store)
    first.upsert(rows(("kept", 1, "kept")))
    dead = left_by(first)
    second = owner(store)
    second.tidy(beside=True)
    later = given_up_by(second)
    second.upsert(rows(("kept", 2, "kept too")))
    store.may_go_on.set()
    wait_until("files of both are gone", lambda: tidied(store, second, dead) and tidied(store, second, later), READY_S)
    assert notes(hudi.open_table(second.url)) == {"kept": "kept too"}
    assert second.verify().ok


def test_a_new_owner_whose_store_failed_searches_again_also_for_files_of_forgotten_instants(
    store: HeldStore,
) -> None:
    first = owner(store)
    first.upsert(rows(("kept", 1, "kept")))
    forgotten = given_up_by(first)
    zombies = [
        (folder, name, store.get(f"{folder}/{name}").to_pybytes())
        for folder in ("p", TIMELINE_FOLDER)
        for name in store.list_folder(folder).files
        if forgotten in name
    ]
    while forgotten not in read_state(store, LOG_LAYOUT)[0].gone:
        first.tidy()
        first.upsert(rows(("kept", 1, "kept")))
    for folder, name, content in zombies:
        store.create(f"{folder}/{name}", [content], durable=True)
    second = owner(store)
    store.answers = False
    store.may_go_on.set()
    with pytest.raises(StoreUnavailableError):
        wait_until("the search fails", lambda: tidied(store, second, forgotten), READY_S)
    store.answers = True
    wait_until("its files are gone", lambda: tidied(store, second, forgotten), READY_S)
    assert notes(hudi.open_table(second.url)) == {"kept": "kept"}
