"""Savepoints, and what a restore to one takes back: rows, files, plans, later savepoints and offsets, never incarnations."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.dead_names import DeadNames
from headgate_tables.commitlog.records import ChannelRecord
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import OptionError, OutcomeUnknownError, StoreDeniedError, TransactionError
from headgate_tables.hudi.definition import ABSENT, Definition
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.services.planning.plans import plan_names
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from support.tables import SHORT, create, notes, rows


def write(table: hudi.Table, note: str, **channels: list[object]) -> str:
    """The instant of a commit of rows a and ``note``."""
    with table.transaction() as transaction:
        transaction.upsert(rows(("a", 1, note), (note, 1, note)))
        transaction.commit(channels=channels)
        return transaction.instant


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """Of commit-time merge, one group; the channel c is at 10 of its first incarnation."""
    made = create(tmp_path, buckets=1, ordering=None)
    write(made, "first")
    write(made, "saved", c=ChannelRecord(1, 10, "me", 1))
    return made


def names_with(tmp_path: Path, instants: Iterable[str]) -> list[str]:
    """Files of the table, timeline and all, that carry one of these instants."""
    wanted = tuple(instants)
    table = tmp_path / "table"
    files = [path for path in table.rglob("*") if path.is_file() and ".headgate" not in path.parts]
    return [str(path.relative_to(table)) for path in files if any(each in path.name for each in wanted)]


def refusing(_: Iterable[str]) -> None:
    raise StoreDeniedError("deletes are denied", fix="Allow them.")


def test_a_restore_that_is_decided_does_not_ask_to_be_sent_again_when_the_store_deletes_nothing(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, point = notes(table), table.savepoint()
    write(table, "later")
    with monkeypatch.context() as patch:
        patch.setattr(table._store, "delete", refusing)
        with pytest.raises(OutcomeUnknownError, match="for good"):
            table.restore(point)
    with hudi.open_table(table.url) as another:
        assert any("not deleted yet" in each.problem for each in another.verify().findings)
        write(another, "new")
        assert notes(another) == {**wanted, "a": "new", "new": "new"}
        assert another.verify().ok


@pytest.mark.parametrize("what", ["a restore", "the end of a savepoint"])
@pytest.mark.parametrize("then", ["a write", "an adoption", "a compaction", "a savepoint"])
def test_who_takes_over_before_a_restore_has_deleted_its_files_goes_on_with_it(
    table: hudi.Table, what: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The instants that it undoes are still on the timeline, and are no other program's."""
    before, point = notes(table), table.savepoint()
    write(table, "later")
    table.compact()
    wanted = before if what == "a restore" else notes(table)

    def crash(_: DeadNames) -> None:
        raise KeyboardInterrupt

    call = table.restore if what == "a restore" else table.remove_savepoint
    with monkeypatch.context() as patch:
        patch.setattr(DeadNames, "delete_given_up", crash)
        with pytest.raises(KeyboardInterrupt):
            call(point)
    with hudi.open_table(table.url) as another:
        match then:
            case "an adoption":
                another.adopt()
            case "a compaction":
                another.compact()
                assert notes(another) == wanted
            case "a savepoint":
                assert (another.savepoint() == point) == (what == "a restore")
        write(another, "new")
        assert notes(another) == {**wanted, "a": "new", "new": "new"}
        assert another.verify().ok


def test_a_savepoint_whose_files_could_not_be_deleted_is_made_again_and_ends_again(
    table: hudi.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = table.savepoint()
    with monkeypatch.context() as patch:
        patch.setattr(table._store, "delete", refusing)
        table.remove_savepoint(point)
    assert table.savepoint() == point
    with hudi.open_table(table.url) as another:
        another.own()
        assert list(another.savepoints) == [point]
        another.remove_savepoint(point)
    with hudi.open_table(table.url) as third:
        write(third, "new")
    assert not [path for path in (tmp_path / "table" / TIMELINE_FOLDER).iterdir() if ".savepoint" in path.name]


def test_what_is_decided_is_done_although_the_store_deletes_nothing_yet(
    table: hudi.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call says that deletes are denied."""
    table.configure(SHORT)
    point = table.savepoint()
    for number in range(4):
        write(table, f"n{number}")
        table.compact()
    wanted = notes(table)
    with monkeypatch.context() as patch:
        patch.setattr(table._store, "delete", refusing)
        table.remove_savepoint(point)
        for service in (table.clean, table.archive):
            with pytest.raises(StoreDeniedError):
                service()
    assert not table.savepoints
    with monkeypatch.context() as patch:
        table.clean(plan_only=True)
        patch.setattr(table._store, "delete", refusing)
        cleaned = table.clean()
    assert cleaned.files
    assert all((tmp_path / "table" / path).exists() for path in cleaned.files)
    with monkeypatch.context() as patch:
        table.archive(plan_only=True)
        patch.setattr(table._store, "delete", refusing)
        archived = table.archive().instants
    assert archived
    table.archive()
    assert not any((tmp_path / "table" / path).exists() for path in cleaned.files)
    assert not {each.time for each in list_instants(table._store)} & set(archived)
    assert notes(table) == wanted
    assert table.verify().ok


def test_a_restore_leaves_the_saved_rows_and_no_file_of_what_came_later(table: hudi.Table, tmp_path: Path) -> None:
    wanted = notes(table)
    point = table.savepoint()
    later = [write(table, "later")]
    later.append(table.compact().instant)
    later.append(write(table, "after the compaction"))
    assert len(names_with(tmp_path, later)) > 6
    done = table.restore(point)
    assert sorted(done.undone) == sorted(later)
    assert names_with(tmp_path, later) == []
    assert notes(table) == wanted
    write(table, "new")
    with hudi.open_table(table.url) as another:
        assert notes(another) == {**wanted, "a": "new", "new": "new"}
        assert another.verify().ok


def test_a_restore_has_a_value_for_every_key_that_a_definition_may_have_lacked(table: hudi.Table) -> None:
    assert table.definition is not None
    encoded = table.definition.encode()
    assert ABSENT.keys() == {each.name for each in dataclasses.fields(Definition)} - encoded.keys()
    assert Definition.decode({**encoded, **ABSENT}).encode() == encoded


def test_services_right_after_a_restore_work_on_what_is_left(table: hudi.Table) -> None:
    wanted = notes(table)
    point = table.savepoint()
    write(table, "later")
    table.maintain()
    table.restore(point)
    plan = table.plan_compaction(forced=True)
    assert plan is not None
    assert [log.name.count(point) for each in plan.operations for log in each.logs] == [1]
    assert table.compact().completion
    assert notes(table) == wanted


def test_the_saved_commit_stays_and_can_be_gone_back_to_again(table: hudi.Table) -> None:
    point = table.savepoint()
    for note in ("once", "twice"):
        write(table, note)
        table.restore(point)
        assert point in {each.instant for each in table.commits()}
        assert table.savepoints == [point]
    assert notes(table) == {"a": "saved", "first": "first", "saved": "saved"}


def test_a_later_savepoint_goes_with_its_commit_and_an_earlier_one_stays(table: hudi.Table, tmp_path: Path) -> None:
    early = table.savepoint()
    write(table, "middle")
    middle = table.savepoint()
    write(table, "late")
    late = table.savepoint()
    table.restore(middle)
    assert table.savepoints == [early, middle]
    assert names_with(tmp_path, [late]) == []
    with hudi.open_table(table.url) as another:
        assert another.savepoints == [early, middle]
        with pytest.raises(OptionError, match="not a savepoint"):
            another.restore(late)


def test_ch8_offsets_go_back_with_the_rows_and_incarnations_do_not(table: hudi.Table) -> None:
    point = table.savepoint()
    write(table, "later", c=ChannelRecord(2, 30, "me", 2), d=ChannelRecord(1, 5, "you", 2))
    table.win_offsets({"e": ChannelRecord(3, 7, "them", 3)})
    before = table.restored
    done = table.restore(point)
    assert table.channels == {
        "c": ChannelRecord(2, 10, "me", 1),
        "d": ChannelRecord(1, 0, "you", 2),
        "e": ChannelRecord(3, 0, "them", 3),
    }
    assert table.restored == done.instant != before


def test_an_open_plan_is_cancelled_and_its_late_outputs_never_count(table: hudi.Table, tmp_path: Path) -> None:
    point = table.savepoint()
    write(table, "later")
    plan = table.plan_compaction(forced=True)
    assert plan is not None
    assert table.restore(point).plans == 1
    assert table.plans == {}
    assert read_state(table._store, LOG_LAYOUT)[0].dead[plan.instant] == plan_names(plan)
    assert names_with(tmp_path, [plan.instant]) == []
    wanted = notes(table)
    (tmp_path / "table" / plan.operations[0].path).write_bytes(b"a compactor that was paused")
    table.tidy()
    with hudi.open_table(table.url) as another:
        another.own()
        another.tidy()
        assert not (tmp_path / "table" / plan.operations[0].path).exists()
        assert notes(another) == wanted


def test_a_transaction_that_was_open_lapses(table: hudi.Table) -> None:
    point = table.savepoint()
    transaction = table.transaction()
    transaction.upsert(rows(("z", 1, "never")))
    table.restore(point)
    with pytest.raises(TransactionError, match="has ended"):
        transaction.commit()
    assert "z" not in notes(table)
    write(table, "goes on")


def test_completed_instants_go_newest_first_and_before_their_data(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped anywhere, readers see the table as of one of its commits, and no instant is completed without its files."""
    point = table.savepoint()
    later = [write(table, note) for note in ("one", "two", "three")]
    deleted: list[str] = []
    real = table._store.delete

    def delete(paths: Iterable[str]) -> None:
        paths = list(paths)
        deleted.extend(paths)
        real(paths)

    monkeypatch.setattr(table._store, "delete", delete)
    table.restore(point)
    completed = [path.rpartition("/")[2][:17] for path in deleted if path.startswith(TIMELINE_FOLDER) and "_" in path]
    assert completed == later[::-1]
    data = [at for at, path in enumerate(deleted) if not path.startswith(".hoodie/")]
    assert data
    assert min(data) > max(at for at, path in enumerate(deleted) if path.startswith(TIMELINE_FOLDER) and "_" in path)


def test_a_commit_is_saved_once_however_often_it_is_asked_for(table: hudi.Table) -> None:
    point = table.savepoint("first")
    slots = read_state(table._store, LOG_LAYOUT)[0].n
    assert table.savepoint("again") == point
    assert read_state(table._store, LOG_LAYOUT)[0].n == slots
    assert len([each for each in list_instants(table._store) if each.action == "savepoint" and each.completion]) == 1


def test_a_savepoint_that_is_removed_leaves_the_timeline_at_once(table: hudi.Table, tmp_path: Path) -> None:
    point = table.savepoint()
    assert any("savepoint" in name for name in names_with(tmp_path, [point]))
    table.remove_savepoint(point)
    assert not any("savepoint" in name for name in names_with(tmp_path, [point]))
    assert table.savepoints == []
    with pytest.raises(OptionError, match="not a savepoint"):
        table.restore(point)
