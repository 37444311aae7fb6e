"""Deletes by a condition, in one commit of the owner: what is left is what DuckDB leaves, to our reader and to hudi-rs."""

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headgate_tables import hudi
from headgate_tables.errors import DeposedError, FixCall, OptionError, SchemaError, TransactionError
from headgate_tables.hudi import base_reader, deleting
from support.erased import files_holding
from support.readers import read_by_hudi_rs, without_meta
from support.same_rows import assert_same_rows
from support.tiers import slow_but

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("code", pa.string()),
        ("day", pa.string()),
        ("at", pa.int64()),
        ("price", pa.float64()),
        ("note", pa.string()),
    ]
)
CONDITIONS = [
    "id = 5",
    "day = '2026-01-02'",
    "day = '2026-01-02' AND note = 'b'",
    "note = 'a' OR price > 7",
    "note IS NULL",
    "NOT note = 'a'",
    "note NOT IN ('a', 'b')",
    "NOT (price < 5 AND note IS NOT NULL)",
    "code LIKE 'c1%'",
    '"at" >= 100',
    "id < 0",
    "true",
]


def row(number: int, at: int) -> dict[str, Any]:
    return {
        "id": number,
        "code": f"c{number}",
        "day": f"2026-01-0{number % 3 + 1}",
        "at": at,
        "price": None if number % 4 == 0 else float(number % 10),
        "note": None if number % 5 == 0 else "ab"[number % 2],
    }


def rows(numbers: range, at: int = 1) -> pa.Table:
    return pa.Table.from_pylist([row(number, at) for number in numbers], SCHEMA)


def base_and_logs(table: hudi.Table) -> None:
    table.upsert(rows(range(15, 40), at=100))
    table.delete(rows(range(2, 4), at=100).select(["id", "code", "day", "at"]))


def compacted(table: hudi.Table) -> None:
    base_and_logs(table)
    table.compact()


def logs_on_compacted(table: hudi.Table) -> None:
    compacted(table)
    table.upsert(rows(range(10, 20), at=200))


HISTORIES: Mapping[str, Callable[[hudi.Table], None]] = {
    "base files alone": lambda _: None,
    "logs": base_and_logs,
    "compacted": compacted,
    "logs on compacted": logs_on_compacted,
}


def made(folder: Path, *, ordering: str | None = "at", **options: Any) -> hudi.Table:
    options = {"record_key": ["id", "code"], "partition_by": ["day"], "buckets": 2} | options
    table = hudi.create_table(str(folder / "t"), SCHEMA, ordering=ordering, **options)
    table.upsert(rows(range(20)))
    return table


def snapshot(table: hudi.Table) -> pa.Table:
    with hudi.open_table(table.url) as again:
        return again.scan().to_table()


def by_duckdb(found: pa.Table, select: str) -> pa.Table:
    """``found`` is the relation ``found`` of the query."""
    with duckdb.connect() as con:
        return con.sql(select).to_arrow_table()


def names_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("history", slow_but(["logs on compacted"], HISTORIES))
def test_what_is_left_is_what_sql_leaves(history: str, condition: str, tmp_path: Path) -> None:
    for ordering in ("at", None):
        (folder := tmp_path / str(ordering)).mkdir()
        with made(folder, ordering=ordering) as table:
            HISTORIES[history](table)
            before, commits = snapshot(table), len(table.commits())
            expected = by_duckdb(before, f"SELECT * FROM found WHERE ({condition}) IS NOT TRUE")
            counts = by_duckdb(before, f"SELECT day, count(*) FROM found WHERE {condition} GROUP BY ALL ORDER BY day")
            planned = table.delete_where(condition, dry_run=True)
            done = table.delete_where(condition)
            assert (done.rows, done.partitions) == (planned.rows, planned.partitions)
            assert list(done.partitions.items()) == [tuple(each.values()) for each in counts.to_pylist()]
            assert done.rows == before.num_rows - expected.num_rows
            assert len(table.commits()) == commits + (done.rows > 0)
            assert done.instant == (table.commits()[-1].instant if done.rows else "")
            for _ in range(2):
                assert_same_rows(snapshot(table), expected, condition)
                assert_same_rows(without_meta(read_by_hudi_rs(folder / "t")), expected, f"{condition}, by hudi-rs")
                table.compact()


def test_a_table_without_partitions_counts_in_its_root(tmp_path: Path) -> None:
    with made(tmp_path, record_key=["id"], partition_by=[], buckets=1) as table:
        done = table.delete_where("id < 3")
        assert (done.rows, done.partitions, done.files) == (3, {"": 3}, 1)
        assert snapshot(table)["id"].to_pylist() == [*range(3, 20)]


def test_paths_of_partitions_are_those_of_the_folders(tmp_path: Path) -> None:
    with made(tmp_path, hive_style=True) as table:
        planned = table.delete_where("note = 'a'", dry_run=True)
        assert all((tmp_path / "t" / path).is_dir() for path in planned.partitions)
        assert all(path.startswith("day=") for path in planned.partitions)


def test_a_dry_run_writes_nothing_and_owns_nothing(tmp_path: Path) -> None:
    with made(tmp_path) as table:
        epoch = table.epoch
        before = names_below(tmp_path)
        with hudi.open_table(table.url, owner=hudi.OwnerProcess("cluster", "host", 1, "host:7070"), take_over=True) as cluster:
            cluster.own()
            owned = names_below(tmp_path)
            with hudi.open_table(table.url) as reader:
                planned = reader.delete_where("id < 7", dry_run=True)
                assert (planned.rows, planned.instant, planned.completion) == (7, "", "")
                assert reader.epoch == cluster.epoch > epoch
        assert names_below(tmp_path) == owned != before


def test_a_condition_that_cannot_be_used_is_refused_before_anything_is_owned(tmp_path: Path) -> None:
    made(tmp_path).close()
    before = names_below(tmp_path)
    with hudi.open_table(str(tmp_path / "t")) as other:
        for wrong, error, said in (
            ("nota = 'a'", SchemaError, "Did you mean 'note'"),
            ("id >", OptionError, "is not a condition"),
            ("", OptionError, "is not a condition"),
            ("id = 'x'", OptionError, "id"),
        ):
            for dry_run in (True, False):
                with pytest.raises(error, match=said):
                    other.delete_where(wrong, dry_run=dry_run)
        assert names_below(tmp_path) == before


@pytest.mark.parametrize("wrong", [None, True, 0, b"id = 1", [], pc.field("id") == 1, lambda schema: None, " ", "-- id"])
def test_what_is_no_text_of_a_condition_deletes_nothing(wrong: Any, tmp_path: Path) -> None:
    """A scan takes None for all rows."""
    with made(tmp_path) as table:
        before = snapshot(table)
        for dry_run in (True, False):
            with pytest.raises(OptionError, match=r"is no condition in SQL|is not a condition"):
                table.delete_where(wrong, dry_run=dry_run)
        assert_same_rows(snapshot(table), before, "nothing is deleted")


@pytest.mark.slow
@pytest.mark.parametrize("count", [4_095, 4_096, 4_097, 131_071, 131_072, 131_073])
def test_any_number_of_rows_is_deleted_in_one_commit(count: int, tmp_path: Path) -> None:
    keys = pa.table({"id": pa.array(range(count + 10)), "at": pa.repeat(pa.scalar(1), count + 10)})
    with hudi.create_table(str(tmp_path / "t"), keys.schema, record_key="id", ordering="at", buckets=2) as table:
        table.upsert(keys)
        done = table.delete_where(f"id < {count}")
        assert (done.rows, done.files) == (count, 2)
        assert sorted(snapshot(table)["id"].to_pylist()) == [*range(count, count + 10)]
        assert read_by_hudi_rs(tmp_path / "t").num_rows == 10
        table.compact()
        assert sorted(snapshot(table)["id"].to_pylist()) == [*range(count, count + 10)]


def test_deletes_in_several_pieces_are_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleting, "PIECE_ROWS", 1)
    with made(tmp_path, buckets=1) as table:
        base_and_logs(table)
        before = snapshot(table)
        expected = by_duckdb(before, "SELECT * FROM found WHERE (id % 2 = 0) IS NOT TRUE")
        even = ", ".join(map(str, range(0, 40, 2)))
        done = table.delete_where(f"id IN ({even})")
        assert done.files > len(done.partitions) == 3
        assert table.commits()[-1].instant == done.instant
        assert_same_rows(snapshot(table), expected, "pieces")
        assert_same_rows(without_meta(read_by_hudi_rs(tmp_path / "t")), expected, "by hudi-rs")


def test_more_deletes_than_a_slice_may_hold_are_refused_and_nothing_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "PIECE_ROWS", 1_000)
    monkeypatch.setattr(base_reader, "BATCH_ROWS", 1_000)  # no single piece is too large
    keys = pa.table({"id": pa.array(range(20_000))})
    with hudi.create_table(str(tmp_path / "t"), keys.schema, record_key="id", buckets=1) as table:
        table.upsert(keys)
        table.configure({"headgate.compaction.log.bytes": "60000", "headgate.slice.max.log.bytes": "65536"})
        commits = table.commits()
        with pytest.raises(OptionError, match=r"headgate\.slice\.max\.log\.bytes") as refused:
            table.delete_where("true")
        assert "narrower conditions" in refused.value.fix
        assert table.commits() == commits
        assert snapshot(table).num_rows == 20_000
        assert not [name for name in names_below(tmp_path / "t") if ".log." in name], "rolled back"
        assert table.delete_where("id < 1000").rows == 1_000
        assert snapshot(table).num_rows == 19_000


@pytest.mark.parametrize("kind", [pa.int32(), pa.date32()])
def test_a_row_ordered_by_zero_is_deleted_and_may_come_again(kind: pa.DataType, tmp_path: Path) -> None:
    """As other deletes have it, 0 in 32 bits would be refused: Hudi takes it for a delete of whatever came before."""
    schema = pa.schema([("id", pa.string()), ("at", kind), ("note", pa.string())])

    def of(*entries: tuple[str, int, str]) -> pa.Table:
        days = [date.fromordinal(date(1970, 1, 1).toordinal() + at) for _, at, _ in entries]
        times = days if kind == pa.date32() else [at for _, at, _ in entries]
        return pa.table([[e[0] for e in entries], pa.array(times, kind), [e[2] for e in entries]], schema=schema)

    with hudi.create_table(str(tmp_path / "t"), schema, record_key="id", ordering="at", buckets=1) as table:
        table.upsert(of(("a", 0, "x"), ("b", 0, "y"), ("c", 1, "x")))
        table.upsert(of(("b", 0, "x")))
        with pytest.raises(FixCall, match="the value 0 in its ordering column"):
            table.delete(of(("a", 0, "x")))
        assert table.delete_where("note = 'x'").rows == 3
        assert snapshot(table).num_rows == read_by_hudi_rs(tmp_path / "t").num_rows == 0
        table.upsert(of(("a", 0, "again"), ("c", 0, "late")))
        for _ in range(2):
            assert snapshot(table)["note"].to_pylist() == read_by_hudi_rs(tmp_path / "t")["note"].to_pylist() == ["again"]
            table.compact()


def test_a_delete_holds_older_rows_back_and_no_newer_ones(tmp_path: Path) -> None:
    with made(tmp_path) as table:
        table.upsert(rows(range(5), at=10))
        table.delete_where("id < 5")
        table.upsert(rows(range(3), at=9))
        assert sorted(snapshot(table)["id"].to_pylist()) == [*range(5, 20)]
        table.upsert(rows(range(3), at=11))
        assert sorted(snapshot(table)["id"].to_pylist()) == [0, 1, 2, *range(5, 20)]


def test_an_open_transaction_may_hold_what_nobody_has_searched(tmp_path: Path) -> None:
    with made(tmp_path) as table:
        open_one = table.transaction()
        open_one.upsert(rows(range(30, 40)))
        with pytest.raises(TransactionError, match="a transaction is open"):
            table.delete_where("id >= 0")
        open_one.commit()
        assert table.delete_where("id >= 0").rows == 30
        assert snapshot(table).num_rows == 0


def test_a_process_that_lost_the_table_while_it_searched_deletes_nothing(tmp_path: Path) -> None:
    """The other owner has written a row that this one's condition would spare: no delete of it may be committed."""
    with made(tmp_path) as table, hudi.open_table(table.url) as other:

        class Overtaken(deleting.Matches):
            def tables(self) -> Any:
                yield from super().tables()
                other.upsert(rows(range(5), at=50))

        transaction = table.transaction()
        overtaken = Overtaken(table.scan, table.matching("true")._definition, "id < 5")
        with pytest.raises(DeposedError):
            deleting.delete(overtaken, transaction, 1 << 30)
        assert snapshot(table).num_rows == 20
        assert other.delete_where("at = 50").rows == 5


def test_what_others_wrote_until_the_table_was_owned_is_searched(tmp_path: Path) -> None:
    made(tmp_path).close()
    other = hudi.open_table(str(tmp_path / "t"))

    class Late(hudi.Table):
        """Somebody writes right after its first look, when it owns nothing yet."""

        looks = 0

        def matching(self, where: str) -> deleting.Matches:
            found = super().matching(where)
            self.looks += 1
            if self.looks == 1:
                other.upsert(rows(range(30, 33)))
            return found

    with hudi.open_table(str(tmp_path / "t")) as opened:
        late = Late(opened._opened, "refuse")
        assert late.delete_where("id >= 10").rows == 13
        assert sorted(snapshot(late)["id"].to_pylist()) == [*range(10)]
    other.close()


def test_a_file_that_was_cleaned_keeps_no_other_name(tmp_path: Path) -> None:
    """Until the next fold, a hundred commits later, the bytes have a name in the stage of their process, too."""
    secret = "Wilhelmine-Unverwechselbar"
    with made(tmp_path, buckets=1) as table:
        table.upsert(rows(range(3), at=2).set_column(5, "note", pa.array([secret] * 3)))
        table.delete_where(f"note = '{secret}'")
        table.compact()
        table.configure({"hoodie.clean.commits.retained": "1", "headgate.clean.min.age": "0"})
        before = files_holding(tmp_path, secret)
        assert len([name for name in before if "/stage/" in name]) == len(before) / 2 == 3
        table.clean()
        assert files_holding(tmp_path, secret) == []
        assert snapshot(table)["id"].to_pylist()


def test_rows_that_are_read_again_are_counted_anew(tmp_path: Path) -> None:
    with made(tmp_path) as table:
        matches = table.matching("id < 6")
        assert matches.partitions == {}
        for _ in range(2):
            assert sum(piece.num_rows for piece in matches.tables()) == 6
            assert matches.partitions == {"2026-01-01": 2, "2026-01-02": 2, "2026-01-03": 2}


def test_rows_that_no_delete_of_others_can_name_are_counted(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("at", pa.int32())])
    with hudi.create_table(str(tmp_path / "t"), schema, record_key="id", ordering="at", buckets=1) as table:
        table.upsert(pa.table({"id": ["a", "b", "c"], "at": [0, 0, 1]}, schema=schema))
        assert table.matching("true").count_unordered() == 2
        assert table.matching("id = 'a' OR id = 'c'").count_unordered() == 1
        assert table.matching("at = 1").count_unordered() == 0
    with made(tmp_path / "other") as table:
        assert table.matching("true").count_unordered() == 0
