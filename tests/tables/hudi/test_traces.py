"""Traces on paper that lost, doubled or hid rows: two processes, pauses at any line."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog import claim
from headgate_tables.commitlog.bodies import Dead
from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.publish import derived_files
from headgate_tables.commitlog.records import ChannelRecord, OwnerProcess
from headgate_tables.commitlog.tail import read_state
from headgate_tables.commitlog.times import format_time
from headgate_tables.errors import (
    DeposedError,
    ForeignWriterError,
    MetadataTableError,
    ReopenTable,
    StoreUnavailableError,
    TableOwnedError,
    TransactionError,
)
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse, render
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.hudi.view import FileSystemView
from headgate_tables.storage.store import FolderListing, Outcome
from support.systems import FaultyStore, SetClock, system
from support.tables import create, keys, rows
from support.traces import InPlaceStore, agree, busy, data_files, opened, slots, timeline

FORGET_AFTER_MS = round(TableSettings().retire_after * 1000)


# --- two processes, and pauses of one of them ---


def test_d1_a_deposed_process_does_not_remove_the_stages_that_its_successors_need(tmp_path: Path) -> None:
    """B fences and pauses; C fences, wins a slot and dies before the links; D fences and renames C's stage; B wakes up."""
    create(tmp_path, system=system()).upsert(rows(("a", 1, "A")))
    b, c, d = (opened(tmp_path) for _ in "bcd")
    real_b, link_all = b._store.list_folder, c._store.link_all

    def killed(names: Iterable[tuple[str, str]]) -> list[Outcome | None]:
        pairs = list(names)
        if c._opened.log is not None and any(source.startswith(f"{LOG_LAYOUT.stages}/{c.epoch}/") for source, _ in pairs):
            raise KeyboardInterrupt("killed")
        return link_all(pairs)

    def b_sleeps(folder: str, *, after: str | None = None) -> FolderListing:
        if (
            folder == LOG_LAYOUT.stages
            and b._opened.log is not None
            and b._opened.log.owned
            and not b._opened.log._claim.unpublished
        ):
            b._store.list_folder = real_b  # type: ignore[method-assign]
            c._store.link_all = killed  # type: ignore[method-assign]
            with pytest.raises(KeyboardInterrupt, match="killed"):
                c.upsert(rows(("a", 2, "C")))
            d._store.link_all = killed  # type: ignore[method-assign]
            with pytest.raises(KeyboardInterrupt, match="killed"):
                d.upsert(rows(("a", 3, "D")))
        return real_b(folder, after=after)

    b._store.list_folder = b_sleeps  # type: ignore[method-assign]
    with pytest.raises(DeposedError, match="took the table over"):
        b.upsert(rows(("a", 4, "B")))
    assert b._store.list_folder == real_b, "B never came to the stages"
    last = opened(tmp_path)
    last.upsert(rows(("z", 1, "last")))
    assert agree(last) == {"a": "C", "z": "last"}


def test_g1_a_revoked_stage_goes_only_when_what_was_won_in_it_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that the links are in is not synced until then, and the staged names are the other way to the bytes."""
    create(tmp_path).upsert(rows(("a", 1, "x")))
    successor = opened(tmp_path)
    steps: list[str] = []
    sync, delete_folder = successor._store.sync, successor._store.delete_folder

    def noted_sync(paths: Sequence[str], folders: Sequence[str]) -> None:
        steps.extend(f"sync {folder}" for folder in folders)
        sync(paths, folders)

    def noted_delete(folder: str) -> None:
        steps.append("delete" if folder.startswith(f"{LOG_LAYOUT.stages}/1.revoked") else folder)
        delete_folder(folder)

    monkeypatch.setattr(successor._store, "sync", noted_sync)
    monkeypatch.setattr(successor._store, "delete_folder", noted_delete)
    successor.upsert(rows(("b", 1, "x")))
    assert "sync p" in steps[: steps.index("delete")]


def test_a_dead_instant_that_a_paused_process_shows_after_hours_is_ours_and_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its request was on the way for so long, so that it could not ask any more who owns the table."""
    monkeypatch.setattr(claim, "OWNERSHIP_TRUSTED_S", math.inf)
    clock = SetClock()
    create(tmp_path, system=system(clock))
    sleeper = opened(tmp_path, clock=clock)
    transaction = sleeper.transaction()
    opened(tmp_path, clock=clock).upsert(rows(("a", 1, "x")))
    for _ in range(3):
        clock.now += FORGET_AFTER_MS
        opened(tmp_path, clock=clock).upsert(rows(("a", 1, "y")))
    transaction.upsert(rows(("b", 1, "late")))
    with pytest.raises(DeposedError, match="took the table over"):
        transaction.commit()
    assert f"{transaction.instant}.deltacommit.requested" in timeline(tmp_path)
    table = opened(tmp_path, clock=clock)
    table.upsert(rows(("c", 1, "x")))
    assert f"{transaction.instant}.deltacommit.requested" not in timeline(tmp_path)
    assert agree(table) == {"a": "y", "c": "x"}


def test_names_given_up_are_in_one_slot_only_and_are_forgotten_in_the_end(tmp_path: Path) -> None:
    clock = SetClock()
    table = create(tmp_path, system=system(clock))
    for number in range(4):
        transaction = table.transaction()
        transaction.upsert(rows((f"k{number}", 1, "x")))
        transaction.rollback()
        table.upsert(rows(("a", number, "x")))
    buried = [
        name for slot in slots(table) if isinstance(slot.body, Dead) for names in slot.body.named.values() for name in names
    ]
    assert len(buried) == len(set(buried)) == 8
    clock.now += FORGET_AFTER_MS + 1_000
    opened(tmp_path, clock=clock).upsert(rows(("b", 1, "x")))
    state = read_state(table._store, LOG_LAYOUT)[0]
    assert transaction.instant in state.gone
    assert transaction.instant not in state.dead


@pytest.mark.parametrize("idle_ms", [0, 4_000, 61_000, 3 * FORGET_AFTER_MS])
def test_f1_a_foreign_instant_from_while_the_handle_was_idle_is_noticed(tmp_path: Path, idle_ms: int) -> None:
    clock = SetClock()
    table = create(tmp_path, system=system(clock))
    table.upsert(rows(("a", 1, "x")))
    foreign = format_time(clock.now + idle_ms // 2 + 10)
    clock.now += idle_ms + 20
    (tmp_path / "table" / TIMELINE_FOLDER / f"{foreign}.commit.requested").touch()
    before = timeline(tmp_path)
    for _ in range(2):
        with pytest.raises(ForeignWriterError, match=foreign):
            table.upsert(rows(("b", 1, "x")))
    assert timeline(tmp_path) == before, "an instant of ours stands in the other program's way"


def test_f1_an_instant_of_ours_that_another_program_completed_is_noticed(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    transaction = table.transaction()
    transaction.upsert(rows(("b", 1, "x")))
    completed = f"{transaction.instant}_{int(transaction.instant) + 5}.deltacommit"
    (tmp_path / "table" / TIMELINE_FOLDER / completed).write_bytes(b"{}")
    with pytest.raises(ForeignWriterError, match=transaction.instant):
        transaction.commit()


def test_f1_a_foreign_instant_of_a_clock_that_is_a_little_behind_is_noticed(tmp_path: Path) -> None:
    clock = SetClock()
    table = create(tmp_path, system=system(clock))
    for number in range(3):
        clock.now += 1_000
        table.upsert(rows(("a", number, "x")))
    foreign = format_time(clock.now - 1_500)
    (tmp_path / "table" / TIMELINE_FOLDER / f"{foreign}.commit.requested").touch()
    with pytest.raises(ForeignWriterError, match=foreign):
        table.upsert(rows(("b", 1, "x")))


def test_f1_a_foreign_instant_from_while_the_handle_fenced_is_noticed(tmp_path: Path) -> None:
    clock = SetClock()
    create(tmp_path, system=system(clock)).upsert(rows(("a", 1, "x")))
    table = opened(tmp_path, clock=clock)
    foreign = "20270115080000500"

    def begins(path: str) -> None:
        if "/slot/" in path:
            (tmp_path / "table" / TIMELINE_FOLDER / f"{foreign}.commit.requested").touch()
            clock.now += 1_000

    clock.now += 100
    table._store.before_create = begins  # type: ignore[attr-defined]
    with pytest.raises(ForeignWriterError, match=foreign):
        table.upsert(rows(("b", 1, "x")))


def test_properties_that_change_while_they_are_checked_are_checked_again(tmp_path: Path) -> None:
    create(tmp_path)
    table = opened(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    path = tmp_path / "table" / PROPERTIES_PATH
    real = table._store.get
    touched = parse(path.read_bytes(), "") | {"hoodie.touched": "1"}
    path.write_bytes(render(touched, "Updated"))

    def get(name: str) -> Any:
        found = real(name)
        if name == PROPERTIES_PATH:
            table._store.get = real  # type: ignore[method-assign]
            path.write_bytes(render(touched | {"hoodie.table.metadata.partitions": "files"}, "Updated by Spark"))
        return found

    table._store.get = get  # type: ignore[method-assign]
    with pytest.raises(MetadataTableError, match="metadata table"):
        table.upsert(rows(("b", 1, "x")))


def test_only_an_owner_removes_a_metadata_table(tmp_path: Path) -> None:
    table = create(tmp_path)
    CommitLog(table._store, LOG_LAYOUT, system(), OwnerProcess("cluster", "testhost", 2, "localhost:7070")).own()
    path = tmp_path / "table" / PROPERTIES_PATH
    path.write_bytes(render(parse(path.read_bytes(), "") | {"hoodie.table.metadata.partitions": "files"}, "Updated"))
    (tmp_path / "table/.hoodie/metadata/files").mkdir(parents=True)
    before = path.read_bytes()
    with pytest.raises(TableOwnedError, match="belongs to the cluster"):
        opened(tmp_path, metadata_table="remove").upsert(rows(("a", 1, "x")))
    assert path.read_bytes() == before
    assert (tmp_path / "table/.hoodie/metadata/files").exists()
    opened(tmp_path, metadata_table="remove", take_over=True).upsert(rows(("a", 1, "x")))
    assert path.read_bytes() != before
    assert not (tmp_path / "table/.hoodie/metadata").exists()


# --- one process ---


@pytest.mark.parametrize("first", ["older", "newer"])
def test_a_group_that_has_a_log_of_the_transaction_gets_no_base_file_of_it(tmp_path: Path, first: str) -> None:
    """A base file counts as older than the logs of its instant: the call that came first would win."""
    table = create(tmp_path, buckets=1, ordering=None)
    older, newer = table.transaction(), table.transaction()
    kept, given_up = (newer, older) if first == "older" else (older, newer)
    given_up.upsert(rows(("b", 1, "given up")))
    kept.upsert(rows(("a", 1, "first")))
    kept.delete(keys(("c", 1)))
    given_up.rollback()
    kept.upsert(rows(("a", 1, "second"), ("c", 1, "second")))
    kept.commit()
    assert agree(table) == {"a": "second", "c": "second"}


def test_ro2_the_later_transaction_wins_also_after_an_older_one_lapsed(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1, ordering=None)
    unused, second = table.transaction(), table.transaction()
    second.upsert(rows(("a", 1, "second")))
    unused.commit()
    third = table.transaction()
    third.upsert(rows(("a", 1, "third")))
    second.commit()
    third.commit()
    assert agree(table) == {"a": "third"}


def test_ro4_an_instant_under_which_others_wrote_is_not_given_out_again(tmp_path: Path) -> None:
    source, table = create(tmp_path / "source"), create(tmp_path)
    with source.transaction() as written:
        written.upsert(rows(("a", 1, "x")))
    first = table.transaction()
    first.add(written.statuses)
    first.rollback()
    second = table.transaction()
    assert second.instant > first.instant
    second.announce()  # on the timeline, and nobody has written yet
    second.rollback()
    assert table.transaction().instant > second.instant


def test_p1_the_completed_instant_is_the_last_file_that_a_commit_puts_in_place(tmp_path: Path) -> None:
    table = create(tmp_path)
    for part in ("p", "q"):
        table.upsert(rows(("a", 1, "x"), part=part))
        names = [path for path, _ in derived_files(slots(table)[-1])]
        assert f"{part}/.hoodie_partition_metadata" in names[:-1]
        assert names[-1].endswith(".deltacommit")
        assert "_" in names[-1]


def test_ro5_offsets_without_rows_publish_no_instant(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.transaction().commit(channels={"c": ChannelRecord(1, 7, "me", 1)})
    assert timeline(tmp_path) == []
    assert read_state(table._store, LOG_LAYOUT)[0].channels == {"c": ChannelRecord(1, 7, "me", 1)}
    table.upsert(rows(("a", 1, "x")))
    assert agree(table) == {"a": "x"}


@pytest.mark.parametrize("store", [FaultyStore, InPlaceStore])
def test_w1_a_transaction_of_which_a_write_failed_does_not_commit(tmp_path: Path, store: type[FaultyStore]) -> None:
    """Files of the failed write may lie there under its instant, and no commit would list them."""
    create(tmp_path, buckets=8)
    table = opened(tmp_path, store)
    table.upsert(rows(("z", 1, "x")))
    transaction = table.transaction()
    transaction.upsert(rows(("a", 1, "x")))
    lost: list[str] = []

    def loses_one(path: str) -> Outcome | None:
        if path.startswith("p/") and not lost:
            lost.append(path)
        return Outcome.UNKNOWN if path in lost else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table._store, "before_create", loses_one)
        if store is FaultyStore:
            patch.setattr(table._store, "stage", busy)
        with pytest.raises(StoreUnavailableError, match=r"busy|did not say"):
            transaction.upsert(rows(*((f"k{n}", 1, "x") for n in range(40))))
    assert bool(data_files(table, transaction.instant)) is (store is InPlaceStore)
    for attempt in (transaction.commit, lambda: transaction.upsert(rows(("b", 1, "x")))):
        with pytest.raises(TransactionError, match="Roll back"):
            attempt()
    transaction.rollback()
    table.upsert(rows(("c", 1, "x")))
    assert data_files(table, transaction.instant) == []
    assert agree(table) == {"z": "x", "c": "x"}


def test_a_transaction_that_could_not_begin_leaves_nothing_open(tmp_path: Path) -> None:
    create(tmp_path).upsert(rows(("a", 1, "x")))
    table = opened(tmp_path)
    real = table._store.list_folder
    table._store.list_folder = lambda folder, **options: busy() if folder == "p" else real(folder, **options)  # type: ignore[method-assign]
    for _ in range(3):
        with pytest.raises(StoreUnavailableError, match=r"busy|did not say"):
            table.upsert(rows(("b", 1, "x")))
    table._store.list_folder = real  # type: ignore[method-assign]
    table.upsert(rows(("b", 1, "x")))
    assert agree(table) == {"a": "x", "b": "x"}


def test_a_transaction_does_not_outlive_its_closed_table(tmp_path: Path) -> None:
    table = create(tmp_path)
    transaction = table.transaction()
    transaction.upsert(rows(("a", 1, "x")))
    table.close()
    with pytest.raises(ReopenTable, match="closed"):
        transaction.commit()
    with pytest.raises(ReopenTable, match="closed"):
        table.upsert(rows(("a", 1, "x")))
    assert hudi.open_table(table.url).commits() == []


def test_an_interrupt_while_the_view_takes_a_commit_in_hides_none_of_its_rows(tmp_path: Path) -> None:
    writer, reader = create(tmp_path, buckets=1), opened(tmp_path)
    writer.upsert(rows(("a", 1, "x")))
    assert reader.scan().to_table().num_rows == writer.scan().to_table().num_rows == 1
    for number, interrupted in enumerate([lambda: reader.scan(), lambda: writer.upsert(rows(("c", 1, "x")))]):
        writer.upsert(rows(("b", number, "x")))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FileSystemView, "add_files", killed)
            with pytest.raises(KeyboardInterrupt, match="killed"):
                interrupted()
    assert agree(writer) == {"a": "x", "b": "x", "c": "x"}
    assert reader.scan().to_table().num_rows == writer.scan().to_table().num_rows == 3


def killed(*arguments: object) -> None:
    raise KeyboardInterrupt("killed")
