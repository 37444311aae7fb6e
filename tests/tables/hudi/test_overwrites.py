"""Overwrites of partitions and of whole tables, without Spark: what readers see, and where the next rows go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import OptionError, TransactionError
from headgate_tables.face.results import CommitResult
from headgate_tables.face.writing import LoadMode
from headgate_tables.hudi.sift import sift_batch
from headgate_tables.opening import open_folder
from headgate_tables.system import System
from headgate_tables.writing import change_sink, place
from support import overwriting
from support.oracle import Oracle, Row
from support.readers import query_by_hudi_rs, read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])
ROWS: list[Row] = [{"id": f"k{i * 7 % 50}", "part": "abc"[i % 3], "ts": i, "v": i} for i in range(90)]
OTHERS: list[Row] = [{"id": f"k{i}", "part": "a", "ts": 1, "v": -i} for i in range(25)]
"""Older than what they replace: an overwrite compares no ordering values."""


def arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def expected(*steps: list[Row]) -> pa.Table:
    oracle = Oracle(["id"], ["part"], "ts")
    for rows in steps:
        oracle.upsert(rows)
    return arrow(oracle.rows())


def without(rows: list[Row], *parts: str) -> list[Row]:
    return [row for row in rows if row["part"] not in parts]


@pytest.fixture
def url(tmp_path: Path) -> str:
    with hudi.create_table(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], partition_by=["part"], ordering="ts", buckets=3
    ) as made:
        made.upsert(arrow(ROWS[:60]))
        made.upsert(arrow(ROWS[60:]))
    return str(tmp_path / "t")


@pytest.fixture
def table(url: str) -> Iterator[hudi.Table]:
    with hudi.open_table(url) as opened:
        yield opened


def overwrite(table: hudi.Table, rows: list[Row], mode: LoadMode = "insert_overwrite") -> CommitResult:
    return overwriting.overwrite(table, arrow(rows), mode)


def assert_is(url: str, rows: pa.Table, table: hudi.Table | None = None) -> None:
    assert_same_rows(read_by_us(Path(url)), rows, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(Path(url))), rows, "hudi-rs")
    if table is not None:
        assert_same_rows(table.scan().to_table(), rows, "the handle that wrote")
        assert not table.verify().findings


def test_an_overwrite_replaces_the_partitions_that_it_touches(table: hudi.Table, url: str) -> None:
    done = overwrite(table, OTHERS)
    assert (done.upserted, done.replaced, table.commits()[-1].action) == (25, 3, "replacecommit")
    assert_is(url, expected(without(ROWS, "a"), OTHERS), table)


def test_an_overwrite_of_the_table_replaces_all_and_may_bring_nothing(table: hudi.Table, url: str) -> None:
    assert overwrite(table, OTHERS, "insert_overwrite_table").replaced == 9
    assert_is(url, expected(OTHERS), table)
    assert overwrite(table, [], "insert_overwrite_table").files == 0
    assert_is(url, expected(), table)
    assert overwrite(table, [], "insert_overwrite_table").instant == ""
    overwrite(table, ROWS[:5])
    assert_is(url, expected(ROWS[:5]), table)


def test_deleted_partitions_take_rows_again(table: hudi.Table, url: str) -> None:
    with pytest.raises(OptionError, match="no partition 'A'"):
        table.delete_partitions(["a", "A"])
    assert table.delete_partitions(["a"]).replaced == 3
    assert_is(url, expected(without(ROWS, "a")), table)
    assert table.delete_partitions(["a"]).instant == ""
    table.upsert(arrow(OTHERS))
    assert_is(url, expected(without(ROWS, "a"), OTHERS), table)


@pytest.mark.parametrize("path", ["a\0", "a/.", "./a", "b/../a", "a/", "/a", "\udc80", "x" * 300], ids=ascii)
def test_a_path_that_no_partition_can_have_is_refused_as_a_mistake_and_no_damage(path: str, table: hudi.Table, url: str) -> None:
    with pytest.raises(OptionError):
        table.delete_partitions([path])
    assert_is(url, expected(ROWS), table)


def test_a_truncated_table_is_empty_for_every_reader_keeps_its_past_and_takes_rows_again(table: hudi.Table, url: str) -> None:
    full = table.commits()[-1]
    done = table.truncate()
    assert (done.replaced, done.files) == (9, 0)
    assert_is(url, expected(), table)
    assert table.truncate().instant == ""
    assert table.scan(as_of=full.completion).to_table().num_rows == len(ROWS)
    table.upsert(arrow(OTHERS))
    assert_is(url, expected(OTHERS), table)


@pytest.mark.slow
@pytest.mark.parametrize("again", [lambda table, _: table, lambda _, url: hudi.open_table(url)], ids=["same", "new"])
def test_rows_after_an_overwrite_go_to_its_file_groups(
    table: hudi.Table, url: str, again: Callable[[hudi.Table, str], hudi.Table]
) -> None:
    overwrite(table, OTHERS[:2])  # not every bucket gets a row
    with again(table, url) as later:
        later.upsert(arrow(ROWS[:40]))
        assert_is(url, expected(without(ROWS, "a"), OTHERS[:2], ROWS[:40]), later)
        later.compact()
        assert_is(url, expected(without(ROWS, "a"), OTHERS[:2], ROWS[:40]), later)
        overwrite(later, OTHERS)
        later.upsert(arrow(ROWS[30:50]))
        assert_is(url, expected(without(ROWS, "a"), OTHERS, ROWS[30:50]), later)


def write_unseeing(url: str, rows: list[Row]) -> None:
    """As a cluster's writers do, which know the table's definition alone and none of its files."""
    with hudi.open_table(url) as owner:
        owner.own()
        definition = owner.definition
        assert definition is not None
        with owner.transaction() as transaction:
            transaction.announce()
            sink = change_sink(
                open_folder(url, None, System.real().ids), definition, epoch=owner.epoch, process=System.real().ids.token()
            )
            changes = sift_batch(place(arrow(rows), None, definition), definition.ordering)
            transaction.add(sink.write(transaction.instant, changes, [1] * len(changes), block_format="parquet"))


def test_writers_that_see_no_files_write_to_the_new_file_groups(table: hudi.Table, url: str) -> None:
    overwrite(table, OTHERS[:2])
    write_unseeing(url, ROWS[:40])
    assert_is(url, expected(without(ROWS, "a"), OTHERS[:2], ROWS[:40]))


def test_after_a_restore_writers_that_see_no_files_write_to_the_old_file_groups(table: hudi.Table, url: str) -> None:
    saved = table.savepoint()
    overwrite(table, OTHERS)
    table.restore(saved)
    more = [{**row, "ts": 900} for row in ROWS[:40]]
    write_unseeing(url, more)
    assert_is(url, expected(ROWS, more))


def test_a_restore_to_a_savepoint_that_kept_no_file_groups_finds_those_of_its_time(table: hudi.Table, url: str) -> None:
    """A savepoint keeps what our later slots change. It has no file groups if a version before made the overwrite's slot."""
    saved = table.savepoint()
    overwrite(table, OTHERS)
    log = table._opened.log
    assert log is not None
    assert "groups" in log.state.savepoints[saved].config
    log.state.savepoints = {saved: replace(log.state.savepoints[saved], config={})}
    table.restore(saved)
    more = [{**row, "ts": 900} for row in ROWS[:40]]
    write_unseeing(url, more)
    assert_is(url, expected(ROWS, more))


def test_after_a_restore_to_an_overwrite_its_file_groups_are_written_on(table: hudi.Table, url: str) -> None:
    overwrite(table, OTHERS)
    saved = table.savepoint()
    overwrite(table, OTHERS[:3], "insert_overwrite_table")
    table.restore(saved)
    more = [{**row, "ts": 900} for row in ROWS[:40]]
    write_unseeing(url, more)
    assert_is(url, expected(without(ROWS, "a"), OTHERS, more))


def test_a_handle_that_was_open_before_another_one_overwrote_writes_to_the_new_file_groups(table: hudi.Table, url: str) -> None:
    with hudi.open_table(url) as early:
        overwrite(table, OTHERS[:2])
        early.upsert(arrow(ROWS[:40]))
        assert_is(url, expected(without(ROWS, "a"), OTHERS[:2], ROWS[:40]), early)


def test_the_past_stays_readable_until_it_is_cleaned(table: hudi.Table, url: str) -> None:
    before = table.commits()[-1].completion
    overwrite(table, OTHERS)
    after = table.commits()[-1].completion
    assert_same_rows(table.scan(as_of=before).to_table(), expected(ROWS), "before the overwrite")
    assert len(query_by_hudi_rs(url, as_of=before)) == expected(ROWS).num_rows
    changed = table.scan(since=before, as_of=after).to_table()
    assert_same_rows(changed, expected(OTHERS), "what the overwrite wrote")


def test_replaced_files_are_cleaned_and_their_ids_stay_unused(table: hudi.Table, url: str) -> None:
    done = overwrite(table, OTHERS)
    replaced = {path.name for path in Path(url, "a").iterdir() if done.instant not in path.name and path.name[0] != "."}
    assert len(replaced) == 3
    table.configure({"hoodie.clean.commits.retained": "1", "headgate.clean.min.age": "0"})
    for number in range(3):
        table.upsert(arrow(ROWS[number : number + 1]))
    table.clean()
    assert not replaced & {path.name for path in Path(url, "a").iterdir()}
    table.archive()
    table.upsert(arrow(ROWS[:40]))
    assert_is(url, expected(without(ROWS, "a"), OTHERS, ROWS[:40]), table)


@pytest.mark.slow
def test_a_restore_takes_an_overwrite_back_and_rows_go_where_they_went_before(table: hudi.Table, url: str) -> None:
    saved = table.savepoint()
    table.upsert(arrow([{**ROWS[0], "ts": 500, "v": 500}]))
    overwrite(table, OTHERS)
    overwrite(table, OTHERS[:3], "insert_overwrite_table")
    undone = {each.instant for each in table.commits()[-3:]}
    table.restore(saved)
    assert_is(url, expected(ROWS), table)
    assert [path for path in Path(url).rglob("*.parquet") if any(instant in path.name for instant in undone)] == []
    assert [path for path in Path(url).rglob("*.log*") if any(instant in path.name for instant in undone)] == []
    more = [{**row, "ts": 900} for row in ROWS[:40]]
    table.upsert(arrow(more))
    assert_is(url, expected(ROWS, more), table)


def test_an_overwrite_is_alone(table: hudi.Table, url: str) -> None:
    load = table.transaction()
    load.announce_bulk_load("insert_overwrite_table")
    other = table.transaction()
    other.upsert(arrow(OTHERS))
    with pytest.raises(TransactionError, match="beside the overwrite"):
        load.commit()
    load.rollback()
    other.commit()
    assert_is(url, expected(ROWS, OTHERS), table)


def test_an_overwrite_waits_for_open_compactions(table: hudi.Table, url: str) -> None:
    assert table.plan_compaction(forced=True) is not None
    with pytest.raises(TransactionError, match="open compaction"):
        table.delete_partitions(["a"])
    table.compact()
    table.delete_partitions(["a"])
    assert_is(url, expected(without(ROWS, "a")), table)


def test_an_unknown_mode_is_refused(table: hudi.Table) -> None:
    transaction = table.transaction()
    with pytest.raises(OptionError, match="mode='all'"):
        transaction.announce_bulk_load("all")  # type: ignore[arg-type]
    transaction.rollback()


def test_an_overwrite_whose_owner_died_changes_nothing(table: hudi.Table, url: str) -> None:
    dead = table.transaction()
    dead.announce_bulk_load("insert_overwrite_table")
    assert_is(url, expected(ROWS))
    with hudi.open_table(url) as successor:
        overwrite(successor, OTHERS)
        assert_is(url, expected(without(ROWS, "a"), OTHERS), successor)
    left = [path.name for path in Path(url, ".hoodie").rglob("*") if dead.instant in path.name]
    assert left == []
