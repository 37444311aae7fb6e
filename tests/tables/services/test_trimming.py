"""Cleaning and archiving of a table: what is decided before anything goes, in which order it goes, and what holds it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.tail import read_state
from headgate_tables.commitlog.times import format_time
from headgate_tables.errors import ForeignWriterError, StoreFullError
from headgate_tables.hudi.leases import GRACE_MS, LEASE_FOLDER, take_lease
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.services.retention import trimming
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.hudi.timeline.history import archived_completions, archived_metadata, obsolete_history
from headgate_tables.hudi.timeline.history_files import HistoryFolder
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER, State
from headgate_tables.system import SystemIds
from support.systems import SetClock, system
from support.tables import SHORT, create, notes, rows


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def table(tmp_path: Path, clock: SetClock) -> hudi.Table:
    """One group, compacted twice, with a commit before and after each compaction."""
    made = create(tmp_path, buckets=1, system=system(clock))
    made.configure(SHORT)
    for number in range(3):
        clock.now += 1_000
        write(made, number)
        if number < 2:
            write(made, number)
            assert made.compact().completion
    return made


def write(table: hudi.Table, number: int) -> None:
    table.upsert(rows(("a", number, f"note {number}"), (f"only {number}", number, "x")))


def history(table: hudi.Table) -> dict[str, str]:
    return archived_completions(table._store, table._opened.layout.history_folder)


def completed(table: hudi.Table) -> dict[str, str]:
    return {each.time: each.completion for each in list_instants(table._store) if each.state is State.COMPLETED}


def data_files(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "table" / "p").iterdir() if not path.name.startswith(".hoodie")}


def noting_deletes(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the table's store deletes from now on, in order."""
    deleted: list[str] = []
    real = table._store.delete

    def delete(paths: Iterable[str]) -> None:
        paths = list(paths)
        deleted.extend(paths)
        real(paths)

    monkeypatch.setattr(table._store, "delete", delete)
    return deleted


def foreign(tmp_path: Path, clock: SetClock) -> None:
    (tmp_path / "table" / TIMELINE_FOLDER / f"{format_time(clock.now + 500)}.commit.requested").touch()


# --- archiving ---


def test_what_leaves_the_timeline_is_in_the_history_with_its_completion_time_and_metadata(table: hudi.Table) -> None:
    before = {each.time: each for each in list_instants(table._store) if each.state is State.COMPLETED}
    contents = {time: table._store.get(each.path).to_pybytes() for time, each in before.items()}
    wanted = notes(table)
    archived = table.archive().instants
    assert archived
    assert history(table) == {time: before[time].completion for time in archived}
    found = archived_metadata(table._store, table._opened.layout.history_folder, archived)
    assert found == {time: contents[time] for time in archived}
    assert not completed(table).keys() & set(archived)
    with hudi.open_table(table.url) as another:
        assert notes(another) == wanted
        assert another.verify().ok


def test_the_plan_of_a_compaction_is_in_the_history_too(table: hudi.Table) -> None:
    [requested, *_] = [
        each for each in list_instants(table._store) if each.action == "compaction" and each.state is State.REQUESTED
    ]
    plan = table._store.get(requested.path).to_pybytes()
    assert plan
    assert requested.time in table.archive().instants
    folder = HistoryFolder(table._store, table._opened.layout.history_folder)
    stored = [
        row for file in folder.named(folder.names()).files for row in folder.read(file.name, ["instantTime", "plan"]).to_pylist()
    ]
    assert {row["instantTime"]: row["plan"] for row in stored}[requested.time] == plan


def test_nothing_leaves_the_timeline_when_the_history_cannot_be_written(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, slots = completed(table), read_state(table._store, LOG_LAYOUT)[0].n

    def full(*_: object) -> None:
        raise StoreFullError("full", fix="Free space.")

    with monkeypatch.context() as patch:
        patch.setattr(trimming, "append_history", full)
        with pytest.raises(StoreFullError):
            table.archive()
    assert read_state(table._store, LOG_LAYOUT)[0].n == slots
    assert completed(table) == before
    assert table.archive().instants


def test_the_oldest_instant_goes_first_and_of_each_the_pending_files(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped anywhere, what is left is the timeline's newest part, whole: no completed instant is ever pending again, and none
    is missing between two that are there.
    """
    deleted = noting_deletes(table, monkeypatch)
    archived = table.archive().instants
    names = [path.rpartition("/")[2] for path in deleted if path.startswith(f"{TIMELINE_FOLDER}/2")]
    order = [(name[:17], "_" in name) for name in names]
    assert order == sorted(order)
    assert [time for time, is_completed in order if is_completed] == list(archived)
    assert len(order) == 3 * len(archived)


def test_files_of_the_history_that_nobody_needs_go_with_the_next_archiving(table: hudi.Table, clock: SetClock) -> None:
    folder = table._opened.layout.history_folder
    for number in range(10, 18):
        clock.now += 1_000
        write(table, number)
        table.compact()
        table.clean()
        assert table.archive().instants
        assert len(obsolete_history(table._store, folder)) <= 1
    assert len([name for name in table._store.list_folder(folder).files if name.startswith("manifest_")]) <= 4


def test_a_table_that_another_program_has_written_is_neither_archived_nor_cleaned(
    table: hudi.Table, tmp_path: Path, clock: SetClock
) -> None:
    before, files = completed(table), data_files(tmp_path)
    foreign(tmp_path, clock)
    for service in (table.archive, table.clean):
        with pytest.raises(ForeignWriterError):
            service()
    assert completed(table) == before
    assert data_files(tmp_path) == files
    assert history(table) == {}


def test_the_owners_timeline_ends_with_what_was_archived(table: hudi.Table) -> None:
    first = table.archive()
    assert first.left == len(completed(table))
    assert table.archive().instants == ()


# --- cleaning ---


def test_a_step_of_maintenance_archives_a_bounded_number_of_instants(
    tmp_path: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A savepoint had held them back; checkpoints wait for each step."""
    monkeypatch.setattr(trimming, "ARCHIVED_AT_ONCE", 8)
    made = create(tmp_path, buckets=1, system=system(clock))
    made.configure(SHORT)
    made.upsert(rows(("a", 0, "saved")))
    saved = made.savepoint("before")
    for number in range(1, 30):
        clock.now += 1_000
        write(made, number)
        if number % 10 == 0:
            made.compact()
    while made.maintain().more:
        pass
    assert len(history(made)) <= 1
    made.remove_savepoint(saved)
    steps, before = [], len(completed(made))
    while (step := made.maintain()).more:
        steps += [step.did] if step.did.startswith("archived") else []
    assert len(steps) > 2
    assert {int(each.split()[1]) for each in steps} <= set(range(1, 9))
    assert len(completed(made)) < before - 16
    assert made.verify().ok


def test_what_may_go_of_a_table_without_further_commits_is_cleaned_in_time(table: hudi.Table, clock: SetClock) -> None:
    """Also behind another owner, which has made no commits that are counted."""
    table.configure({"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "1"})
    table.close()
    again = hudi.open_table(table.url, system=system(clock))
    write(again, 3)
    while again.maintain().more:
        pass
    folder = Path(table.url.removeprefix("file://")) / "p"
    before = {file.name for file in folder.glob("*.parquet")}
    assert len(before) > 1
    clock.now += 2 * 3_600_000
    while again.maintain().more:
        pass
    assert len({file.name for file in folder.glob("*.parquet")} & before) == 1
    assert notes(again)["a"] == "note 3"


def test_files_that_a_cleaning_decided_on_are_gone_when_it_returns_and_not_chosen_again(
    table: hudi.Table, tmp_path: Path
) -> None:
    before, wanted = data_files(tmp_path), notes(table)
    done = table.clean()
    assert done.files
    assert data_files(tmp_path) == before - {path.rpartition("/")[2] for path in done.files}
    again = table.clean()
    assert again.files == ()
    assert again.instant == ""
    with hudi.open_table(table.url) as another:
        assert notes(another) == wanted
        assert another.verify().ok


def test_what_a_savepoint_needs_stays_until_it_is_removed(table: hudi.Table, clock: SetClock) -> None:
    saved = table.savepoint()
    wanted = notes(table)
    point = next(each.completion for each in table.commits() if each.instant == saved)
    for number in range(20, 24):
        clock.now += 1_000
        write(table, number)
        table.compact()
        table.clean()
    found = {row["id"]: row["note"] for row in table.scan(as_of=point).to_table().to_pylist()}
    assert found == wanted
    held = table.clean(plan_only=True).kept
    assert held
    table.remove_savepoint(saved)
    assert len(table.clean().files) >= held


def test_a_lease_holds_a_slice_also_when_the_same_owner_has_archived_what_replaced_it(tmp_path: Path, clock: SetClock) -> None:
    """The lease is from while the compaction ran: its instant was there, and its files were not yet."""
    made = create(tmp_path, buckets=1, system=system(clock))
    made.configure(SHORT)
    write(made, 0)
    write(made, 1)
    before = data_files(tmp_path)
    compacted = made.compact().instant
    assert made.largest_slice() is not None, "the owner knows the table"
    lease = take_lease(made._store, clock, SystemIds(), point=compacted, seconds=3600, holder="a reader")
    for number in range(6):
        clock.now += 1_000
        made.upsert(rows(("a", number, "x"), part="q"))
    assert compacted in made.archive().instants
    made.clean()
    assert before <= data_files(tmp_path)
    lease.release()
    made.clean()
    assert not before & data_files(tmp_path)


def test_leases_of_readers_that_died_are_dropped(table: hudi.Table, clock: SetClock) -> None:
    with hudi.open_table(table.url, system=system(clock)) as reader:
        lease: Any = reader.lease(seconds=60, holder="a reader that dies")
        assert lease.point
    clock.now += 60_000 + GRACE_MS + 1
    table.clean()
    assert table._store.list_folder(LEASE_FOLDER).files == []
