"""Traces on paper on an object store: data files lie under their final names before their slot."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.bodies import Dead
from headgate_tables.errors import DeposedError, StoreUnavailableError
from headgate_tables.hudi.view import list_data_files
from headgate_tables.storage.store import FolderListing, Outcome
from support.tables import by_hudi_rs, create, notes, rows
from support.traces import InPlaceStore, agree, data_files, opened, slots, timeline


def test_a_reader_of_an_empty_timeline_sees_no_row_before_its_commit(tmp_path: Path) -> None:
    """It lists the timeline, then the folders; in between the table's first transaction begins."""
    create(tmp_path)
    reader, writer = opened(tmp_path, InPlaceStore), opened(tmp_path, InPlaceStore)
    real = reader._store.list_folder
    transactions = []

    def list_folder(folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        if folder == "" and not transactions:
            transactions.append(writer.transaction())
            transactions[0].upsert(rows(("a", 1, "uncommitted")))
        return real(folder, after=after, sizes=sizes)

    reader._store.list_folder = list_folder  # type: ignore[method-assign]
    assert reader.scan().to_table().num_rows == 0
    assert data_files(reader, transactions[0].instant)
    transactions[0].commit()
    assert reader.scan().to_table().num_rows == 1


def lose(times: int, what: str) -> Callable[[str], Outcome | None]:
    left = [times]

    def before(path: str) -> Outcome | None:
        if what in path and left[0]:
            left[0] -= 1
            return Outcome.UNKNOWN
        return None

    return before


def test_p3_no_data_file_is_written_before_its_instant_is_on_the_timeline(tmp_path: Path) -> None:
    create(tmp_path)
    table = opened(tmp_path, InPlaceStore)
    table._store.before_create = lose(3, ".requested")  # type: ignore[attr-defined]
    transaction = table.transaction()
    transaction.upsert(rows(("a", 1, "x")))
    assert f"{transaction.instant}.deltacommit.requested" in timeline(tmp_path)
    table._store.before_create = lose(10**6, ".requested")  # type: ignore[attr-defined]
    other = table.transaction()
    with pytest.raises(StoreUnavailableError, match=r"busy|did not say"):
        other.upsert(rows(("b", 1, "x")))
    assert data_files(table, other.instant) == []


@pytest.mark.parametrize("pauses", ["before its first file", "before its data"])
def test_h9_a_data_file_that_comes_after_its_instant_was_swept_stays_invisible(tmp_path: Path, pauses: str) -> None:
    """Fact HF7. Readers take an instant before the timeline's first for an archived one, which was completed."""
    create(tmp_path)
    sleeper = opened(tmp_path, InPlaceStore)
    transaction = sleeper.transaction()
    if pauses == "before its data":
        transaction._announce()
    successor = opened(tmp_path, InPlaceStore)
    successor.upsert(rows(("b", 1, "successor")))
    transaction.upsert(rows(("a", 1, "dead"), ("b", 9, "dead")))
    with pytest.raises(DeposedError, match="took the table over"):
        transaction.commit()
    assert data_files(successor, transaction.instant), "the dead file is there"
    assert [row["id"] for row in by_hudi_rs(successor.url)] == ["b"]
    assert notes(hudi.open_table(successor.url)) == {"b": "successor"}
    assert successor.scan().to_table().num_rows == 1
    opened(tmp_path, InPlaceStore).upsert(rows(("c", 1, "next")))
    assert data_files(successor, transaction.instant) == [], "the next owner sweeps it"
    assert agree(successor) == {"b": "successor", "c": "next"}


def test_t7_data_files_go_before_the_instant_that_shows_where_to_look_for_them(tmp_path: Path) -> None:
    create(tmp_path, buckets=4)
    first = opened(tmp_path, InPlaceStore)
    first.upsert(rows(("z", 1, "x")))
    crashed = first.transaction()
    crashed.upsert(rows(*((f"k{n}", 1, "x") for n in range(20))))
    calls: list[list[str]] = []
    for stop in (1, 2, 3):
        table = opened(tmp_path, InPlaceStore)
        real = table._store.delete
        made: list[list[str]] = []

        def delete(paths: Sequence[str], real: Any = real, stop: int = stop, made: list[list[str]] = made) -> None:
            made.append(list(paths))
            if len(made) == stop:
                real(made[-1][:1])  # the process dies in the middle of a request that has no order
                raise KeyboardInterrupt("killed")
            real(made[-1])

        table._store.delete = delete  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt, match="killed"):
            table.upsert(rows(("y", 1, "x")))
        calls += made
        if data_files(table, crashed.instant):
            assert f"{crashed.instant}.deltacommit.requested" in timeline(tmp_path)
    opened(tmp_path, InPlaceStore).upsert(rows(("y", 1, "x")))
    assert data_files(first, crashed.instant) == []
    assert not [name for name in timeline(tmp_path) if name.startswith(crashed.instant)]
    dead = [slot.body for slot in slots(first) if isinstance(slot.body, Dead)]
    named = [name for body in dead for names in body.named.values() for name in names]
    assert {name for call in calls for name in call} <= set(named)
    assert len(named) == len(set(named)), "a name was given up twice"
    assert agree(first) == {"z": "x", "y": "x"}


def test_verify_names_a_file_older_than_the_timeline_that_no_slot_committed(tmp_path: Path) -> None:
    """Rule D4, fact HF7."""
    table = create(tmp_path, buckets=1)
    table.upsert(rows(("a", 1, "x")))
    table.upsert(rows(("a", 1, "y")))
    [base] = [path for path, _ in list_data_files(table._store) if path.endswith(".parquet")]
    stray = base.replace(table.commits()[0].instant, "20000101000000000")
    shutil.copy(tmp_path / "table" / base, tmp_path / "table" / stray)
    assert [finding.path for finding in table.verify().findings] == [stray]


def test_a_sweep_leaves_files_alone_that_no_slot_names_and_whose_instants_are_not_dead(tmp_path: Path) -> None:
    """Rule D4. What nobody refers to may be a commit that the listing came too early for."""
    create(tmp_path, buckets=1)
    transaction = opened(tmp_path, InPlaceStore).transaction()
    transaction.upsert(rows(("a", 1, "dead")))
    successor = opened(tmp_path, InPlaceStore)
    [dead] = data_files(successor, transaction.instant)
    strays = [dead.replace(transaction.instant, instant) for instant in ("20000101000000000", "29991231000000000")]
    for stray in strays:
        shutil.copy(tmp_path / "table" / dead, tmp_path / "table" / stray)
    successor.upsert(rows(("b", 1, "x")))
    assert data_files(successor, transaction.instant) == [], "the sweep has looked at the folder"
    assert all((tmp_path / "table" / stray).exists() for stray in strays)
