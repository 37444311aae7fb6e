"""Parquet files that tasks read by Arrow: the same rows as by Spark, which reads wherever there is a doubt."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_spark import bulk_insert, plan_bulk_insert, scans, upsert
from headgate_spark.likeness import Scan, why_not, why_out_of_reach
from headgate_spark.packing import PIECE_BYTES, PIECES_AT_ONCE, Packer, unpacked
from headgate_spark.source_files import FilePlace, Group, shares_of
from headgate_spark.spread import TASK
from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, MissingFileError, OptionError
from support.bulk_rows import ROWS, SCHEMA, expected, new_table, row, write
from support.readers import read_by_us
from support.same_rows import assert_same_rows

_NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
_OTHER_TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "id": (pa.dictionary(pa.int32(), pa.string()), lambda n: f"k{n}é"),
    "ts": (pa.int64(), lambda n: n),
    "small": (pa.int8(), lambda n: n % 100 - 50),
    "large": (pa.large_string(), lambda n: "x" * (n % 5)),
    "bytes": (pa.binary(), lambda n: bytes([n % 256])),
    "ms": (pa.timestamp("ms", "Europe/Paris"), lambda n: _NOON + datetime.timedelta(milliseconds=n)),
    "day": (pa.date32(), lambda n: datetime.date(1600, 1, 1) + datetime.timedelta(days=n)),
    "amount": (pa.decimal128(30, 4), lambda n: decimal.Decimal(n) / 16),
    "flag": (pa.bool_(), lambda n: n % 3 == 0),
    "real": (pa.float32(), lambda n: n / 8),
    "deep": (pa.list_(pa.struct([("a", pa.int32()), ("b", pa.map_(pa.string(), pa.float64()))])), lambda n: _deep(n)),
}


def _deep(number: int) -> list[dict[str, Any]]:
    return [{"a": number, "b": [(f"m{number % 4}", number / 4)]}] * (number % 3)


def _rows(first: int, count: int) -> pa.Table:
    columns = [
        pa.array([None if name not in ("id", "ts") and n % 7 == 3 else value(n) for n in range(first, first + count)], kind)
        for name, (kind, value) in _OTHER_TYPES.items()
    ]
    return pa.table(columns, names=list(_OTHER_TYPES))


def _planned(spark: Any, url: str, frame: Any) -> tuple[str, str]:
    with hudi.open_table(url) as table:
        plan = plan_bulk_insert(frame, table, tasks=2)
    return plan.read_by, plan.why


def test_all_types_are_read_as_spark_reads_them_from_many_row_groups_and_files(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a b%25c"
    (folder / "_hidden").mkdir(parents=True)
    pq.write_table(_rows(0, 500), folder / "one two.parquet", row_group_size=120, compression="zstd")
    pq.write_table(_rows(400, 300).select(list(_OTHER_TYPES)[::-1]), folder / "three%.parquet", row_group_size=1000)
    pq.write_table(_rows(9000, 10), folder / "_hidden" / "x.parquet")
    kinds = {name: kind for name, (kind, _) in _OTHER_TYPES.items()} | {"ms": pa.timestamp("us", "UTC")}  # as Spark has it
    frame, schema = spark.read.parquet(str(folder)), pa.schema(list(kinds.items()))
    found = {}
    for read_by in ("auto", "spark"):
        url = str(tmp_path / read_by)
        hudi.create_table(url, schema, record_key=["id"], ordering="ts", buckets=3).close()
        assert read_by == "spark" or _planned(spark, url, frame) == ("arrow", "")
        assert bulk_insert(frame, url, tasks=2, read_by=read_by).superseded == 100
        found[read_by] = read_by_us(tmp_path / read_by)
    assert found["auto"].num_rows == 700
    assert_same_rows(found["auto"], found["spark"], "what Spark read")


def test_the_session_of_the_caller_keeps_its_settings(spark: Any, tmp_path: Path) -> None:
    name, before = "spark.sql.execution.arrow.maxRecordsPerBatch", spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    bulk_insert(spark.read.parquet(write(tmp_path / "r.parquet", ROWS)), new_table(tmp_path / "t"), tasks=1, read_by="arrow")
    assert spark.conf.get(name) == before
    assert type(spark).getActiveSession().conf.get(name) == before
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")


def test_a_live_load_reads_by_arrow_too(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate_spark import loading

    monkeypatch.setattr(loading, "_rows_by_spark", None)
    url = new_table(tmp_path / "t")
    upsert(spark.read.parquet(write(tmp_path / "r.parquet", ROWS)), url, tasks=2)
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")


@pytest.mark.parametrize("tasks", [None, 1])
def test_few_rows_are_read_by_spark_and_the_driver_opens_no_file(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: int | None
) -> None:
    """A batch of a stream, for one: the next one waits meanwhile."""
    monkeypatch.setattr(scans._Footers, "look", None)
    url, frame = new_table(tmp_path / "t"), spark.read.parquet(write(tmp_path / "r.parquet", ROWS))
    with hudi.open_table(url) as table:
        plan = plan_bulk_insert(frame, table, tasks=tasks)
    assert (plan.tasks, plan.read_by, plan.why) == (1, "spark", "one task reads and writes the few rows")
    upsert(frame, url, tasks=tasks)
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")


def _int96(path: Path, rows: pa.Table) -> None:
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)


def _old(path: Path, rows: pa.Table) -> None:
    days = pa.array([datetime.date(1500, 1, 1)] * rows.num_rows)
    pq.write_table(rows.set_column(rows.schema.get_field_index("day"), "day", days), path)


def _without_statistics(path: Path, rows: pa.Table) -> None:
    pq.write_table(rows, path, write_statistics=False)


def _by_an_old_spark(path: Path, rows: pa.Table) -> None:
    pq.write_table(
        rows.replace_schema_metadata({"org.apache.spark.version": "2.4.8", "ARROW:schema": ""}), path, store_schema=False
    )


def _without_zone(path: Path, rows: pa.Table) -> None:
    at = rows.schema.get_field_index("at")
    pq.write_table(rows.set_column(at, "at", rows["at"].cast(pa.timestamp("us"))), path)


def _partitioned(path: Path, rows: pa.Table) -> None:
    (path / "v=1").mkdir(parents=True)
    pq.write_table(rows.drop_columns(["v"]), path / "v=1" / "x.parquet")


def _unlike(path: Path, rows: pa.Table) -> None:
    path.mkdir()
    pq.write_table(rows, path / "a.parquet")
    pq.write_table(rows.drop_columns(["price"]), path / "b.parquet")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_int96, "96 bits"),
        (_old, "dates before 1582 or times before 1900 in 'day'"),
        (_without_statistics, "dates before 1582 or times before 1900 in 'at'"),
        (_without_zone, "the column 'at' as timestamp[us], and Spark"),
        (_partitioned, "names of folders"),
        (_unlike, "b.parquet has no columns of the name 'price'"),
    ],
)
def test_spark_reads_files_of_which_arrow_may_give_other_rows(spark: Any, tmp_path: Path, make: Any, why: str) -> None:
    make(tmp_path / "f.parquet", pa.Table.from_pylist([row(number) for number in range(20)], schema=SCHEMA))
    by, reason = _planned(spark, new_table(tmp_path / "t"), spark.read.parquet(str(tmp_path / "f.parquet")))
    assert (by, why in reason) == ("spark", True), reason


def test_spark_reads_what_is_more_than_a_scan_or_has_settings_that_change_it(spark: Any, tmp_path: Path) -> None:
    source, url = write(tmp_path / "r.parquet", ROWS), new_table(tmp_path / "t")
    frame = spark.read.parquet(source)
    for other in (
        frame.where("ts > 3"),
        frame.limit(3),
        frame.union(frame),
        spark.createDataFrame(frame.collect(), frame.schema),
    ):
        assert _planned(spark, url, other)[0] == "spark"
    assert "bytes" in _planned(spark, url, spark.read.parquet(source, source))[1]
    assert "options: mergeschema" in _planned(spark, url, spark.read.option("mergeSchema", "true").parquet(source))[1]
    cached = spark.read.parquet(source).cache()
    assert _planned(spark, url, cached)[0] == "spark"
    cached.unpersist()
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert "ignoreCorruptFiles" in _planned(spark, url, spark.read.parquet(source))[1]
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    with pytest.raises(OptionError, match="more than a scan") as error:
        bulk_insert(frame.where("ts > 3"), url, read_by="arrow")
    assert "`spark`" in error.value.fix


def test_ancient_days_are_read_where_spark_says_what_they_are(spark: Any, tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([row(number) for number in range(20)], schema=SCHEMA)
    days = pa.array([datetime.date(1500, 1, 1)] * 20)
    rows = rows.set_column(rows.schema.get_field_index("day"), "day", days)
    url = new_table(tmp_path / "t")
    for version, legacy, by in (("3.5.1", False, "arrow"), ("3.5.1", True, "spark"), ("2.4.8", False, "spark")):
        keys = {"org.apache.spark.version": version, **({"org.apache.spark.legacyDateTime": ""} if legacy else {})}
        pq.write_table(rows.replace_schema_metadata(keys), tmp_path / "f.parquet")
        assert _planned(spark, url, spark.read.parquet(str(tmp_path / "f.parquet")))[0] == by


def test_a_damaged_file_is_one_typed_error_that_names_it(spark: Any, tmp_path: Path) -> None:
    path, url = tmp_path / "bad one.parquet", new_table(tmp_path / "t")
    pq.write_table(pa.Table.from_pylist(ROWS, schema=SCHEMA), path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"bad one\.parquet: "):
        bulk_insert(spark.read.parquet(str(path)), url, tasks=2)
    assert read_by_us(tmp_path / "t").num_rows == 0


def test_a_file_that_changes_or_goes_while_it_is_loaded_is_named(tmp_path: Path) -> None:
    from headgate_spark.source_files import SourceRows

    place = FilePlace.of(f"file://{tmp_path}/r.parquet")
    assert place is not None
    source = SourceRows(pa.schema([SCHEMA.field("id")]), str(tmp_path / "t"), None)
    with pytest.raises(MissingFileError, match=r"r\.parquet"):
        list(source.read([Group(place, 0, 800, 1)]))
    write(tmp_path / "r.parquet", ROWS[:10])
    with pytest.raises(CorruptFileError, match="changed"):
        list(source.read([Group(place, 0, 800, 1)]))
    assert sum(batch.num_rows for batch in source.read([Group(place, 0, 10, 1)])) == 10


def test_stores_that_tasks_may_not_reach_are_left_to_spark() -> None:
    assert FilePlace.of("s3a://raw/or%20ders/a.parquet") == FilePlace("s3://raw/or ders", "a.parquet")
    assert FilePlace.of("s3a://raw/a.parquet") == FilePlace("s3://raw", "a.parquet")
    assert FilePlace.of("file:///a%25/b.parquet") == FilePlace.of("file:/a%25/b.parquet") == FilePlace("/a%", "b.parquet")
    for strange in ("hdfs://host/a.parquet", "wasbs://c@a/b.parquet", "dbfs:/x.parquet"):
        assert strange in why_not(Scan([strange], 1))
    places = [FilePlace("s3://raw", "a.parquet")]
    assert why_out_of_reach(places, "s3://lake/orders") == ""
    for table in ("file:///lake/orders", "gs://lake/orders", "/lake/orders"):
        assert "another store" in why_out_of_reach(places, table)
    assert why_out_of_reach([FilePlace("/a", "b")], "s3://lake/orders") == ""
    options = {"region": "x"}
    assert places[0].options_of("s3://lake/orders", options) == options
    assert places[0].options_of("gs://lake/orders", options) is None
    assert FilePlace("/a", "b").options_of("file:///lake", options) is None
    assert why_not(Scan([], 0)) == "there is no file"


def test_pieces_are_small_few_at_a_time_and_have_each_row_once() -> None:
    rows = pa.table({"n": np.arange(3_000_000), "m": np.arange(3_000_000)})
    packer, batches = Packer(3), []
    for at in range(0, rows.num_rows, 100_000):
        numbers = (np.arange(at, at + 100_000) % 3 * 7).astype(np.int32)
        batches += packer.add(rows.slice(at, 100_000), numbers)
    assert batches  # some went before the end, for memory's sake
    batches += packer.end()
    assert max(batch.num_rows for batch in batches) <= PIECES_AT_ONCE
    found = []
    for batch in batches:
        assert max(len(piece.as_buffer()) for piece in batch.column(1)) < PIECE_BYTES + 4096
        for at in range(batch.num_rows):
            for piece in unpacked([batch.slice(at, 1)]):
                values = piece.column("n").to_numpy()
                assert set(values % 3 * 7) == {batch.column(TASK)[at].as_py()}
                found.append(values)
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(3_000_000))


def test_tasks_read_about_as_much_as_each_other() -> None:
    groups = [Group(FilePlace("/a", "b"), number, 1, size) for number, size in enumerate([50, 10, 10, 10, 30, 20])]
    shares = shares_of(groups, 60)
    assert sorted(sum(group.bytes for group in share) for share in shares) == [40, 40, 50]
    assert [len(share) for share in shares_of(groups, 1)] == [1] * 6
    assert shares_of([], 60) == []
