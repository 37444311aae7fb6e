"""A table whose folder is moved away under an open handle: nothing is made in its place, and back again it is as it was."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.records import ChannelRecord
from headgate_tables.errors import MissingFileError, OutcomeUnknownError, TableGoneError
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.storage.store import Outcome
from support.handles import open_on
from support.systems import FaultyStore
from support.tables import by_hudi_rs, create, keys, notes, rows


class InPlace(FaultyStore):
    """Data files are created under their final names, as in an object store."""

    stages = False  # type: ignore[misc]


class Tagged(InPlace):
    """The version of a file is its content's, as in S3."""

    def version(self, path: str) -> str | None:
        return hashlib.md5(self.get(path)).hexdigest() if self.size(path) is not None else None


CALLS: dict[str, Callable[[hudi.Table], object]] = {
    "upsert": lambda table: table.upsert(rows(("b", 1, "y"))),
    "delete": lambda table: table.delete(keys(("a", 5))),
    "offsets": lambda table: table.win_offsets({"c": ChannelRecord(1, 1, "me", 0)}),
    "savepoint": lambda table: table.savepoint("before", "me"),
    "compact": lambda table: table.compact(),
    "look": lambda table: table.check_there(),
}


def handle(folder: Path, kind: type[FaultyStore] = FaultyStore) -> hudi.Table:
    return open_on(kind(folder / "table", anchor=LOG_LAYOUT.root))


@pytest.mark.parametrize("kind", [FaultyStore, InPlace], ids=["staged", "in place"])
@pytest.mark.parametrize("call", CALLS)
def test_calls_on_a_table_that_was_moved_away_create_nothing(call: str, kind: type[FaultyStore], tmp_path: Path) -> None:
    create(tmp_path)
    table = handle(tmp_path, kind)
    table.upsert(rows(("a", 1, "x")))
    (tmp_path / "table").rename(tmp_path / "away")
    with pytest.raises(TableGoneError, match="holds no table any more"):
        CALLS[call](table)
    assert not (tmp_path / "table").exists()
    (tmp_path / "away").rename(tmp_path / "table")
    again = handle(tmp_path, kind)
    assert notes(again) == {"a": "x"}
    CALLS[call](again)


def test_a_commit_that_is_won_when_the_folder_goes_is_put_in_place_when_it_is_back(tmp_path: Path) -> None:
    create(tmp_path)
    table = handle(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    store = table._store
    assert isinstance(store, FaultyStore)

    def move(path: str, outcome: Outcome) -> Outcome:
        if path.startswith(LOG_LAYOUT.slots):
            (tmp_path / "table").rename(tmp_path / "away")
        return outcome

    store.after_create = move
    with pytest.raises(OutcomeUnknownError):
        table.upsert(rows(("b", 1, "y")))
    assert not (tmp_path / "table").exists()
    (tmp_path / "away").rename(tmp_path / "table")
    with handle(tmp_path) as again:
        again.own()
        assert notes(again) == {"a": "x", "b": "y"}


def test_only_the_properties_gone_is_damage_and_not_a_table_that_is_gone(tmp_path: Path) -> None:
    create(tmp_path)
    table = handle(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    (tmp_path / "table/.hoodie/hoodie.properties").unlink()
    with pytest.raises(MissingFileError):
        table.upsert(rows(("b", 1, "y")))


def test_properties_that_go_before_a_fence_are_put_back_by_it(tmp_path: Path) -> None:
    create(tmp_path).upsert(rows(("a", 1, "x")))
    properties = tmp_path / "table/.hoodie/hoodie.properties"
    before = properties.read_bytes()
    table = handle(tmp_path)
    properties.unlink()
    table.own()
    assert properties.read_bytes() == before
    table.upsert(rows(("b", 1, "y")))
    assert sorted(row["note"] for row in by_hudi_rs(table.url)) == ["x", "y"]


def test_a_table_without_its_hidden_folder_is_gone_too(tmp_path: Path) -> None:
    create(tmp_path)
    table = handle(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    left = sorted(path.name for path in (tmp_path / "table").iterdir() if path.name != LOG_LAYOUT.root)
    shutil.rmtree(tmp_path / "table" / LOG_LAYOUT.root)
    for call in CALLS.values():
        with pytest.raises(TableGoneError):
            call(table)
    assert sorted(path.name for path in (tmp_path / "table").iterdir()) == left


LATE_CALLS = CALLS | {
    "commit": lambda table: table.transaction(),
    "fold": lambda table: table._own()[0].fold(),
    "hand over": lambda table: table.hand_over(),
    "configure": lambda table: table.configure({"headgate.slice.max.log.files": "7"}),
}


@pytest.mark.parametrize("kind", [FaultyStore, InPlace, Tagged], ids=["staged", "in place", "in place, by content"])
@pytest.mark.parametrize("call", LATE_CALLS)
def test_a_handle_writes_nothing_into_another_table_that_was_made_at_the_same_place(
    call: str, kind: type[FaultyStore], tmp_path: Path
) -> None:
    """An operator has removed the folder and made the table again before anybody noticed. Its log would have a gap for good."""
    create(tmp_path)
    table = handle(tmp_path, kind)
    for number in range(3):
        table.upsert(rows(("a", number, "x")))
    begun = table.transaction() if call == "commit" else None
    if begun is not None:
        begun.upsert(rows(("b", 1, "y")))
    shutil.rmtree(tmp_path / "table")
    create(tmp_path)
    before = files(tmp_path / "table")
    with pytest.raises(TableGoneError, match="holds another table than before"):
        _ = begun.commit() if begun is not None else LATE_CALLS[call](table)
    assert files(tmp_path / "table") == before
    with handle(tmp_path, kind) as again:
        again.upsert(rows(("b", 1, "z")))
        assert notes(again) == {"b": "z"}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
