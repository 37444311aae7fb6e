"""Another number of buckets (rule FI6): the same rows in other file groups, for all readers and for what is done later."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, OptionError, TransactionError
from headgate_tables.face.writing import Changes, LoadTask
from headgate_tables.hudi.keys.bucket import bucket_of
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.services.rescaling import units_of
from headgate_tables.hudi.view import FileSlice
from headgate_tables.opening import open_folder
from headgate_tables.system import System
from headgate_tables.writing import change_sink, log_files
from support import overwriting
from support.faults import FailingStore, Fault, InPlaceStore, KilledError
from support.handles import open_on
from support.oracle import Oracle, Row
from support.readers import query_by_hudi_rs, read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])
ROWS: list[Row] = [{"id": f"k{i * 7 % 300}", "part": "ab"[i % 2], "ts": i, "v": i} for i in range(600)]
LATER: list[Row] = [{"id": f"k{i}", "part": "ab"[i % 2], "ts": 1000 + i, "v": -i} for i in range(100, 400)]
GONE: list[Row] = [{"id": f"k{i}", "part": "ab"[i % 2], "ts": 2000} for i in range(50, 150)]


def arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def keys(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA.remove(3))


def filled(
    folder: Path, buckets: int, *, partitioned: bool = True, ordering: str | None = "ts", compacted: bool = True
) -> Oracle:
    """A table whose slices have base and log files, with updates and deletes in these; and what it holds."""
    partition_by = ["part"] if partitioned else []
    oracle = Oracle(["id"], partition_by, ordering)
    with hudi.create_table(
        str(folder), SCHEMA, record_key=["id"], partition_by=partition_by, ordering=ordering, buckets=buckets
    ) as table:
        table.upsert(arrow(ROWS))
        if compacted:
            table.compact()
        table.upsert(arrow(LATER))
        table.delete(keys(GONE))
    oracle.upsert(ROWS)
    oracle.upsert(LATER)
    oracle.delete(GONE)
    return oracle


def assert_shows(folder: Path, oracle: Oracle) -> None:
    rows = arrow(oracle.rows())
    assert_same_rows(read_by_us(folder), rows, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(folder)), rows, "hudi-rs")


def assert_holds(folder: Path, oracle: Oracle) -> None:
    assert_shows(folder, oracle)
    with hudi.open_table(str(folder)) as table:
        assert not table.verify().findings


def groups_of(table: hudi.Table) -> list[tuple[str, int]]:
    return sorted((group.partition, bucket_of(group.file_id)) for group in table.file_groups())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "t"


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2), (4, 6), (1, 5), (3, 20), (7, 1)])
@pytest.mark.parametrize("partitioned", [True, False])
def test_all_rows_are_there_once_before_and_after_whatever_the_numbers_are(
    folder: Path, before: int, after: int, partitioned: bool
) -> None:
    oracle = filled(folder, before, partitioned=partitioned)
    seen: list[tuple[int, int]] = []
    with hudi.open_table(str(folder)) as table:
        planned = table.rescale(after, plan_only=True)
        done = table.rescale(after, progress=lambda rows, size: seen.append((rows, size)))
        assert (done.before, done.buckets, done.rows) == (before, after, len(oracle.rows()))
        assert done.replaced == before * (2 if partitioned else 1)
        assert table.definition is not None
        assert table.definition.buckets == after
        assert groups_of(table) == [(part, at) for part in ("ab" if partitioned else ("",)) for at in range(after)]
    assert seen == sorted(seen)
    assert seen[-1] == (done.rows, planned.bytes)
    assert_holds(folder, oracle)


@pytest.mark.slow
@pytest.mark.parametrize("ordering", ["ts", None])
def test_rows_that_come_later_find_those_of_their_keys(folder: Path, ordering: str | None) -> None:
    oracle = filled(folder, 4, ordering=ordering)
    more = [{**row, "ts": 5000 + at, "v": at} for at, row in enumerate(ROWS[:200])]
    older = [{**row, "ts": 0, "v": 77} for row in ROWS[300:320]]
    with hudi.open_table(str(folder)) as table:
        table.rescale(6)
        oracle.compact()
        for rows in (more, older):
            table.upsert(arrow(rows))
            oracle.upsert(rows)
        table.delete(keys([{**row, "ts": 9000} for row in ROWS[50:80]]))
        oracle.delete([{**row, "ts": 9000} for row in ROWS[50:80]])
    assert_holds(folder, oracle)
    with hudi.open_table(str(folder)) as again:
        again.compact()
        assert again.rescale(3).before == 6
    assert_holds(folder, oracle)


def test_rows_are_no_news_and_the_past_stays_as_it_was(folder: Path) -> None:
    oracle = filled(folder, 2)
    with hudi.open_table(str(folder)) as table:
        before = table.commits()[-1].completion
        done = table.rescale(4)
        assert table.scan(since=before).to_table().num_rows == 0
        assert query_by_hudi_rs(folder, since=before) == []
        assert_same_rows(table.scan(as_of=before).to_table(), arrow(oracle.rows()), "the past")
        assert_same_rows(table.scan(since="0" * 17).to_table(), arrow(oracle.rows()), "all changes")
        news = [{"id": "new", "part": "a", "ts": 1, "v": 1}]
        table.upsert(arrow(news))
        assert table.scan(since=done.completion).to_table().to_pylist() == news
        assert table.scan(since=before).to_table().to_pylist() == news
    assert [row["id"] for row in query_by_hudi_rs(folder, since=before)] == ["new"]


@pytest.mark.slow
def test_a_restore_goes_back_over_it_and_rows_find_their_groups_again(folder: Path) -> None:
    oracle = filled(folder, 4)
    with hudi.open_table(str(folder)) as table:
        saved = table.savepoint("before")
        table.rescale(2)
        table.upsert(arrow(ROWS[:10]))
        table.rescale(8)
        table.restore(saved)
        assert table.definition is not None
        assert (table.definition.buckets, table.definition.rescaled) == (4, "")
        table.upsert(arrow(LATER))
    assert_holds(folder, oracle)
    with hudi.open_table(str(folder)) as table:
        assert len(groups_of(table)) == 8
        later = table.savepoint("again")
        table.rescale(3)
        table.restore(later)
        table.rescale(2)
    assert_holds(folder, oracle)


@pytest.mark.slow
def test_a_restore_goes_back_over_overwrites_on_both_sides_of_it(folder: Path) -> None:
    oracle = filled(folder, 4)
    other = [{"id": f"o{i}", "part": "a", "ts": i, "v": i} for i in range(40)]
    with hudi.open_table(str(folder)) as table:
        saved = table.savepoint("before")
        for buckets in (2, 8):
            overwriting.overwrite(table, arrow(other))
            table.rescale(buckets)
            overwriting.overwrite(table, arrow(other))
        table.restore(saved)
        assert_holds(folder, oracle)
        table.upsert(arrow(LATER))
        table.upsert(arrow(other))
    oracle.upsert(other)
    assert_holds(folder, oracle)


@pytest.mark.slow
def test_a_savepoint_after_it_comes_back_with_its_buckets(folder: Path) -> None:
    oracle = filled(folder, 2)
    with hudi.open_table(str(folder)) as table:
        table.rescale(6)
        saved = table.savepoint("after")
        table.upsert(arrow([{"id": "x", "part": "a", "ts": 1, "v": 1}]))
        table.rescale(3)
        table.restore(saved)
        assert table.definition is not None
        assert table.definition.buckets == 6
        table.upsert(arrow(LATER[:20]))
    oracle.compact()
    oracle.upsert(LATER[:20])
    assert_holds(folder, oracle)


def test_overwrites_and_drops_know_the_new_groups(folder: Path) -> None:
    filled(folder, 4)
    other = [{"id": f"o{i}", "part": "a", "ts": i, "v": i} for i in range(40)]
    with hudi.open_table(str(folder)) as table:
        table.rescale(2)
        assert overwriting.overwrite(table, arrow(other), "insert_overwrite_table").replaced == 4
        table.upsert(arrow(other))
        oracle = Oracle(["id"], ["part"], "ts")
        oracle.upsert(other)
        assert_holds(folder, oracle)
        table.rescale(5)
        table.upsert(arrow(other[:9]))
        assert_holds(folder, oracle)
        assert table.drop().left == ()


def test_a_writer_begins_no_group_that_an_overwrite_before_has_named(folder: Path) -> None:
    """One of a cluster sees the definition alone, and there a bucket that got no row has no file group."""
    filled(folder, 4)
    few = [{"id": "x", "part": "a", "ts": 1, "v": 1}]
    many = [{"id": f"o{i}", "part": "a", "ts": i, "v": i} for i in range(40)]
    with hudi.open_table(str(folder)) as table:
        overwriting.overwrite(table, arrow(few), "insert_overwrite_table")
        table.rescale(8)
    with hudi.open_table(str(folder)) as table, table.transaction() as transaction:
        transaction.announce()
        assert table.definition is not None
        task = LoadTask(transaction.instant, table.epoch, "f" * 32, 0)
        writer = log_files(open_folder(table.url, None, System.real().ids), table.definition, task, deletes=False)
        transaction.add(writer.write(arrow(many))[0])
    oracle = Oracle(["id"], ["part"], "ts")
    oracle.upsert(few)
    oracle.upsert(many)
    assert_holds(folder, oracle)


def test_files_of_before_are_cleaned_away(folder: Path) -> None:
    oracle = filled(folder, 2)
    with hudi.open_table(str(folder)) as table:
        table.configure({"hoodie.clean.commits.retained": "1", "headgate.clean.min.age": "0"})
        old = {path.name for path in folder.rglob("*.parquet")}
        table.rescale(4)
        for at in range(3):
            oracle.upsert(ROWS[at : at + 1])
            table.upsert(arrow(ROWS[at : at + 1]))
        table.clean()
        assert not old & {path.name for path in folder.rglob("*.parquet")}
    assert_holds(folder, oracle)


def test_a_handle_that_only_reads_goes_on_over_it(folder: Path) -> None:
    oracle = filled(folder, 2)
    with hudi.open_table(str(folder)) as reader, hudi.open_table(str(folder)) as table:
        assert reader.scan().to_table().num_rows == len(oracle.rows())
        table.rescale(4)
        assert_same_rows(reader.scan().to_table(), arrow(oracle.rows()), "an old handle")


def test_nothing_happens_for_the_number_that_is_there_and_a_plan_changes_nothing(folder: Path) -> None:
    filled(folder, 4)
    with hudi.open_table(str(folder)) as table:
        commits = table.commits()
        assert table.rescale(4).instant == ""
        planned = table.rescale(8, plan_only=True)
        assert (planned.instant, planned.before, planned.buckets, planned.replaced) == ("", 4, 8, 8)
        assert planned.bytes > 0
        assert table.commits() == commits


def test_a_table_without_rows_gets_the_number_for_those_that_come(folder: Path) -> None:
    with hudi.create_table(str(folder), SCHEMA, record_key=["id"], partition_by=["part"], ordering="ts", buckets=2) as table:
        assert table.rescale(5).instant
        table.upsert(arrow(ROWS))
        assert {bucket for _, bucket in groups_of(table)} == set(range(5))
        table.delete_partitions(["a", "b"])
        assert table.rescale(3).replaced == 0
        table.upsert(arrow(ROWS))
        assert {bucket for _, bucket in groups_of(table)} == set(range(3))
    oracle = Oracle(["id"], ["part"], "ts")
    oracle.upsert(ROWS)
    assert_holds(folder, oracle)


@pytest.mark.parametrize("buckets", [0, -1, 100_000_000])
def test_a_number_that_no_table_has_is_refused(folder: Path, buckets: int) -> None:
    filled(folder, 2)
    with hudi.open_table(str(folder)) as table, pytest.raises(OptionError, match=f"buckets={buckets}"):
        table.rescale(buckets)


def test_it_waits_for_what_is_open(folder: Path) -> None:
    oracle = filled(folder, 2)
    with hudi.open_table(str(folder)) as table:
        with table.transaction() as open_one:
            open_one.upsert(arrow(ROWS[:1]))
            with pytest.raises(TransactionError):
                table.rescale(4)
        oracle.upsert(ROWS[:1])
        assert table.plan_compaction(forced=True) is not None
        with pytest.raises(TransactionError, match="open compaction"):
            table.rescale(4)
        table.compact()
        table.rescale(4)
    assert_holds(folder, oracle)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [FailingStore, InPlaceStore])
@pytest.mark.parametrize("after", [False, True])
def test_a_rescale_that_dies_at_any_call_is_whole_or_was_not(tmp_path: Path, kind: type[FailingStore], after: bool) -> None:
    numbers = set()
    for at in itertools.count(1, 4):
        folder = tmp_path / str(at)
        oracle = filled(folder, 2, partitioned=False)
        store = kind(folder, System.real().ids, anchor=LOG_LAYOUT.root)
        table = open_on(store)
        store.fault = fault = Fault(at, KilledError, after=after)
        with contextlib.suppress(KilledError):
            table.rescale(3)
        store.fault = None
        assert_shows(folder, oracle)
        with hudi.open_table(str(folder), take_over=True) as next_owner:
            assert next_owner.definition is not None
            numbers.add(next_owner.definition.buckets)
            oracle.compact()
            more = [{"id": f"k{at}", "part": "a", "ts": 5000, "v": at} for at in range(30)]
            next_owner.upsert(arrow(more))
            oracle.upsert(more)
            assert next_owner.rescale(5).buckets == 5
        assert_holds(folder, oracle)
        if not fault.happened:
            break
    assert numbers == {2, 3}


def numbered(numbers: range, v: int) -> pa.Table:
    ids = pa.array(numbers).cast(pa.string())
    columns = [ids, pa.array(["a"] * len(numbers)), pa.array([v] * len(numbers), pa.int64()), pa.array(numbers, pa.int32())]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize("after", [2, 3])
def test_a_slice_of_more_rows_than_a_row_group_is_rewritten_without_changing_one(folder: Path, after: int) -> None:
    """131,072 is a row group; each new file gets more than one, some of the rows from logs, which are read in batches as well."""
    with hudi.create_table(str(folder), SCHEMA, record_key=["id"], ordering="ts", buckets=1) as table:
        table.upsert(numbered(range(450_000), 1))
        table.upsert(numbered(range(100_000, 250_000), 2))
        table.delete(numbered(range(440_000, 450_000), 3))
        table.rescale(after)
        assert [group.slices()[-1].logs for group in table.file_groups()] == [()] * after
    expected = pa.concat_tables(
        [numbered(range(100_000), 1), numbered(range(100_000, 250_000), 2), numbered(range(250_000, 440_000), 1)]
    )
    for found in (read_by_us(folder), without_meta(read_by_hudi_rs(folder))):
        assert found.select(SCHEMA.names).cast(SCHEMA).sort_by("v").equals(expected.combine_chunks())
    with hudi.open_table(str(folder)) as table:
        assert not table.verify().findings


def test_rows_that_lie_in_a_wrong_bucket_are_noticed_and_nothing_changes(folder: Path) -> None:
    """Another program wrote with another number of buckets: here all say that they are in bucket 0."""
    oracle = filled(folder, 2, partitioned=False, compacted=False)
    with hudi.open_table(str(folder)) as table:
        definition = table.definition
        assert definition is not None
        with table.transaction() as transaction:
            transaction.announce()
            sink = change_sink(open_folder(table.url, None, System.real().ids), definition, epoch=table.epoch, process="f" * 32)
            rows = arrow([{"id": f"w{at}", "part": "a", "ts": 1, "v": at} for at in range(8)])
            keys = rows["id"]
            wrong = Changes("", 0, rows, keys, pa.array([False] * 8))
            transaction.add(sink.write(transaction.instant, [wrong], [1], block_format="parquet"))
        with pytest.raises(CorruptFileError, match="rows of another bucket"):
            table.rescale(4)
        assert table.definition == definition
        assert table.scan().to_table().num_rows == len(oracle.rows()) + 8


def slices(*buckets: int) -> Iterator[FileSlice]:
    return (FileSlice("p", f"{bucket:08d}-x-0", "1", "base", ()) for bucket in buckets)


def test_a_unit_holds_all_slices_whose_rows_may_meet() -> None:
    units = units_of(list(slices(0, 1, 2, 3, 4, 5)), lambda _: 6, 4)
    assert [([bucket_of(each.file_id) for each in unit.slices], list(unit.buckets)) for unit in units] == [
        ([0, 2, 4], [0, 2]),
        ([1, 3, 5], [1, 3]),
    ]
    assert [list(unit.buckets) for unit in units_of(list(slices(3)), lambda _: 8, 16)] == [[3, 11]]
