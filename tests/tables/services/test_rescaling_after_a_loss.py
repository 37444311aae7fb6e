"""A rescale of a table that has lost a committed file (rule FI6): it would make the loss final, and does not begin."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import MissingFileError
from support import overwriting
from support.oracle import Oracle, Row
from support.readers import read_by_us
from support.same_rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])


def rows(ts: int, parts: str = "ab") -> list[Row]:
    return [{"id": f"k{at}", "part": parts[at % len(parts)], "ts": ts} for at in range(40)]


def arrow(given: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(given, schema=SCHEMA)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of two partitions with two buckets each. All slices have a base file and four logs, and no slot is left that names them."""
    with hudi.create_table(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], partition_by=["part"], ordering="ts", buckets=2
    ) as table:
        table.upsert(arrow(rows(1)))
        table.upsert(arrow(rows(2)))
        compact(table)
        for ts in (3, 4, 5, 6):
            table.upsert(arrow(rows(ts)))
        fold(table)
    return tmp_path / "t"


def compact(table: hudi.Table) -> None:
    """And uses the instants up that were reserved before: archiving waits for logs of these."""
    table.compact()
    for _ in range(2):
        with table.transaction() as transaction:
            transaction.announce()
            transaction.rollback()


def fold(table: hudi.Table) -> None:
    log = table._opened.log
    assert log is not None
    log.fold()


def archive(folder: Path, *, keep: int = 2) -> set[str]:
    """Takes off the timeline what may go: these instants."""
    retained = {
        "hoodie.keep.min.commits": f"{keep}",
        "hoodie.keep.max.commits": f"{keep + 1}",
        "hoodie.clean.commits.retained": "1",
    }
    with hudi.open_table(str(folder)) as table:
        table.configure({**retained, "headgate.log.retire.after": "0"})
        table.tidy()
        archived = table.archive().instants
        fold(table)
    return set(archived)


def logs(folder: Path, part: str = "a") -> list[Path]:
    return sorted(folder.glob(f"{part}/.*.log.*"), key=lambda path: path.name.partition("_")[2])


def newest_bases(folder: Path, part: str = "a") -> list[Path]:
    """One for each bucket, of the compaction."""
    found = sorted(folder.glob(f"{part}/*.parquet"), key=lambda path: path.name.rpartition("_")[2])
    return sorted(found[2:])


def assert_refuses(folder: Path, named: str, partitions: str = "") -> None:
    before = data_files(folder)
    with hudi.open_table(str(folder)) as table:
        commits, definition = table.commits(), table.definition
        for plan_only in (True, False):
            with pytest.raises(MissingFileError, match=named) as refused:
                table.rescale(3, partitions=partitions, plan_only=plan_only)
            assert "from a copy" in (refused.value.fix or "")
        assert (table.commits(), table.definition) == (commits, definition)
        assert named in {finding.path for finding in table.verify().findings}
    assert data_files(folder) == before


def data_files(folder: Path) -> set[str]:
    return {path.name for part in "ab" for path in folder.glob(f"{part}/*")}


@pytest.mark.parametrize("kind", ["log", "base"])
@pytest.mark.parametrize("archived", [False, True])
def test_a_committed_file_that_is_gone_ends_a_rescale_before_it_begins(folder: Path, kind: str, archived: bool) -> None:
    lost = (logs(folder)[4] if kind == "log" else newest_bases(folder)[-1]).name
    if archived:
        assert any(instant in lost for instant in archive(folder))
    (folder / "a" / lost).unlink()
    assert_refuses(folder, f"a/{lost}")


def test_what_lies_below_a_base_file_that_is_gone_is_not_missed(folder: Path) -> None:
    """Its rows are in the base file: a copy of that is enough."""
    base = newest_bases(folder)[0]
    group, _, instant = base.name.removesuffix(".parquet").split("_")
    below = [log for log in logs(folder) if log.name.startswith(f".{group}_") and log.name.split("_")[1] < instant]
    for path in (base, below[0]):
        path.unlink()
    with hudi.open_table(str(folder)) as table:
        unowned = table._unowned()
        view = unowned.view()
        with pytest.raises(MissingFileError, match=base.name) as refused:
            unowned.lost.check(view, lambda _: True)
    assert "more files" not in str(refused.value)


def test_a_file_that_a_slot_still_names_ends_a_rescale_when_it_is_read(folder: Path) -> None:
    with hudi.open_table(str(folder)) as table:
        table.upsert(arrow(rows(7)))
        before, commits = data_files(folder), table.commits()
        lost = logs(folder)[-1]
        lost.unlink()
        with pytest.raises(MissingFileError, match=lost.name):
            table.rescale(3)
        assert table.commits() == commits
    assert data_files(folder) == before - {lost.name}


def test_a_partition_that_is_gone_is_missed_by_a_rescale_that_is_about_it(folder: Path) -> None:
    lost = f"b/{newest_bases(folder, 'b')[0].name}"
    for path in (folder / "b").iterdir():
        path.unlink()
    assert_refuses(folder, lost)
    assert_refuses(folder, lost, "b*")
    with hudi.open_table(str(folder)) as table:
        with pytest.raises(MissingFileError, match="and so are 9 more files"):  # a base file and four logs of each bucket
            table.rescale(3)
        assert table.rescale(3, partitions="a").replaced == 2


def test_the_file_put_back_lets_the_rescale_go_on(folder: Path) -> None:
    lost = logs(folder)[-1]
    content = lost.read_bytes()
    lost.unlink()
    assert_refuses(folder, f"a/{lost.name}")
    lost.write_bytes(content)
    with hudi.open_table(str(folder)) as table:
        table.rescale(3)
    assert_holds(folder, rows(6))


def test_rows_that_were_written_again_and_compacted_make_up_for_files_whose_loss_was_accepted(folder: Path) -> None:
    for path in newest_bases(folder):
        path.unlink()
    with hudi.open_table(str(folder)) as table:
        table.upsert(arrow(rows(7)))
        assert len(table.compact().dropped) == 2
        for each in table.stuck:
            table.readmit(each.name, accept_loss=True)
        table.compact()
        table.rescale(3)
    assert_holds(folder, rows(7))


def assert_holds(folder: Path, *written: list[Row]) -> None:
    oracle = Oracle(["id"], ["part"], "ts")
    for each in written:
        oracle.upsert(each)
    assert_same_rows(read_by_us(folder), arrow(oracle.rows()), "our reader")


@pytest.mark.slow
def test_what_was_cleaned_replaced_or_undone_is_not_missed(folder: Path) -> None:
    """All of it in instants of the history, whose slots are gone."""
    with hudi.open_table(str(folder)) as table:
        table.configure({"hoodie.clean.commits.retained": "1", "headgate.clean.min.age": "0"})
        saved = table.savepoint()
        table.upsert(arrow(rows(70)))
        compact(table)
        table.restore(saved)
        table.remove_savepoint(saved)
        compact(table)
        overwriting.overwrite(table, arrow(rows(7, "a")), "insert_overwrite")
        table.delete_partitions(["b"])
        for ts in range(8, 14):
            table.upsert(arrow(rows(ts, "a")))
            compact(table)
        replaced = [each.instant for each in table.commits() if each.action == "replacecommit"]
        assert len(table.clean().files) > 20
    assert set(replaced) < archive(folder)
    with hudi.open_table(str(folder)) as table:
        planned = table.rescale(3, plan_only=True)
        assert planned.replaced == 2
        assert table.rescale(3, planned=planned).rows == 40
        assert table.rescale(5).rows == 40
        assert not table.verify().findings
    assert_holds(folder, rows(13, "a"))


def test_what_came_and_went_again_after_a_look_is_not_missed_in_it(folder: Path) -> None:
    """A base file that a younger one has replaced: its compaction is archived, and the younger one not yet."""
    with hudi.open_table(str(folder)) as reader:
        unowned = reader._unowned()
        view = unowned.view()
        with hudi.open_table(str(folder), take_over=True) as table:
            table.configure({"hoodie.clean.commits.retained": "1", "headgate.clean.min.age": "0"})
            table.upsert(arrow(rows(7)))
            younger = table.compact().instant
            table.upsert(arrow(rows(8)))
            table.upsert(arrow(rows(9)))
            youngest = table.compact().instant
            table.upsert(arrow(rows(10)))
            assert any(younger in name for name in data_files(folder))
            table.clean()
            assert not any(younger in name for name in data_files(folder))
            fold(table)
        archived = archive(folder, keep=3)
        assert younger in archived
        assert youngest not in archived
        unowned.lost.check(view, lambda _: True)


def test_a_commit_that_was_deleted_after_it_was_listed_is_named(folder: Path) -> None:
    """Its files may be gone, too, and nothing else says so; an archived one is in the history."""
    with hudi.open_table(str(folder)) as table:
        unowned = table._unowned()
        view = unowned.view()
        archived = archive(folder)
        assert archived < set(view.timeline.completed)
        unowned.lost.check(view, lambda _: True)
        (newest,) = (each for each in view.timeline.writes() if each.time == max(w.time for w in view.timeline.writes()))
        (folder / newest.path).unlink()
        with pytest.raises(MissingFileError, match=newest.name):
            unowned.lost.check(view, lambda _: True)
