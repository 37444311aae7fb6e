"""What an owner that leaves in order says of its slices: the next one need not list the table before it commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.commitlog import commit_log
from headgate_tables.errors import DeposedError
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.results import SliceLogSize
from headgate_tables.hudi.left_record import read_left
from headgate_tables.hudi.place import place
from headgate_tables.hudi.services.planning.left_figures import LEFT_EVERY, at_most_after, largest_at
from headgate_tables.opening import open_folder
from headgate_tables.system import System
from headgate_tables.writing import change_sink
from support.splitting import split

SCHEMA = pa.schema([("id", pa.string()), ("note", pa.string())])
LEFT = ".hoodie/.headgate/left"


@pytest.fixture
def first(tmp_path: Path) -> Iterator[hudi.Table]:
    """Three commits: a base file and two logs in one slice."""
    with hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", buckets=1) as table:
        for note in ("one", "two", "three"):
            write(table, note)
        counted(table)
        yield table


def write(table: hudi.Table, note: str) -> None:
    table.upsert(pa.table({"id": ["a", "b"], "note": [note, note]}))


def write_as_a_cluster(table: hudi.Table, note: str, *, logs: int = 1) -> dict[str, int]:
    """A commit for which nobody lists the table; sizes of its log files."""
    definition = table.definition
    assert definition is not None
    with table.transaction() as transaction:
        transaction.announce()
        rows = pa.table({"id": ["a"], "note": [note]})
        sink = change_sink(open_folder(table.url, None, System.real().ids), definition, epoch=table.epoch, process="f" * 32)
        found: list[WriteStatus] = []
        for version in range(1, logs + 1):
            changes = split(place(rows, None, definition))
            found += sink.write(transaction.instant, changes, [version], block_format="parquet", ordinal=version)
        transaction.add(found)
        transaction.commit()
    return {status.stat.name: status.stat.size for status in found}


def counted(table: hudi.Table) -> SliceLogSize:
    """Lists the table, as its owner does between checkpoints."""
    while table.maintain().more:
        pass
    largest = table.largest_slice()
    assert largest is not None
    return largest


def test_the_next_owner_knows_the_figures_before_it_lists_the_table(first: hudi.Table) -> None:
    left = counted(first)
    assert left.log_files == 2
    first.hand_over()
    second = hudi.open_table(first.url)
    second.own()
    assert second.largest_slice() == left
    stored = write_as_a_cluster(second, "four")
    at_most = second.largest_slice()
    assert at_most == SliceLogSize(3, left.log_bytes + sum(stored.values()))
    assert counted(second) == at_most
    second.hand_over()
    third = hudi.open_table(first.url)
    third.own()
    assert third.largest_slice() == at_most


def test_an_owner_that_has_not_listed_the_table_leaves_what_it_got_and_added(first: hudi.Table) -> None:
    first.hand_over()
    second = hudi.open_table(first.url)
    second.own()
    write(second, "four")
    second.hand_over()
    third = hudi.open_table(first.url)
    third.own()
    assert third.largest_slice() == counted(third)


def test_figures_count_with_the_files_of_all_commits_since(first: hudi.Table) -> None:
    left = counted(first)
    first.hand_over()
    stored = [write_as_a_cluster(first, note) for note in ("after it had handed over", "and once more")]
    second = hudi.open_table(first.url)
    second.own()
    assert second.largest_slice() == SliceLogSize(4, left.log_bytes + sum(size for names in stored for size in names.values()))
    assert counted(second).log_files == 4


def test_an_owner_that_is_lost_has_left_figures_now_and_then(first: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 40)
    known = []
    for number in range(90):
        write_as_a_cluster(first, str(number))
        first.tidy(beside=True)
        log = hudi.open_table(first.url)._opened.log
        assert log is not None
        known.append(largest_at(log.state.n + 1, read_left(first._store), log.unfolded))
        first.compact()
    assert None not in known[LEFT_EVERY:], "neither behind a fold"
    assert max(figures.log_files for figures in known if figures is not None) < LEFT_EVERY + 3


def cancel_a_plan(table: hudi.Table) -> None:
    plan = table.plan_compaction(forced=True)
    assert plan is not None
    write(table, "beside the plan")
    table.cancel_plan(plan.instant)


def restore(table: hudi.Table) -> None:
    saved = table.savepoint()
    write(table, "not for long")
    table.restore(saved)


@pytest.mark.parametrize("fill", [cancel_a_plan, restore])
def test_figures_from_before_something_that_may_fill_a_slice_do_not_count(
    fill: Callable[[hudi.Table], None], first: hudi.Table
) -> None:
    first.hand_over()
    fill(first)
    second = hudi.open_table(first.url)
    second.own()
    assert second.largest_slice() is None


def test_figures_from_before_the_newest_fold_do_not_count(first: hudi.Table) -> None:
    first.hand_over()
    write(first, "four")
    log = first._opened.log
    assert log is not None
    log.fold()
    write(first, "five")
    second = hudi.open_table(first.url)
    second.own()
    assert second.largest_slice() is None
    assert counted(second).log_files == 4


def test_a_deposed_owner_leaves_no_figures(first: hudi.Table) -> None:
    second = hudi.open_table(first.url)
    write(second, "four")
    with pytest.raises(DeposedError):
        write(first, "too late")
    first.hand_over()
    assert not (Path(first.url.removeprefix("file://")) / LEFT).exists()


def test_a_dropped_table_leaves_no_figures_behind(first: hudi.Table) -> None:
    first.hand_over()
    second = hudi.open_table(first.url)
    dropped = second.drop()
    assert list(dropped.left) == []
    assert not (Path(first.url.removeprefix("file://")) / LEFT).exists()


def test_all_log_files_that_a_commit_adds_to_one_slice_count(tmp_path: Path) -> None:
    with hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", buckets=1) as table:
        names = write_as_a_cluster(table, "x", logs=3)
        assert at_most_after(SliceLogSize(4, 100), {"": names}) == SliceLogSize(7, 100 + sum(names.values()))
        assert counted(table) == SliceLogSize(3, sum(names.values()))
        assert at_most_after(SliceLogSize(4, 100), {"": names, "p": names}) == SliceLogSize(7, 100 + sum(names.values()))
