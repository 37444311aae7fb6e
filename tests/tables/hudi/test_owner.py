"""A handle as the owner of a cluster's table has it: ownership, checkpoints whose files others write, offsets, tidying up."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog import commit_log
from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.commitlog.records import ChannelRecord
from headgate_tables.commitlog.tail import read_slot, read_state
from headgate_tables.errors import (
    DeposedError,
    ForeignWriterError,
    OutcomeUnknownError,
    StoreFullError,
    TableOwnedError,
    TransactionError,
)
from headgate_tables.face.files import WriteStatus
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.place import place
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.storage.store import FolderListing, Outcome, Store
from headgate_tables.system import SystemIds
from support.faults import FailingStore, InPlaceStore
from support.handles import open_on
from support.splitting import split
from support.systems import SetClock, system
from support.tables import by_hudi_rs, create, notes, rows

HERE = hudi.OwnerProcess("cluster", "testhost", 1, "localhost:7070")
THERE = hudi.OwnerProcess("cluster", "otherhost", 2, "localhost:7171")


class Noting(FailingStore):
    """Notes the folders that are listed, and which of them whole."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, SystemIds())
        self.listed: list[str] = []
        self.whole: list[str] = []

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        self.listed.append(folder)
        if after is None:
            self.whole.append(folder)
        return super().list_folder(folder, after=after, sizes=sizes)


class NotingInPlace(Noting, InPlaceStore):
    """The same without a stage."""


@pytest.fixture(params=[Noting, NotingInPlace], ids=["staged", "in place"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Noting:
    create(tmp_path, system=system())
    made: Noting = request.param(tmp_path / "table")
    return made


def opened(store: Store, owner: hudi.OwnerProcess | None = HERE, clock: SetClock | None = None) -> hudi.Table:
    return open_on(store, system(clock), owner=owner)


def written(store: Store, table: hudi.Table, instant: str, *entries: tuple[str, int, str], **options: Any) -> list[WriteStatus]:
    """What a writer of the table's cluster makes of upserts."""
    assert table.definition is not None
    writer = ChangeWriter(store, table.definition, epoch=table.epoch, process="7" * 32, ordinal=0)
    changes = split(place(rows(*entries, **options), None, table.definition))
    return writer.write(instant, changes, [1] * len(changes), block_format="parquet")


def checkpoint_of(store: Store, table: hudi.Table, *entries: tuple[str, int, str], **options: Any) -> hudi.Transaction:
    """Announced, its files written and added."""
    transaction = table.transaction(tidy=False)
    transaction.announce()
    transaction.add(written(store, table, transaction.instant, *entries, **options))
    return transaction


def files_of(store: Store, instant: str) -> list[str]:
    """Everything under the instant that a sweep has to remove, from data files to the timeline."""
    stages = [f"{LOG_LAYOUT.stages}/{folder}" for folder in store.list_folder(LOG_LAYOUT.stages).folders]
    folders = [f"{stage}/{process}" for stage in stages for process in store.list_folder(stage).folders]
    found = [f"{folder}/{name}" for folder in ["p", TIMELINE_FOLDER, *folders] for name in store.list_folder(folder).files]
    return [path for path in found if instant in path]


def kinds(store: Store) -> list[SlotKind]:
    return [read_slot(store, LOG_LAYOUT, n)[0].kind for n in range(len(store.list_folder(LOG_LAYOUT.slots).files))]


# --- owning ---


def test_own_fences_once_and_says_which_epoch(store: Noting) -> None:
    first = opened(store)
    assert first.epoch == 0
    assert (first.own(), first.own(), first.epoch) == (1, 1, 1)
    second = opened(store, THERE)
    assert (second.epoch, second.own(), second.epoch) == (1, 2, 2)
    assert read_state(store, LOG_LAYOUT)[0].owner == THERE
    assert kinds(store) == [SlotKind.CONFIG, SlotKind.FENCE, SlotKind.FENCE]
    for call in (first.tidy, lambda: first.win_offsets({"c": ChannelRecord(1, 0, "me", 1)})):
        with pytest.raises(DeposedError):
            call() or first.win_offsets({"c": ChannelRecord(1, 0, "me", 1)})


def test_the_library_keeps_away_from_a_clusters_table_and_says_where_to_connect(store: Noting, tmp_path: Path) -> None:
    opened(store).own()
    url = f"file://{tmp_path}/table"
    with pytest.raises(TableOwnedError, match=r"cluster at localhost:7070.*headgate\.connect\('localhost:7070'\)"):
        hudi.open_table(url, system=system()).upsert(rows(("a", 1, "x")))
    assert hudi.open_table(url).scan().to_table().num_rows == 0
    hudi.open_table(url, take_over=True, system=system()).upsert(rows(("a", 1, "x")))
    assert opened(store).own() == 3


def test_t6_owning_puts_in_place_what_a_predecessor_won(store: Noting) -> None:
    first = opened(store)
    transaction = checkpoint_of(store, first, ("a", 1, "won"))
    real = store.create

    def create_file(path: str, content: Any, *, durable: bool) -> Outcome:
        if path.startswith(TIMELINE_FOLDER):
            raise StoreFullError("full", fix="Make room.")
        return real(path, content, durable=durable)

    store.create = create_file  # type: ignore[method-assign]
    with pytest.raises(OutcomeUnknownError):
        transaction.commit()
    store.create = real  # type: ignore[method-assign]
    second = opened(store, THERE)
    assert second.own() == 2
    assert notes(hudi.open_table(second.url)) == {"a": "won"}


def test_ro6_a_handle_that_only_commits_lists_no_data_folder(store: Noting) -> None:
    table = opened(store)
    checkpoint_of(store, table, ("a", 1, "a")).commit()
    successor = opened(store, THERE)
    store.listed.clear()
    successor.own()
    checkpoint_of(store, successor, ("a", 2, "a2"), ("b", 2, "b2")).commit()
    checkpoint_of(store, successor, ("c", 2, "c2"), part="q").commit()
    assert [folder for folder in store.listed if not folder.startswith(".hoodie")] == []
    assert {(row["id"], row["note"]) for row in by_hudi_rs(table.url)} == {("a", "a2"), ("b", "b2"), ("c", "c2")}
    assert hudi.open_table(table.url).verify().ok


def test_a_successor_lists_the_timeline_whole_once(store: Noting) -> None:
    """Rows wait for it, and a timeline that keeps many commits takes an object store many requests."""
    table = opened(store)
    for number in range(6):
        last = checkpoint_of(store, table, ("a", number, f"a{number}")).commit()
    store.whole.clear()
    successor = opened(store, THERE)
    successor.own()
    assert successor.left_commit is not None
    assert successor.left_commit.instant == last.instant
    assert store.whole.count(TIMELINE_FOLDER) == 1
    assert notes(hudi.open_table(table.url)) == {"a": "a5"}


# --- checkpoints ---


def test_p3_announcing_shows_requested_and_inflight_and_nothing_else(store: Noting) -> None:
    table = opened(store)
    transaction = table.transaction(tidy=False)
    assert files_of(store, transaction.instant) == []
    for _ in range(2):
        transaction.announce()
        assert sorted(files_of(store, transaction.instant)) == [
            f"{TIMELINE_FOLDER}/{transaction.instant}.deltacommit.{state}" for state in ("inflight", "requested")
        ]
    transaction.rollback()
    with pytest.raises(TransactionError):
        transaction.announce()


def test_f1_a_checkpoint_is_not_announced_on_a_table_that_another_program_wrote(store: Noting) -> None:
    table = opened(store)
    transaction = table.transaction()
    store.create(f"{TIMELINE_FOLDER}/20200101000000000.deltacommit.requested", [b""], durable=False)
    with pytest.raises(ForeignWriterError):
        transaction.announce()
    assert files_of(store, transaction.instant) == []


def test_c6_decided_comes_between_the_slot_and_what_readers_see(store: Noting) -> None:
    table = opened(store)
    transaction = checkpoint_of(store, table, ("a", 1, "a"))
    seen: list[tuple[list[str], int]] = []

    def decided() -> None:
        fresh = hudi.open_table(table.url)
        seen.append((list(read_state(store, LOG_LAYOUT)[0].commits), len(fresh.commits())))

    transaction.commit(channels={"c": ChannelRecord(1, 9, "me", 5)}, on_durable=decided)
    assert seen == [([transaction.instant], 0)]
    assert len(table.commits()) == 1
    assert opened(store).channels == table.channels == {"c": ChannelRecord(1, 9, "me", 5)}


def test_ro1_the_files_of_one_checkpoint_are_committed_while_the_next_one_has_some(store: Noting) -> None:
    table = opened(store)
    older = table.transaction(tidy=False)
    older.announce()
    younger = checkpoint_of(store, table, ("a", 1, "younger"), ("b", 1, "b"))
    older.add(written(store, table, older.instant, ("a", 1, "older")))
    older.commit()
    assert notes(hudi.open_table(table.url)) == {"a": "older"}
    table.tidy()
    younger.commit()
    assert notes(hudi.open_table(table.url)) == {"a": "younger", "b": "b"}
    assert table.verify().ok


def test_ro5_an_announced_instant_that_gets_no_rows_lapses_and_its_offsets_are_committed_alone(store: Noting) -> None:
    table = opened(store)
    empty, full = table.transaction(), checkpoint_of(store, table, ("a", 1, "a"))
    empty.announce()
    decided: list[dict[str, ChannelRecord]] = []
    one = {"c": ChannelRecord(1, 9, "me", 5)}
    result = empty.commit(channels=one, on_durable=lambda: decided.append(dict(opened(store).channels)))
    assert (result.instant, decided) == ("", [one])
    full.commit()
    assert [instant.instant for instant in table.commits()] == [full.instant]
    assert opened(store).channels == one
    assert not [path for path in files_of(store, empty.instant) if f"/{empty.instant}_" in path], "it is never completed"
    assert table.verify().ok


def test_ro5_offsets_are_committed_between_checkpoints_and_beside_an_open_one(store: Noting) -> None:
    table = opened(store)
    table.win_offsets({"a": ChannelRecord(1, 0, "me", 1), "b": ChannelRecord(1, 0, "me", 1)})
    transaction = checkpoint_of(store, table, ("a", 1, "a"))
    table.win_offsets({"c": ChannelRecord(1, 0, "you", 2)}, forget=["b"])
    transaction.commit(channels={"a": ChannelRecord(1, 5, "me", 3)})
    assert opened(store).channels == {"a": ChannelRecord(1, 5, "me", 3), "c": ChannelRecord(1, 0, "you", 2)}
    assert [instant.instant for instant in table.commits()] == [transaction.instant]
    assert table.verify().ok


# --- aborts ---


def test_ro4_an_aborted_checkpoints_instant_is_dead_from_the_next_slot_on(store: Noting) -> None:
    table = opened(store)
    transaction = checkpoint_of(store, table, ("a", 1, "aborted"))
    transaction.rollback()
    again = checkpoint_of(store, table, ("a", 1, "again"))
    assert again.instant > transaction.instant
    assert transaction.instant not in read_state(store, LOG_LAYOUT)[0].dead
    again.commit()
    assert transaction.instant in read_state(store, LOG_LAYOUT)[0].dead
    assert notes(hudi.open_table(table.url)) == {"a": "again"}


def test_tidying_removes_what_aborted_checkpoints_left_and_touches_no_open_one(store: Noting) -> None:
    table = opened(store)
    checkpoint_of(store, table, ("z", 1, "z")).commit()
    kept = checkpoint_of(store, table, ("a", 1, "kept"))
    aborted = table.transaction(tidy=False)
    aborted.announce()
    unreported = written(store, table, aborted.instant, ("a", 1, "aborted"))
    assert unreported
    aborted.rollback()
    assert len(files_of(store, aborted.instant)) >= 3
    open_files = files_of(store, kept.instant)
    table.tidy()
    assert files_of(store, aborted.instant) == []
    assert files_of(store, kept.instant) == open_files
    kept.commit()
    assert notes(hudi.open_table(table.url)) == {"z": "z", "a": "kept"}
    assert table.verify().ok


def test_d1_names_are_in_a_slot_before_their_files_go(store: Noting, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(store)
    checkpoint_of(store, table, ("z", 1, "z")).commit()
    aborted = table.transaction(tidy=False)
    aborted.announce()
    written(store, table, aborted.instant, ("a", 1, "aborted"))
    aborted.rollback()
    real = store.delete

    def delete(paths: Sequence[str]) -> None:
        named = read_state(store, LOG_LAYOUT)[0].dead.get(aborted.instant) or []
        paths = list(paths)
        assert set(paths) <= set(named), "deleted, and no slot had named it"
        real(paths)

    monkeypatch.setattr(store, "delete", delete)
    table.tidy()
    assert files_of(store, aborted.instant) == []


def test_files_that_a_paused_writer_leaves_later_are_swept_with_the_next_fold(
    store: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 4)
    table = opened(store)
    checkpoint_of(store, table, ("z", 1, "z")).commit()
    aborted = table.transaction(tidy=False)
    aborted.announce()
    aborted.rollback()
    table.tidy()
    written(store, table, aborted.instant, ("a", 1, "zombie"))
    if not store.stages:
        store.create(f"{TIMELINE_FOLDER}/{aborted.instant}.deltacommit.requested", [b""], durable=False)
    for number in range(4):
        table.win_offsets({"c": ChannelRecord(1, number, "me", number)})
    table.tidy()
    assert files_of(store, aborted.instant) == []
    assert notes(hudi.open_table(table.url)) == {"z": "z"}


def test_a_dead_instant_is_looked_for_as_long_as_a_paused_writer_may_show_it(
    store: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sweeps that find nothing do not end that, time does: ``headgate.log.retire.after``, an hour unless it is set."""
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 1)
    table = opened(store)
    checkpoint_of(store, table, ("z", 1, "z")).commit()
    aborted = table.transaction(tidy=False)
    aborted.announce()
    aborted.rollback()
    for number in range(3):
        table.tidy()
        table.win_offsets({"c": ChannelRecord(1, number, "me", number)})
    assert aborted.instant in read_state(store, LOG_LAYOUT)[0].dead
    written(store, table, aborted.instant, ("a", 1, "zombie"))
    if not store.stages:
        store.create(f"{TIMELINE_FOLDER}/{aborted.instant}.deltacommit.requested", [b""], durable=False)
    table.tidy()
    assert files_of(store, aborted.instant) == []
    assert notes(hudi.open_table(table.url)) == {"z": "z"}


@pytest.mark.parametrize(("setting", "goes"), [(None, False), ("3600", False), ("0", True)])
def test_slots_stay_for_the_time_that_the_table_is_set_to(
    store: Noting, monkeypatch: pytest.MonkeyPatch, setting: str | None, *, goes: bool
) -> None:
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 2)
    table = opened(store)
    table.configure({"headgate.log.retire.after": setting})
    for number in range(6):
        table.win_offsets({"c": ChannelRecord(1, number, "me", number)})
        table.tidy()
    slots = sorted(int(name) for name in store.list_folder(LOG_LAYOUT.slots).files)
    assert read_state(store, LOG_LAYOUT)[0].folded > 2
    assert (len(slots) < slots[-1] + 1) == goes
    assert slots[0] == 0


def test_tidying_folds_when_it_is_due_and_keeps_the_open_checkpoint(store: Noting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 3)
    table = opened(store)
    checkpoint_of(store, table, ("z", 1, "z")).commit(channels={"c": ChannelRecord(1, 1, "me", 1)})
    transaction = checkpoint_of(store, table, ("a", 1, "a"))
    table.win_offsets({"d": ChannelRecord(1, 0, "me", 1)})
    before = read_state(store, LOG_LAYOUT)[0]
    assert before.folded == -1
    table.tidy()
    after = read_state(store, LOG_LAYOUT)[0]
    assert after.folded == before.n
    assert transaction.instant in after.reserved
    transaction.commit(channels={"c": ChannelRecord(1, 2, "me", 2)})
    assert opened(store).channels == {"c": ChannelRecord(1, 2, "me", 2), "d": ChannelRecord(1, 0, "me", 1)}
    assert notes(hudi.open_table(table.url)) == {"z": "z", "a": "a"}


def test_beginning_without_tidying_leaves_sweep_and_fold_to_the_caller(store: Noting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 1)
    first = opened(store)
    checkpoint_of(store, first, ("z", 1, "z")).commit()
    lost = checkpoint_of(store, first, ("a", 1, "lost"))
    second = opened(store, THERE)
    transaction = checkpoint_of(store, second, ("b", 1, "b"))
    assert files_of(store, lost.instant)
    assert read_state(store, LOG_LAYOUT)[0].folded == -1
    transaction.commit()
    second.tidy()
    assert files_of(store, lost.instant) == []
    assert read_state(store, LOG_LAYOUT)[0].folded > 0
    assert notes(hudi.open_table(second.url)) == {"z": "z", "b": "b"}


def test_an_owner_that_leaves_an_object_store_folds_many_slots_for_the_next_one(store: Noting) -> None:
    """Which would ask for each of them, while rows wait. On a disk it reads them at once, and a fold would sync files."""
    table = opened(store)
    checkpoint_of(store, table, ("z", 1, "z")).commit()
    table.hand_over()
    assert read_state(store, LOG_LAYOUT)[0].folded == -1, "too few to be worth it"
    for number in range(8):
        table.win_offsets({"c": ChannelRecord(1, number, "me", number)})
    table.hand_over()
    state, slots = read_state(store, LOG_LAYOUT)
    assert (state.folded, len(slots)) == ((-1, state.n + 1) if store.stages else (state.n, 0))
    after = opened(store)
    after.own()
    assert after.channels["c"].offset == 7
    assert notes(after) == {"z": "z"}
