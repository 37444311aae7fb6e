"""Copies of partitions in a table's folder stay when it is dropped, and all that is the table's goes (rule D7)."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.hudi.log.names import base_name
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.system import System
from support.faults import InPlaceStore
from support.handles import open_on
from support.other_program import other_program
from support.overwriting import overwrite
from support.tables import SHORT, create, rows

TOMBSTONE = LOG_LAYOUT.tombstone


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def archived(table: hudi.Table) -> None:
    """No commit that the timeline still has wrote to the first partition."""
    table.configure(SHORT)
    table.upsert(rows(("a", 1, "x"), part="p"))
    for ts in range(8):
        table.upsert(rows(("b", ts, "x"), part="q"))
        table.compact()
    table.clean()
    first = min(each.instant for each in table.commits())
    assert first in table.archive().instants


def overwritten(table: hudi.Table) -> None:
    """Twice, with rows on top of each; the second leaves no group of the first."""
    table.upsert(rows(("a", 1, "x"), ("b", 1, "x")))
    for ts in (2, 3):
        overwrite(table, rows(("a", ts, "over"), ("b", ts, "over")))
        table.upsert(rows(("a", ts, "later"), ("b", ts, "later")))
    table.configure(SHORT)
    assert table.clean().files


def adopted(table: hudi.Table) -> None:
    """With file ids that another program made up."""
    table.upsert(rows(("a", 1, "x"), part="q"))
    with other_program(Path(table.url.removeprefix("file://"))) as other:
        other.upsert(rows(("b", 1, "x")))
    table.adopt()
    table.upsert(rows(("b", 2, "x"), ("c", 2, "x")))


def removed(table: hudi.Table) -> None:
    """And then rescaled, so that its files have ids by the number of buckets of before."""
    table.upsert(rows(("a", 1, "x"), ("b", 1, "x")))
    table.upsert(rows(("c", 1, "x"), part="q"))
    table.delete_partitions([first_partition(table)])
    table.rescale(3)


def first_partition(table: hudi.Table) -> str:
    return min(group.partition for group in table.file_groups())


def removed_twice(table: hudi.Table) -> None:
    """The groups after the first time have ids by the instant at which the ones before went."""
    table.upsert(rows(("a", 1, "x")))
    table.delete_partitions([first_partition(table)])
    removed(table)


def emptied(table: hudi.Table) -> None:
    """The rescale found no row in it."""
    table.upsert(rows(("a", 1, "x"), ("c", 1, "x")))
    table.delete(rows(("a", 2, "x"), ("c", 2, "x")))
    table.rescale(3)


def rescaled_twice(table: hudi.Table) -> None:
    """The partition began after the first, and was removed before the second."""
    table.rescale(4)
    removed(table)


def rescaled_by_rules(table: hudi.Table) -> None:
    """Under the first rule the partition began, under the second it is no more."""
    table.rescale(4, partitions="*")
    removed(table)
    table.rescale(5, partitions="*")


def begun_later(table: hudi.Table) -> None:
    """Nothing was there when it got another number of buckets."""
    table.rescale(4)
    table.upsert(rows(("a", 1, "x")))


def begun_under_a_rule(table: hudi.Table) -> None:
    table.rescale(4, partitions="*")
    table.upsert(rows(("a", 1, "x")))


RESCALED = [removed, removed_twice, emptied, rescaled_twice, rescaled_by_rules, begun_later, begun_under_a_rule]


@pytest.mark.parametrize("made", [archived, overwritten, adopted, *RESCALED])
@pytest.mark.parametrize("hive_style", [False, True])
def test_d7_a_copy_of_a_partition_stays_and_is_named(
    tmp_path: Path, made: Callable[[hudi.Table], None], hive_style: bool
) -> None:
    with create(tmp_path, hive_style=hive_style) as table:
        made(table)
    folder = tmp_path / "table"
    partition = "part=p" if hive_style else "p"
    copies = ["backup_of_p", "part=copy", "backups/p", f"{partition}/old"]
    whole = {name.partition("/")[2] for name in files_in(folder) if name.startswith(f"{partition}/")}
    assert len(whole) >= 2
    for copy in copies:
        shutil.copytree(folder / partition, tmp_path / "aside" / copy)
    shutil.copytree(tmp_path / "aside", folder, dirs_exist_ok=True)
    copied = {f"{copy}/{name}" for copy in copies for name in whole}
    with hudi.open_table(str(folder)) as table:
        planned, done = table.drop(plan_only=True), table.drop()
    assert set(done.left) == set(planned.left) == copied
    assert files_in(folder) == {*copied, TOMBSTONE}
    again = hudi.finish_drop(str(folder))
    assert again is not None
    assert set(again.left) == copied


def test_d7_a_commit_that_cannot_be_read_keeps_no_table_from_being_dropped(tmp_path: Path) -> None:
    """What it took out stays, and is named."""
    folder = tmp_path / "table"
    with create(tmp_path) as table:
        rescaled_twice(table)
        for path in (folder / ".hoodie/timeline").glob("*_*.replacecommit"):
            path.write_bytes(b"damaged")
        of_p = {name for name in files_in(folder) if name.startswith("p/")}
        done = table.drop()
    assert files_in(folder) == {*done.left, TOMBSTONE}
    assert set(done.left) == of_p != set()


def test_d7_a_copy_in_a_table_without_partitions_stays(tmp_path: Path) -> None:
    with create(tmp_path, partitioned=False) as table:
        table.upsert(rows(("a", 1, "x")))
        folder = tmp_path / "table"
        shutil.copytree(folder, folder / "backup", ignore=shutil.ignore_patterns(".hoodie", "backup"))
        copied = {name for name in files_in(folder) if name.startswith("backup/")}
        done = table.drop()
    assert set(done.left) == copied != set()
    assert files_in(folder) == {*copied, TOMBSTONE}


def in_place(folder: Path) -> InPlaceStore:
    """Data files are made under their final names, so that those of a writer that died are there."""
    return InPlaceStore(folder, System.real().ids, anchor=LOG_LAYOUT.root)


@pytest.mark.parametrize("overwrites", [False, True])
def test_d7_files_in_a_partition_that_nobody_has_committed_to_go(tmp_path: Path, overwrites: bool) -> None:
    """Of a writer that died; the file groups of an overwrite are none that a writer would begin."""
    create(tmp_path)
    folder = tmp_path / "table"
    store = in_place(folder)
    with open_on(store) as table:
        load = table.transaction()
        load.announce_bulk_load("insert_overwrite" if overwrites else "into_empty")
        assert table.definition is not None
        file_id = table.definition.file_id("fresh", 1, int(load.instant) if overwrites else 0)
        store.create(f"fresh/{base_name(file_id, '0-0-0', load.instant)}", [b"half of it"], durable=True)
    done = open_on(store).drop()
    assert (done.files, done.left) == (1, ())
    assert not (folder / "fresh").exists()
