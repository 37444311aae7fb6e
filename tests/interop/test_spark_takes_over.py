"""Hudi on Spark goes on with a table of ours: finds our file groups, compacts, cleans, archives, and everybody reads it right."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import ForeignWriterError
from support.oracle import Row
from support.readers import assert_all_agree
from support.spark_hudi import SparkTable
from support.table_files import data_files
from support.tracked import Tracked

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("amount", pa.decimal128(18, 4)),
        ("ratio", pa.float64()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("place", pa.struct([("x", pa.float32()), ("on", pa.date32()), ("d", pa.decimal128(38, 10))])),
        ("note", pa.string()),
    ]
)
START = datetime(2026, 2, 28, 12, 0, 0, 123_456, UTC)
PARTS = ("a b", "ü", "x/y")


def row(number: int, second: int, note: str | None = None) -> Row:
    """Null in most columns of every fourth row."""
    made: Row = dict.fromkeys(SCHEMA.names)
    made |= {"id": f"k{number}", "part": PARTS[number % 3], "ts": START + timedelta(seconds=second), "note": note}
    if number % 4:
        made |= {
            "seen": datetime(2026, 1, 1, 0, 0, 0, 789_000, UTC),
            "day": date(2026, 2, number % 28 + 1),
            "amount": Decimal(f"{number}.0001"),
            "ratio": float("nan") if number % 5 == 0 else number / 7,
            "raw": bytes([number]),
            "tags": ["", "ä"] if number % 3 else [],
            "counts": [("a", number), ("b", None)],
            "place": {"x": 0.5, "on": START.date(), "d": Decimal("-0.0000000001")},
        }
    return made


def rows(numbers: Sequence[int], second: int, note: str | None = None) -> list[Row]:
    return [row(number, second, note) for number in numbers]


def spark_on(spark: Any, table: Tracked, **options: str) -> SparkTable:
    """Spark's options for a table of ours: the same keys and the bucket index that `create_table` stands for."""
    settings = {
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.clean.commits.retained": "1",
        **{key.replace("_", "."): value for key, value in options.items()},
    }
    oracle = table.oracle
    return SparkTable(
        spark,
        table.path.parent,
        table.path.name,
        key=",".join(oracle.key),
        ordering=oracle.ordering,
        partition=oracle.partition,
        options=settings,
    )


def slots(path: Path) -> dict[str, bytes]:
    """Everything that we keep beside Hudi's own files."""
    found = [file for file in (path / ".hoodie" / ".headgate").rglob("*") if file.is_file()]
    return {str(file.relative_to(path)): file.read_bytes() for file in found}


def file_ids(path: Path) -> set[tuple[str, str]]:
    with hudi.open_table(str(path)) as table:
        return {(group.partition, group.file_id) for group in table.file_groups()}


def test_spark_upserts_compacts_cleans_and_archives_a_table_of_ours(spark: Any, tmp_path: Path) -> None:
    """Facts HF9, HF12."""
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    table.delete(rows(range(15, 18), 50))  # these groups begin with a log file
    table.upsert(rows(range(12), 10, "first"))
    table.upsert(rows(range(4, 18), 20, "second"))
    table.delete(rows(range(3), 15) + rows([5], 5))
    assert_all_agree(spark, table.path, table.expected())
    ours, groups = slots(table.path), file_ids(table.path)
    by_spark = spark_on(spark, table)

    def step(act: Callable[[], object]) -> None:
        act()
        assert_all_agree(spark, table.path, table.expected())
        assert slots(table.path) == ours

    def spark_upserts(changed: list[Row], **options: str) -> Callable[[], object]:
        table.oracle.upsert(changed)
        return lambda: by_spark.upsert(table.arrow(changed), **options)

    step(spark_upserts(rows(range(8, 21), 30, "by Spark") + rows([4], 19, "late") + rows([0], 16, "again")))
    table.oracle.delete(rows([6, 7], 40))
    step(lambda: by_spark.delete(table.arrow(rows([6, 7], 40))))
    assert file_ids(table.path) == groups, "Spark hashed a key to another file group"
    assert_refused(table)

    step(lambda: by_spark.call("run_compaction", op="schedule"))
    assert by_spark.actions()[-1] == "compaction.requested"
    step(spark_upserts(rows([1, 8, 9], 60, "beside a pending compaction")))
    step(by_spark.run_scheduled_compactions)
    assert by_spark.actions().count("commit") == 1
    assert base_files(table.path) >= groups
    step(spark_upserts(rows([1, 2, 10], 70, "on compacted files") + rows([9], 59, "late")))

    files = data_files(table.path)
    step(lambda: by_spark.call("run_clean", retain_commits=1))
    assert set(data_files(table.path)) < set(files)
    assert_refused(table)

    archiving = {"hoodie_keep_min_commits": "2", "hoodie_keep_max_commits": "3", "hoodie_clean_automatic": "true"}
    step(spark_upserts(rows([3, 11], 80, "and the timeline is archived"), **archiving))
    assert by_spark.actions().count("deltacommit") <= 3
    assert_refused(table)


def assert_refused(table: Tracked) -> None:
    """By a new handle: nothing is written, not even a fence."""
    before = sorted(str(file) for file in table.path.rglob("*"))
    with hudi.open_table(str(table.path)) as again, pytest.raises(ForeignWriterError, match="another program wrote"):
        again.upsert(table.arrow(rows([1], 99)))
    assert sorted(str(file) for file in table.path.rglob("*")) == before


def test_a_handle_that_was_open_when_spark_wrote_is_refused_and_leaves_nothing_in_sparks_way(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    table.upsert(rows(range(6), 1))
    by_spark = spark_on(spark, table)
    for second in (2, 3):
        by_spark.upsert(table.arrow(rows(range(2, 8), second)))
        table.oracle.upsert(rows(range(2, 8), second))
        with pytest.raises(ForeignWriterError, match="another program wrote"):
            table.table.upsert(table.arrow(rows([1], 99)))
        by_spark.call("run_compaction", op="schedule")
        assert_all_agree(spark, table.path, table.expected())


def test_spark_merges_by_commit_time_into_a_table_without_an_ordering_column(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], buckets=2)
    table.upsert(rows(range(9), 10, "first"))
    table.upsert(rows(range(3), 5, "second"))
    by_spark = spark_on(spark, table, hoodie_record_merge_mode="COMMIT_TIME_ORDERING")
    changed = rows(range(2, 5), 1, "by Spark")
    by_spark.upsert(table.arrow(changed))
    table.oracle.upsert(changed)
    assert_all_agree(spark, table.path, table.expected())
    by_spark.call("run_compaction", op="schedule")
    by_spark.run_scheduled_compactions()
    assert_all_agree(spark, table.path, table.expected())


ODD_KEYS = ["", "a", "Aa", "BB", "größe", "日本", "😀", "a,b:c", "x" * 300, "polygenelubricants", "\uffff", "__null__", "0", "-1"]
KEYS: dict[str, tuple[list[tuple[str, pa.DataType]], list[tuple[Any, ...]]]] = {
    "string": ([("k", pa.string())], [(key,) for key in ODD_KEYS if key]),
    "int32": ([("k", pa.int32())], [(0,), (-1,), (2**31 - 1,), (-(2**31),), (1234567,)]),
    "int64": ([("k", pa.int64())], [(0,), (-1,), (2**63 - 1,), (-(2**63),), (1234567,)]),
    "two": ([("k", pa.string()), ("l", pa.int64())], [(key, number) for number, key in enumerate(ODD_KEYS) if key != "__null__"]),
    "date": ([("k", pa.date32())], [(date(2026, 2, 28),), (date(1969, 12, 31),)]),
    "bool": ([("k", pa.bool_())], [(True,), (False,)]),
}


@pytest.mark.parametrize("name", KEYS)
def test_spark_finds_every_key_in_the_bucket_where_we_put_it(spark: Any, tmp_path: Path, name: str) -> None:
    """An upsert of all keys by Spark replaces all rows: one that it looked for in another bucket would be there twice."""
    columns, values = KEYS[name]
    schema = pa.schema([*columns, ("v", pa.string())])
    names = [column for column, _ in columns]
    table = Tracked(tmp_path / "t", schema, key=names, buckets=8)
    table.upsert([dict(zip(names, value, strict=True)) | {"v": "ours"} for value in values])
    groups = file_ids(table.path)
    changed = [dict(zip(names, value, strict=True)) | {"v": "Spark's"} for value in values]
    by_spark = spark_on(spark, table, hoodie_record_merge_mode="COMMIT_TIME_ORDERING", hoodie_bucket_index_num_buckets="8")
    by_spark.upsert(table.arrow(changed))
    table.oracle.upsert(changed)
    assert_all_agree(spark, table.path, table.expected())
    assert file_ids(table.path) == groups


def test_spark_compacts_what_it_could_not_have_written(spark: Any, tmp_path: Path) -> None:
    """Lists that hold null, which its writers refuse by default; timestamps inside other types, which hudi-rs refuses in Avro."""
    stamp = pa.timestamp("us", tz="UTC")
    schema = pa.schema(
        [("id", pa.string()), ("l", pa.list_(pa.int32())), ("s", pa.struct([("t", stamp), ("l", pa.list_(stamp))]))]
    )
    table = Tracked(tmp_path / "t", schema, buckets=2)
    table.upsert([{"id": key, "l": [1, None], "s": {"t": START, "l": [None, START]}} for key in "abc"])
    table.upsert([{"id": "a", "l": [None, 2], "s": {"t": None, "l": [START]}}, {"id": "b", "l": [], "s": None}])
    by_spark = spark_on(spark, table, hoodie_record_merge_mode="COMMIT_TIME_ORDERING")
    by_spark.call("run_compaction", op="schedule")
    by_spark.run_scheduled_compactions()
    assert by_spark.actions()[-1] == "commit"
    assert_all_agree(spark, table.path, table.expected())


@pytest.mark.parametrize(
    ("kind", "value"), [(pa.timestamp("ms", tz="UTC"), START.replace(microsecond=789_000)), (pa.binary(3), b"abc")], ids=str
)
def test_spark_writes_to_types_that_it_has_not_only_when_told_to_keep_the_schema(
    spark: Any, tmp_path: Path, kind: pa.DataType, value: Any
) -> None:
    """Milliseconds and binary of fixed size. Spark reads and compacts them in any case."""
    schema = pa.schema([("id", pa.string()), ("x", kind)])
    table = Tracked(tmp_path / "t", schema, buckets=2)
    table.upsert([{"id": key, "x": value} for key in "abcd"])
    table.upsert([{"id": "a", "x": None}])
    by_spark = spark_on(spark, table, hoodie_record_merge_mode="COMMIT_TIME_ORDERING")
    by_spark.call("run_compaction", op="schedule")
    by_spark.run_scheduled_compactions()
    assert_all_agree(spark, table.path, table.expected())
    changed = [{"id": "b", "x": None}, {"id": "e", "x": value}]
    with pytest.raises(Exception, match="Schema validation backwards compatibility check failed"):
        by_spark.upsert(table.arrow(changed))
    by_spark.upsert(table.arrow(changed), hoodie_datasource_write_reconcile_schema="true")
    table.oracle.upsert(changed)
    assert_all_agree(spark, table.path, table.expected(), schema_by_spark=True)


def base_files(path: Path) -> set[tuple[str, str]]:
    """Groups of the newest view that stand on a base file."""
    with hudi.open_table(str(path)) as table:
        return {(group.partition, group.file_id) for group in table.file_groups() if group.slices()[-1].base is not None}
