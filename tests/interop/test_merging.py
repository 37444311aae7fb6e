"""Which row of a key survives: both merge modes, late rows, ties, deletes, transactions, through three readers."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from support.oracle import Row
from support.readers import assert_all_agree
from support.table_files import data_files, kind
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32()), ("note", pa.string())])
MODES = pytest.mark.parametrize("ordering", ["ts", None], ids=["event-time", "commit-time"])


def row(key: str, ts: int, v: int, part: str = "a") -> Row:
    return {"id": key, "part": part, "ts": ts, "v": v, "note": f"{key}@{ts}" if v % 3 else None}


def some(keys: str, ts: int, v: int) -> list[Row]:
    """One row per letter."""
    return [row(key, ts, v) for key in keys]


@MODES
def test_late_rows_ties_and_deletes_over_base_and_log_rows(spark: Any, tmp_path: Path, ordering: str | None) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, ordering=ordering)
    table.upsert(some("abcdefgh", 5, 1))
    table.upsert(some("ab", 4, 2) + some("cd", 5, 2) + some("ef", 6, 2) + some("ijkl", 5, 2))
    table.delete(some("ac", 5, 0) + some("e", 5, 0) + some("g", 4, 0) + some("ij", 6, 0))
    table.upsert(some("a", 5, 4) + some("c", 4, 4) + some("i", 5, 4) + some("j", 7, 4) + some("k", 1, 4))
    table.delete(some("z", 9, 0))
    table.upsert(some("z", 8, 5))
    assert 0 < len(table.oracle.rows()) < 13
    assert_all_agree(spark, table.path, table.expected())


@MODES
def test_several_rows_of_a_key_in_one_call(spark: Any, tmp_path: Path, ordering: str | None) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, ordering=ordering)
    result = table.upsert([row("a", 2, 1), row("b", 2, 1), row("a", 3, 2), row("b", 1, 2), row("a", 3, 3)])
    assert result.superseded == 3
    table.upsert([row("a", 4, 4), row("b", 3, 4), row("b", 3, 5), row("a", 2, 5)])
    assert_all_agree(spark, table.path, table.expected())


@MODES
def test_a_slice_compacted_of_files_with_plain_and_with_dictionary_columns(
    spark: Any, tmp_path: Path, ordering: str | None
) -> None:
    """A compaction looks for repeating texts from the first file of 4,096 rows on; what it reads before comes plain."""
    table = Tracked(tmp_path / "t", SCHEMA, ordering=ordering, buckets=1)
    for version, size in enumerate((4_000, 5_000, 4_096, 100)):
        table.upsert([row(f"k{number * (version + 1):05}", version % 3, version) for number in range(size)])
    expected = table.expected()
    assert_all_agree(spark, table.path, expected)
    assert not table.table.compact().dropped
    assert not [part for part in table.table.scan().slices() if part.logs]
    assert_all_agree(spark, table.path, expected)


@MODES
def test_thirty_commits_of_random_operations(spark: Any, tmp_path: Path, ordering: str | None) -> None:
    """Two partition columns; keys and ordering values few enough to collide. Some rows of every outcome are certain to occur."""
    schema = pa.schema([("region", pa.string()), ("day", pa.date32()), *SCHEMA])
    table = Tracked(tmp_path / "t", schema, key=("id", "part"), partition=("region", "day"), ordering=ordering, buckets=3)
    dice = random.Random(7 if ordering else 8)
    for commit in range(30):
        rows = [random_row(dice, commit) for _ in range(dice.choice([1, 3, 20]))]
        if dice.random() < 0.3:
            table.delete(rows)
        else:
            table.upsert(rows)
    assert len(table.table.commits()) == 30
    assert len(table.oracle.rows()) >= 50
    assert table.table.verify().ok
    assert_all_agree(spark, table.path, table.expected())


def random_row(dice: random.Random, commit: int) -> Row:
    number = dice.randrange(40)
    made = row(f"k{number}", dice.randrange(max(1, commit - 8), commit + 3), commit * 100 + dice.randrange(100), f"p{number % 2}")
    return made | {"region": ("north", "süd/ost")[dice.randrange(2)], "day": DAYS[dice.randrange(2)]}


DAYS = pa.array([20_000, 20_001], pa.date32()).to_pylist()


@MODES
def test_upserts_and_deletes_of_one_transaction_apply_in_their_order(spark: Any, tmp_path: Path, ordering: str | None) -> None:
    """Base file and log files of one instant; then several log files of one instant."""
    table = Tracked(tmp_path / "t", SCHEMA, ordering=ordering, buckets=1)
    steps: list[tuple[str, Sequence[Row]]] = [
        ("upsert", some("abcd", 5, 1)),
        ("upsert", some("ab", 4, 2) + some("ce", 5, 2)),
        ("delete", some("ad", 5, 0) + some("b", 3, 0)),
        ("upsert", some("d", 6, 3) + some("a", 4, 3)),
    ]
    for shift in (0, 1):
        with table.table.transaction() as transaction:
            for name, rows in steps:
                moved = [made | {"ts": made["ts"] + shift} for made in rows]
                getattr(transaction, name)(table.arrow(moved))
                getattr(table.oracle, name)(moved)
    assert [kind(file) for file in data_files(table.path)].count("base") == 1
    assert len(data_files(table.path)) == 8
    assert len(table.table.commits()) == 2
    assert_all_agree(spark, table.path, table.expected())


@MODES
def test_two_transactions_open_at_once_count_in_the_order_of_their_beginning(
    spark: Any, tmp_path: Path, ordering: str | None
) -> None:
    """Fact HF3. The later one writes its files first, to groups of both kinds: with files, and without any."""
    table = Tracked(tmp_path / "t", SCHEMA, ordering=ordering, buckets=1)
    table.upsert(some("abcd", 5, 1))
    first, second = table.table.transaction(), table.table.transaction()
    new = [row("x", 1, 3, part="new")]
    second.upsert(table.arrow(some("ab", 5, 3) + some("n", 5, 3) + new))
    second.delete(table.arrow(some("d", 5, 0)))
    first.upsert(table.arrow(some("ac", 5, 2) + some("no", 5, 2) + some("d", 6, 2)))
    first.commit()
    second.commit()
    table.oracle.upsert(some("ac", 5, 2) + some("no", 5, 2) + some("d", 6, 2))
    table.oracle.upsert(some("ab", 5, 3) + some("n", 5, 3) + new)
    table.oracle.delete(some("d", 5, 0))
    assert_all_agree(spark, table.path, table.expected())


def test_a_new_partition_begun_by_the_later_of_two_open_transactions(spark: Any, tmp_path: Path) -> None:
    """It may not begin with a base file, which would hide what the older one puts beside it."""
    table = Tracked(tmp_path / "t", SCHEMA, partition=("part",), ordering="ts", buckets=1)
    table.upsert(some("a", 1, 1))
    first, second = table.table.transaction(), table.table.transaction()
    second.upsert(table.arrow([row("x", 5, 3, "new"), row("y", 5, 3, "new")]))
    first.upsert(table.arrow([row("x", 6, 2, "new"), row("z", 5, 2, "new")]))
    first.commit()
    second.commit()
    table.oracle.upsert([row("x", 6, 2, "new"), row("z", 5, 2, "new")])
    table.oracle.upsert([row("x", 5, 3, "new"), row("y", 5, 3, "new")])
    assert_all_agree(spark, table.path, table.expected())


def test_a_rolled_back_transaction_leaves_nothing_to_see(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, ordering="ts")
    table.upsert(some("abc", 1, 1))
    transaction = table.table.transaction()
    transaction.upsert(table.arrow(some("cde", 9, 9)))
    transaction.rollback()
    table.upsert(some("d", 2, 2))
    assert_all_agree(spark, table.path, table.expected())


@MODES
def test_file_groups_whose_first_operation_is_a_delete(spark: Any, tmp_path: Path, ordering: str | None) -> None:
    """They consist of log files only."""
    table = Tracked(tmp_path / "t", SCHEMA, partition=("part",), ordering=ordering, buckets=1)
    table.delete(some("ab", 5, 0))
    assert_all_agree(spark, table.path, table.expected())
    table.upsert(some("ab", 4, 1) + some("cd", 5, 1))
    table.upsert(some("a", 6, 2))
    table.delete(some("c", 5, 0))
    assert {kind(file) for file in data_files(table.path)} == {"log"}
    assert_all_agree(spark, table.path, table.expected())


def test_a_table_before_its_first_commit_and_with_all_rows_deleted(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, ordering="ts")
    assert_all_agree(spark, table.path, table.expected())
    table.upsert(some("ab", 1, 1))
    table.delete(some("ab", 2, 0))
    assert_all_agree(spark, table.path, table.expected())


def test_a_handle_that_wrote_reads_what_a_new_one_reads(spark: Any, tmp_path: Path) -> None:
    """The view that took our commits in without listing, against Spark's."""
    table = Tracked(tmp_path / "t", SCHEMA, partition=("part",), ordering="ts")
    for step in range(4):
        table.upsert([row("a", step, step), row("b", -step, step), row(f"n{step}", 1, step, f"p{step}")])
        assert sorted(table.table.scan().to_table().to_pylist(), key=repr) == sorted(table.oracle.rows(), key=repr)
    assert_all_agree(spark, table.path, table.expected())
    assert isinstance(table.table, hudi.Table)
