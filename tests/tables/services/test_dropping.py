"""Dropped tables: what goes and what stays, who may still write, and drops that break off (rules D5, D6, D7)."""

import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.records import OwnerProcess
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import (
    DeposedError,
    NotATableError,
    ReopenTable,
    TableDroppedError,
    TableOwnedError,
    TablesError,
)
from headgate_tables.hudi.decisions.dropping import TableDropped
from headgate_tables.hudi.log.names import base_name
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.services.dropping import finish
from headgate_tables.storage.open import open_store
from headgate_tables.system import Clock, Ids, System
from support.faults import FailingStore, Fault, InPlaceStore, KilledError
from support.handles import open_on
from support.tables import create, rows

TOMBSTONE = LOG_LAYOUT.tombstone
CLOCK: Clock = System.real().clock


def used(tmp_path: Path) -> Path:
    """A table's folder: base and log files in two partitions, an open plan, a savepoint, a lease, and a dead instant."""
    with create(tmp_path) as table:
        table.upsert(rows(("a", 1, "a"), ("b", 1, "b")))
        table.upsert(rows(("c", 1, "c"), part="q"))
        table.compact()
        table.savepoint("kept")
        table.upsert(rows(("a", 2, "newer")))
        table.plan_compaction(forced=True)
        table.lease(3600)
        dead = table.transaction()
        dead.upsert(rows(("d", 1, "dead")))
    return tmp_path / "table"


def log_on(store: FailingStore) -> CommitLog:
    return CommitLog(store, LOG_LAYOUT, System.real(), OwnerProcess("library", "here", 1))


def without_slots(folder: Path) -> list[str]:
    """An object store takes the slot of a sleeper, and the boundary says that it is not won."""
    return [name for name in files_in(folder) if not name.startswith(LOG_LAYOUT.slots)]


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def stored(folder: Path, kind: type[FailingStore]) -> FailingStore:
    return kind(folder, System.real().ids, anchor=LOG_LAYOUT.root)


def test_d5_of_a_dropped_table_nothing_is_left_but_that_it_was_dropped(tmp_path: Path) -> None:
    folder = used(tmp_path)
    with hudi.open_table(str(folder)) as table:
        planned = table.drop(plan_only=True)
        assert (planned.time, planned.left) == ("", ())
        done = table.drop("ann")
    assert (done.files, done.bytes) == (planned.files, planned.bytes)
    assert done.files >= 4
    assert [path.name for path in folder.iterdir()] == [TOMBSTONE]
    looks: list[Callable[[], object]] = [lambda: hudi.open_table(str(folder)), lambda: create(tmp_path)]
    for look in [*looks, lambda: create(tmp_path, exist_ok=True)]:
        with pytest.raises(TableDroppedError, match=r"was dropped at 2\d{3}-.* UTC by ann"):
            look()


def test_d7_files_of_others_stay_and_are_named(tmp_path: Path) -> None:
    folder = used(tmp_path)
    other = create(tmp_path / "table/p", name="inner")
    other.upsert(rows(("x", 1, "x")))
    strange = base_name("00000000-of-nobody", "1-0-1", "29991231235959999")
    others = {"README", "p/notes.txt", f"q/{strange}", ".hoodie/mine.json", "deep/er/file"}
    for name in others:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("of somebody else")
    (folder / "q/.hoodie_partition_metadata.crc").write_text("of nobody")
    (folder / "q/..hoodie_partition_metadata.crc").write_text("Hadoop's")
    with hudi.open_table(str(folder)) as table:
        planned, done = table.drop(plan_only=True), table.drop()
    left = sorted({*others, "p/table", "q/.hoodie_partition_metadata.crc"})
    assert list(done.left) == list(planned.left) == left
    assert done.left_count == len(left)
    assert {name for name in files_in(folder) if not name.startswith("p/table/")} == {*left, TOMBSTONE} - {"p/table"}
    assert hudi.open_table(other.url).scan().to_table().num_rows == 1


def test_d7_what_lies_behind_a_link_stays(tmp_path: Path) -> None:
    folder = used(tmp_path)
    other = create(tmp_path / "outside", name="other")
    other.upsert(rows(("x", 1, "x")))
    (folder / "linked").symlink_to(tmp_path / "outside/table/p")
    (folder / "p/whole").symlink_to(tmp_path / "outside/table")
    with hudi.open_table(str(folder)) as table:
        done = table.drop()
    assert list(done.left) == ["linked", "p/whole"]
    assert hudi.open_table(other.url).scan().to_table().num_rows == 1


def test_d8_epochs_of_a_new_table_go_on_above_those_of_the_dropped_one(tmp_path: Path) -> None:
    """So that whatever names a table by name and epoch never takes the one for the other."""
    with hudi.open_table(str(used(tmp_path))) as table:
        done = table.drop()
    assert done.epoch == 2
    with create(tmp_path / "again", after_epoch=done.epoch) as table:
        table.upsert(rows(("a", 1, "a")))
        assert table.epoch == 3
    again = hudi.open_table(table.url)
    assert again.epoch == 3
    assert again.scan().to_table().num_rows == 1


def test_a_result_names_no_more_files_of_others_than_a_message_takes(tmp_path: Path) -> None:
    with create(tmp_path) as table:
        for number in range(1003):
            (tmp_path / f"table/{number:04d}.txt").write_text("")
        done = table.drop()
    assert (done.left_count, len(done.left), done.left[-1]) == (1003, 1000, "0999.txt")


@pytest.mark.parametrize("kind", [FailingStore, InPlaceStore])
def test_d6_a_process_that_slept_through_a_drop_wins_nothing(tmp_path: Path, kind: type[FailingStore]) -> None:
    folder = used(tmp_path)
    store = stored(folder, kind)
    sleeper, dropper = open_on(store), open_on(store)
    open_transaction = sleeper.transaction()
    open_transaction.upsert(rows(("z", 1, "late")))
    dropper.drop("ann")
    with pytest.raises((ReopenTable, TableDroppedError)):
        open_transaction.commit()
    left = without_slots(folder)
    for work in (lambda: sleeper.upsert(rows(("z", 2, "later"))), sleeper.drop, lambda: sleeper.win_offsets({})):
        with pytest.raises((ReopenTable, TableDroppedError)):
            work()
        assert without_slots(folder) == left
    with pytest.raises(TableDroppedError):
        hudi.open_table(str(folder))


class WriterInBetween(FailingStore):
    """Whenever a folder was deleted, a writer that knows nothing of it makes a file durable, and an old owner one of the
    timeline. ``made``: the folders after which they could.
    """

    def __init__(self, root: Path, ids: Ids, *, anchor: str = "") -> None:
        super().__init__(root, ids, anchor=anchor)
        self.made: list[str] = []

    def delete_folder(self, folder: str) -> None:
        super().delete_folder(folder)
        with contextlib.suppress(TablesError):
            theirs = open_store(self.url, None, System.real().ids, anchor=LOG_LAYOUT.root)
            theirs.stage([(f"{LOG_LAYOUT.stage_folder(1, 'writer')}/file {len(self.made)}", [b"rows"])])
            theirs.create(f"{LOG_LAYOUT.root}/timeline/{len(self.made)}.deltacommit.inflight", [b""], durable=False)
            self.made.append(folder)


def test_d6_processes_in_the_middle_of_a_write_make_no_folder_again_that_the_drop_deleted(tmp_path: Path) -> None:
    folder = used(tmp_path)
    store = WriterInBetween(folder, System.real().ids, anchor=LOG_LAYOUT.root)
    with open_on(store) as dropper:
        dropper.drop("ann")
    assert [path.name for path in folder.iterdir()] == [TOMBSTONE]
    assert store.made[-1:] == [f"{LOG_LAYOUT.root}/timeline"]  # the last that goes before the anchor


def test_d6_where_files_are_made_in_place_a_number_below_the_drop_is_not_won(tmp_path: Path) -> None:
    """The slots below it are deleted, so that their numbers look free."""
    folder = used(tmp_path)
    store = stored(folder, InPlaceStore)
    sleeper = log_on(store)
    sleeper.own()
    with open_on(store) as dropper:
        dropper.upsert(rows(("e", 1, "e")))
        dropper.drop("ann")
    assert len(files_in(folder / LOG_LAYOUT.slots)) == 1
    with pytest.raises(DeposedError, match=r"was dropped at .* by ann"):
        sleeper.win_offsets({})
    finish(store, CLOCK)
    (number,) = files_in(folder / LOG_LAYOUT.bounds)
    assert files_in(folder) == [TOMBSTONE, f"{LOG_LAYOUT.bounds}/{number}", f"{LOG_LAYOUT.slots}/{number}"]


def test_d5_a_handle_that_has_dropped_the_table_wins_no_slot_any_more(tmp_path: Path) -> None:
    folder = used(tmp_path)
    log = log_on(stored(folder, FailingStore))
    log.win_end(TableDropped(by="ann"))
    slots = files_in(folder / LOG_LAYOUT.slots)
    for work in (
        lambda: log.win_offsets({}),
        lambda: log.win_end(TableDropped(by="eve")),
        log_on(stored(folder, FailingStore)).own,
    ):
        with pytest.raises(TableDroppedError, match="by ann"):
            work()
    assert files_in(folder / LOG_LAYOUT.slots) == slots


@pytest.mark.slow
@pytest.mark.parametrize("kind", [FailingStore, InPlaceStore])
@pytest.mark.parametrize("after", [False, True])
def test_d5_a_drop_that_dies_at_any_call_is_finished_by_the_next_process(
    tmp_path: Path, kind: type[FailingStore], after: bool
) -> None:
    """Whoever looks meanwhile finds the table as it was, or a dropped one; never a part of it."""
    begun = finished = 0
    for at in itertools.count(1, 3):
        root = tmp_path / str(at)
        folder = used(root)
        (folder / "README").write_text("of somebody else")
        store = stored(folder, kind)
        table = open_on(store)
        store.fault = fault = Fault(at, KilledError, after=after)
        with contextlib.suppress(KilledError):
            table.drop("ann")
        store.fault = None
        if is_dropped(folder):
            finished += 1
            for _ in range(2):
                done = finish(store, CLOCK)
                assert done is not None
                assert (done.epoch, done.by) == (2, "ann")
            assert {name for name in files_in(folder) if not name.startswith(LOG_LAYOUT.folder)} == {"README", TOMBSTONE}
            assert len([name for name in files_in(folder) if name.startswith(LOG_LAYOUT.folder)]) == (0 if store.stages else 2)
            with pytest.raises(TableDroppedError):
                hudi.open_table(str(folder))
        else:
            begun += 1
            assert hudi.open_table(str(folder), take_over=True).scan().to_table().num_rows == 3
        if not fault.happened:
            break
    assert begun >= 2
    assert finished >= 10


def is_dropped(folder: Path) -> bool:
    try:
        hudi.open_table(str(folder))
    except TableDroppedError:
        return True
    return False


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_d5_readers_find_no_table_as_soon_as_its_files_go(tmp_path: Path, steps: int) -> None:
    folder = used(tmp_path)
    store = stored(folder, FailingStore)
    table = open_on(store)
    calls: list[Callable[[], None]] = []
    store.fault = Fault(10**9)
    original = store._call

    def watched(name: str, work: Callable[[], object]) -> object:
        if name.startswith("delete ") and len(calls) < steps:
            calls.append(lambda: None)
            if len(calls) > 1:
                assert not (folder / ".hoodie/hoodie.properties").exists()
        return original(name, work)

    store._call = watched  # type: ignore[method-assign,assignment]
    table.drop()
    assert len(calls) == steps


def test_a_table_of_a_cluster_is_dropped_by_its_owner_alone(tmp_path: Path) -> None:
    folder = used(tmp_path)
    hudi.open_table(str(folder), owner=OwnerProcess("cluster", "host", 1, "here:7070")).own()
    with pytest.raises(TableOwnedError, match="here:7070"):
        hudi.open_table(str(folder)).drop()
    assert hudi.open_table(str(folder)).scan().to_table().num_rows == 3


def test_a_table_that_another_program_wrote_to_is_dropped_all_the_same(tmp_path: Path) -> None:
    folder = used(tmp_path)
    (folder / ".hoodie/timeline/20990101000000000_20990101000000001.deltacommit").write_bytes(b"")
    hudi.open_table(str(folder)).drop()
    assert [path.name for path in folder.iterdir()] == [TOMBSTONE]


def test_where_no_table_was_dropped_there_is_nothing_to_finish(tmp_path: Path) -> None:
    assert hudi.finish_drop(str(tmp_path)) is None
    folder = used(tmp_path)
    assert hudi.finish_drop(str(folder)) is None
    assert read_state(stored(folder, FailingStore), LOG_LAYOUT)[0].dropped is None
    with pytest.raises(NotATableError):
        hudi.open_table(str(tmp_path / "elsewhere"))
