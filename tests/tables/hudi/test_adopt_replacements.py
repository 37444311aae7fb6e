"""Another program on tables of which groups were replaced, by a truncation or a rescale: what is gone, and where rows lie."""

import shutil
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import OptionError, UnsupportedTableError
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from support.other_program import bring_back, hudi_files, other_program
from support.refusals import refused
from support.tables import SHORT, by_hudi_rs, create, notes, rows


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = create(tmp_path)
    made.upsert(rows(("a", 1, "x"), ("b", 1, "x")))
    made.upsert(rows(("a", 2, "y")))
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


def slots(path: Path) -> list[str]:
    return sorted(each.name for each in (path / LOG_LAYOUT.slots).iterdir())


def assert_healthy(table: hudi.Table, wanted: dict[str, str]) -> None:
    """Read by all, and written on: each key is there once."""
    for note in ("", "newest"):
        assert notes(table) == wanted
        assert {row["id"]: row["note"] for row in by_hudi_rs(table.url)} == wanted
        assert table.verify().ok, table.verify().findings
        if not note:
            wanted = dict.fromkeys(wanted, "newest")
            table.upsert(rows(*((key, 99, "newest") for key in wanted)))


def test_groups_that_were_replaced_by_what_the_other_program_archived_are_neither_missed_nor_read(
    table: hudi.Table, path: Path
) -> None:
    """It cleans them, and archives the commits that made and replaced them."""
    removed = table.truncate().instant
    table.upsert(rows(("c", 1, "x")))
    with other_program(path) as other:
        other.configure(SHORT)
        for number in range(6):
            other.upsert(rows(("c", 2 + number, f"v{number}")))
            other.compact()
        cleaned, archived = other.clean().files, other.archive().instants
    assert removed in archived
    assert cleaned
    reader = hudi.open_table(table.url)
    assert notes(reader) == {"c": "v5"}
    table.adopt()
    assert_healthy(table, {"c": "v5"})


def test_a_rescale_that_was_undone_by_the_other_program_is_refused(table: hudi.Table, path: Path) -> None:
    """Rows of the next commit would go where those of before do not lie, so that keys are there twice."""
    saved = table.savepoint()
    rescaled = table.rescale(5).instant
    found, copy = hudi_files(path), path.with_name("copy")
    shutil.copytree(path, copy)
    hudi.open_table(str(copy), take_over=True).restore(saved)
    bring_back(copy, path, found)
    before = slots(path)
    with refused(
        UnsupportedTableError, f"{rescaled}, which gave the table its number of buckets, was undone", "headgate bootstrap"
    ):
        table.adopt()
    assert slots(path) == before


def test_what_a_savepoint_of_before_a_rescale_does_not_know_is_not_guessed(table: hudi.Table, path: Path) -> None:
    """Another program saves any commit that it finds: ours saves only the newest one."""
    copy = path.with_name("copy")
    shutil.copytree(path, copy)
    saved = hudi.open_table(str(copy), take_over=True).savepoint()
    rescaled = table.rescale(5).instant
    for file in (copy / ".hoodie/timeline").glob(f"{saved}*.savepoint*"):
        shutil.copy(file, path / ".hoodie/timeline")
    assert table.adopt().savepoints == (saved,)
    for plan_only in (True, False):
        with refused(OptionError, f"lies before {rescaled}, which gave the table its number of buckets", "a later savepoint"):
            table.restore(saved, plan_only=plan_only)
    assert_healthy(table, {"a": "y", "b": "x"})


def test_a_savepoint_of_the_other_program_that_was_adopted_before_a_rescale_is_gone_back_to(
    table: hudi.Table, path: Path
) -> None:
    """The rescale keeps the number of before in it."""
    with other_program(path) as other:
        other.savepoint()
    (saved,) = table.adopt().savepoints
    table.rescale(5)
    table.restore(saved)
    assert_healthy(table, {"a": "y", "b": "x"})
