"""verify() finds what became of data files when no slot is left that says what they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog import commit_log
from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from support.damage import changed, flip, full, text, wrong_paths
from support.refusals import refused
from support.tables import SHORT, create, keys, rows


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> hudi.Table:
    """Base files, cleaned ones, archived instants, logs of rows and deletes; of most of their slots nothing is left."""
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 2)
    made = create(tmp_path, buckets=1)
    made.configure({**SHORT, "headgate.log.retire.after": "0"})
    for number in range(8):
        made.upsert(rows(*((f"k{each}", number, f"note {number}") for each in range(6))))
        if number % 3 == 2:
            made.compact()
            made.clean()
            made.archive()
    made.delete(keys(("k1", 100), ("k2", 100)))
    for number in range(4):
        made.upsert(rows(("elsewhere", number, "x"), part="q"))
        made.tidy()
    return hudi.open_table(made.url)


def older(table: hudi.Table, kind: str) -> str:
    """A data file of partition p in a slot that was deleted: its newest base, log of rows, or log of deletes."""
    (group,) = (group for group in table.file_groups() if group.partition == "p")
    part = group.slices()[-1]
    assert part.base is not None
    path = part.path({"base": part.base, "rows": part.logs[0].name, "deletes": part.logs[-1].name}[kind])
    slots = full(table, LOG_LAYOUT.slots)
    assert not any(path.encode() in slot.read_bytes() for slot in slots.iterdir()), "its slot is still there"
    return path


def test_nothing_is_wrong_with_a_table_that_was_cleaned_and_archived(table: hudi.Table) -> None:
    assert len(list(full(table, LOG_LAYOUT.slots).iterdir())) < 8
    assert table.verify().findings == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["base", "rows", "deletes"])
@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        pytest.param(lambda content: flip(content, len(content) // 2), "its bytes have changed", id="a bit flipped"),
        pytest.param(lambda content: content[:-1], "committed with", id="cut short"),
        pytest.param(lambda content: None, "committed, but not there", id="gone"),
    ],
)
def test_damage_of_a_file_whose_slot_was_deleted_is_found(
    table: hudi.Table, kind: str, damage: Callable[[bytes], bytes | None], problem: str
) -> None:
    path = older(table, kind)
    with changed(full(table, path), damage(full(table, path).read_bytes())):
        [finding] = table.verify().findings
        assert finding.path == path
        assert problem in finding.problem
    assert table.verify().ok


def test_damaged_metadata_hide_nothing_but_their_own_files(table: hudi.Table) -> None:
    path = older(table, "rows")
    commit = next(commit for commit in table.commits() if commit.instant not in path)
    [file] = full(table, ".hoodie/timeline").glob(f"{commit.instant}_*")
    with changed(file, b"Obj"), changed(full(table, path), None):
        assert {f".hoodie/timeline/{file.name}", path} <= {*wrong_paths(table)}


def test_a_lost_slot_0_makes_no_table_of_another_program(table: hudi.Table) -> None:
    before, files = text(table), sorted(full(table, "").rglob("*"))
    with changed(full(table, LOG_LAYOUT.slot_path(0)), None):
        opened = hudi.open_table(table.url)
        assert text(opened) == before
        for call in (lambda: opened.upsert(rows(("a", 1, "x"))), lambda: opened.adopt(buckets=1)):
            with refused(CorruptFileError, f"{LOG_LAYOUT.slot_path(0)} is gone", "Restore it from a copy"):
                call()
        assert LOG_LAYOUT.slot_path(0) in wrong_paths(opened)
    assert sorted(full(table, "").rglob("*")) == files
    assert hudi.open_table(table.url).upsert(rows(("a", 1, "x"))).upserted == 1
