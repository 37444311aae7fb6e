"""Files that writers report against what is there, before a slot names them (rule RO10)."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import StoreUnavailableError
from headgate_tables.face.files import WriteStatus
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.place import place
from headgate_tables.hudi.staged_names import staged_path
from headgate_tables.storage.local import LocalStore
from headgate_tables.system import SystemIds
from support.faults import FailingStore, InPlaceStore
from support.handles import open_on
from support.splitting import split
from support.systems import system
from support.tables import create, rows

PROCESS = "7" * 32


@pytest.fixture(params=[FailingStore, InPlaceStore], ids=["staged", "in place"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LocalStore:
    create(tmp_path, system=system())
    made: LocalStore = request.param(tmp_path / "table", SystemIds())
    return made


def reported(store: LocalStore) -> tuple[hudi.Transaction, list[WriteStatus]]:
    """An open transaction of a cluster's table, and two files that a writer has made under it."""
    table = open_on(store, system(None), owner=hudi.OwnerProcess("cluster", "host", 1, "localhost:7070"))
    table.own()
    transaction = table.transaction(tidy=False)
    transaction.announce()
    assert table.definition is not None
    writer = ChangeWriter(store, table.definition, epoch=table.epoch, process=PROCESS, ordinal=0)
    changes = [each for part in ("p", "q") for each in split(place(rows(("a", 1, "x"), part=part), None, table.definition))]
    return transaction, writer.write(transaction.instant, changes, [1] * len(changes), block_format="parquet")


def test_ro10_files_that_a_writer_made_are_taken(store: LocalStore) -> None:
    transaction, statuses = reported(store)
    assert len(statuses) == 2
    assert transaction.find_false(statuses) == {}


def _stat(status: WriteStatus, **changed: object) -> WriteStatus:
    stat = replace(status.stat, **changed)  # type: ignore[arg-type]
    return WriteStatus(stat, status.file._replace(path=stat.path, size=stat.size))


def _file(status: WriteStatus, stage: str) -> WriteStatus:
    return replace(status, file=status.file._replace(stage=stage))


FALSE: dict[str, Callable[[WriteStatus], WriteStatus]] = {
    "another size": lambda each: _stat(each, size=each.stat.size + 1),
    "another group": lambda each: _stat(each, file_id="00000001-" + each.stat.file_id[9:]),
    "no version": lambda each: _stat(each, log_version=0),
    "another version": lambda each: _stat(each, log_version=2),
    "another name": lambda each: _stat(each, name=".hoodie_partition_metadata"),
    "a name with a folder": lambda each: _stat(each, file_id="x/../" + each.stat.file_id),
    "a partition outside": lambda each: _stat(each, partition="../q"),
    "an absolute partition": lambda each: _stat(each, partition="/q"),
    "another stage": lambda each: _file(each, ".hoodie/hoodie.properties"),
    "a stage outside": lambda each: _file(each, each.file.stage.replace(PROCESS, "..")),
    "a stage of another instant": lambda each: _file(each, f"{each.file.stage}0"),
}


@pytest.mark.parametrize("false", FALSE.values(), ids=FALSE.keys())
def test_ro10_a_file_that_is_not_as_reported_is_named_with_the_reason(
    store: LocalStore, false: Callable[[WriteStatus], WriteStatus]
) -> None:
    transaction, (first, second) = reported(store)
    made = false(second)
    if made == second:
        return  # in place there is no folder to change
    found = transaction.find_false([first, made])
    assert list(found) == [1]
    assert found[1]


def test_ro10_bytes_that_wait_elsewhere_are_those_of_another_file(store: LocalStore) -> None:
    transaction, (first, second) = reported(store)
    right_name = staged_path("elsewhere", transaction.instant, second.stat.partition, second.stat.file_id, 1)
    for stage in {first.file.stage, right_name, second.file.path} - {second.file.stage}:
        found = transaction.find_false([_file(second, stage)])
        assert found == {0: f"{stage!r} is not where the bytes of {second.stat.name} wait"}


def test_ro10_a_file_that_is_gone_and_one_that_is_reported_twice_are_false(store: LocalStore) -> None:
    transaction, (first, second) = reported(store)
    assert transaction.find_false([first, second, first]) == {2: f"{first.stat.path} is reported twice"}
    store.delete([second.file.stage or second.file.path])
    assert transaction.find_false([first, second]) == {
        1: f"{second.stat.path} is reported with {second.stat.size} bytes, and is not there"
    }


def test_ro10_a_store_that_does_not_say_what_is_there_makes_nobody_a_liar(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction, statuses = reported(store)

    def size(path: str) -> int | None:
        raise StoreUnavailableError("busy", fix="Wait.")

    monkeypatch.setattr(store, "size", size)
    with pytest.raises(StoreUnavailableError):
        transaction.find_false(statuses)


def test_ro10_a_look_at_files_lists_no_folder(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    transaction, statuses = reported(store)
    listed: list[str] = []
    monkeypatch.setattr(store, "list_folder", lambda folder, **_: listed.append(folder))
    looked: list[str] = []
    right = store.size
    monkeypatch.setattr(store, "size", lambda path: (looked.append(path), right(path))[1])
    assert transaction.find_false(statuses) == {}
    assert (listed, len(looked)) == ([], len(statuses))
