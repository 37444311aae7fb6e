"""Tables of version 8 that Hudi on Spark writes here and now: we read what Spark reads, meta columns included."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables.errors import UnsupportedTableError
from support.readers import read_by_hudi_rs, read_by_us
from support.same_rows import assert_same_rows
from support.spark_hudi import SparkTable, read_by_spark

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32()), ("note", pa.string())])
ALL_DONE = ["deltacommit.inflight", "deltacommit.requested", "deltacommit"]

MakeTable = Callable[..., SparkTable]


def rows(ids: Iterable[int], ts: int, tag: str = "", parts: Sequence[str] = ("a", "b", "c")) -> pa.Table:
    """A row per id; a fifth of the notes null; the partition follows from the id."""
    numbers = list(ids)
    columns = {
        "id": [f"k{number:03d}" for number in numbers],
        "part": [parts[number % len(parts)] for number in numbers],
        "ts": [ts] * len(numbers),
        "v": [number * ts for number in numbers],
        "note": [f"{tag}{number}" if number % 5 else None for number in numbers],
    }
    return pa.table(columns, schema=SCHEMA)


def deletes_in_rows(ids: Iterable[int], ts: int) -> pa.Table:
    """Rows that Hudi takes as deletes."""
    found = rows(ids, ts)
    return found.append_column("_hoodie_is_deleted", pa.array([True] * found.num_rows))


def assert_readers_agree(table: SparkTable, *, live: int, hudi_rs: bool = True) -> None:
    """``live``: how many rows the story says there are, so that readers cannot agree on nothing."""
    expected = table.rows()
    assert expected.num_rows == live
    assert_same_rows(read_by_us(table.path, meta_columns=True), expected, "our reader")
    if hudi_rs:
        assert_same_rows(read_by_hudi_rs(table.path), expected, "hudi-rs")


@pytest.fixture
def make(spark: Any, tmp_path: Path) -> MakeTable:
    def make_table(name: str = "t", **options: Any) -> SparkTable:
        return SparkTable(spark, tmp_path, name, **options)

    return make_table


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
@pytest.mark.parametrize("partition", [[], ["part"]], ids=["whole", "partitioned"])
def test_updates_and_deletes_of_both_kinds_in_log_blocks_of_both_formats(make: MakeTable, blocks: str, partition: list[str]) -> None:
    table = make(partition=partition, options={"hoodie.logfile.data.block.format": blocks, "hoodie.datasource.write.hive_style_partitioning": "true"})
    table.upsert(rows(range(12), 1).append_column("_hoodie_is_deleted", pa.array([False] * 12)))
    table.upsert(rows(range(6, 18), 2).append_column("_hoodie_is_deleted", pa.array([False] * 12)))
    table.delete(deletes_in_rows(range(3), 3))
    table.upsert(deletes_in_rows(range(9, 11), 3))
    table.upsert(deletes_in_rows([11], 1))  # late: stays
    assert_readers_agree(table, live=18 - 3 - 2)


def test_commit_time_order_takes_the_last_write(make: MakeTable) -> None:
    table = make(ordering=None, options={"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})
    table.upsert(rows(range(8), 5, "first "))
    table.upsert(rows(range(4, 12), 1, "last "))
    table.delete(rows([0], 0))
    assert_readers_agree(table, live=11)
    assert sum(note.startswith("last ") for note in read_by_us(table.path)["note"].drop_null().to_pylist()) == 6


def test_late_rows_lose_and_ties_go_to_the_later_write(make: MakeTable) -> None:
    table = make(options={"hoodie.logfile.data.block.format": "parquet"})
    table.upsert(rows(range(8), 5, "first "))
    table.upsert(rows(range(4), 4, "late "))
    table.upsert(rows(range(4, 8), 5, "tie "))
    assert_readers_agree(table, live=8)


def test_a_compaction_before_it_runs_after_it_ran_and_after_the_clean(make: MakeTable) -> None:
    table = make(partition=["part"])
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(6, 14), 2))
    table.delete(rows(range(2), 3))
    table.call("run_compaction", op="schedule")
    table.upsert(rows(range(2, 8), 2))
    assert table.actions()[-4:] == ["compaction.requested", *ALL_DONE]
    assert_readers_agree(table, live=14 - 2)

    table.run_scheduled_compactions()
    table.upsert(rows(range(5, 9), 6))
    assert "commit" in table.actions()
    assert_readers_agree(table, live=12)

    before = len(data_files(table.path))
    table.call("run_clean", retain_commits=1)
    assert len(data_files(table.path)) < before
    assert_readers_agree(table, live=12)


def test_overwritten_and_deleted_partitions_and_a_whole_table_overwritten(make: MakeTable) -> None:
    table = make(partition=["part"], index="SIMPLE")
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(4), 2))
    table.write(rows(range(30, 33), 2, parts=["a"]), "insert_overwrite")
    assert_readers_agree(table, live=12 - 4 + 3)
    table.write(rows([0], 2, parts=["b"]), "delete_partition", hoodie_datasource_write_partitions_to_delete="b")
    table.upsert(rows([2, 5, 30], 3, parts=["c"]))
    assert_readers_agree(table, live=3 + 5)
    table.write(rows(range(3), 1), "insert_overwrite_table")
    assert_readers_agree(table, live=3)
    assert table.actions().count("replacecommit") == 3


def test_clustering_before_and_after_it_ran(make: MakeTable) -> None:
    table = make(index="SIMPLE")
    table.write(rows(range(8), 1), "bulk_insert")
    table.write(rows(range(8, 16), 1), "bulk_insert")
    table.call("run_clustering", op="schedule")
    assert table.actions()[-1] == "clustering.requested"
    assert_readers_agree(table, live=16)
    table.call("run_clustering", op="execute")
    table.upsert(rows(range(4, 20), 2))
    assert "replacecommit" in table.actions()
    assert_readers_agree(table, live=20)


def test_an_archived_timeline(make: MakeTable) -> None:
    table = make(
        options={
            "hoodie.keep.min.commits": "3",
            "hoodie.keep.max.commits": "4",
            "hoodie.clean.commits.retained": "2",
            "hoodie.clean.automatic": "true",
            "hoodie.compact.inline": "true",
            "hoodie.compact.inline.max.delta.commits": "4",
        }
    )
    for step in range(8):
        table.upsert(rows(range(step, step + 4), step))
    assert len(table.actions()) < 3 * 8, "nothing was archived"
    assert_readers_agree(table, live=11)


def test_log_files_whose_instants_are_archived(make: MakeTable) -> None:
    """Without a compaction the files of all commits stay, while the timeline keeps the last few."""
    settings = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "true"}
    table = make(options=settings)
    for step in range(6):
        table.upsert(rows(range(step, step + 4), step))
    oldest = min(name[:17] for name in (file.name for file in (table.path / ".hoodie" / "timeline").glob("2*")))
    assert any(oldest > instant_of(log) for log in data_files(table.path)), "nothing was archived"
    assert_readers_agree(table, live=9)


def test_a_failed_commit_that_the_next_write_rolls_back(make: MakeTable) -> None:
    table = make()
    table.upsert(rows(range(6), 1))
    table.upsert(rows(range(3, 9), 2))
    completed = max((table.path / ".hoodie" / "timeline").glob("*.deltacommit"))
    completed.unlink()
    assert_readers_agree(table, live=6)
    table.upsert(rows([7], 3))
    assert "rollback" in table.actions()
    assert_readers_agree(table, live=7)


def test_a_savepoint_a_restore_to_it_and_a_rollback(make: MakeTable) -> None:
    table = make(partition=["part"])
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(2, 6), 2))
    saved = max(file.name for file in (table.path / ".hoodie" / "timeline").glob("*.deltacommit"))[:17]
    table.call("create_savepoint", commit_time=saved)
    table.upsert(rows(range(4, 20), 3))
    assert_readers_agree(table, live=20)
    table.call("rollback_to_savepoint", instant_time=saved)
    assert "restore" in table.actions()
    assert_readers_agree(table, live=12)
    table.upsert(rows(range(4, 7), 4))
    newest = max(file.name for file in (table.path / ".hoodie" / "timeline").glob("*.deltacommit"))[:17]
    table.call("rollback_to_instant", instant_time=newest)
    assert_readers_agree(table, live=12)


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_an_added_column_and_an_int_that_became_long(make: MakeTable, blocks: str) -> None:
    """hudi-rs 0.5.0 refuses the promoted column ("partial-update column 'v' has type Int32 …")."""
    table = make(options={"hoodie.logfile.data.block.format": blocks})
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(2, 6), 2))
    more = rows(range(4, 8), 3).append_column("extra", pa.array([1.5, None, -2.5, 0.0]))
    table.upsert(more)
    assert_readers_agree(table, live=12)
    table.upsert(more.slice(1, 2).set_column(3, "v", pa.array([2**40, -1])).set_column(2, "ts", pa.array([4, 4])))
    assert_readers_agree(table, live=12, hudi_rs=False)
    with pytest.raises(Exception, match="type Int32 but the table schema expects Int64"):
        read_by_hudi_rs(table.path)


def test_log_compaction(make: MakeTable) -> None:
    settings = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "2"}
    table = make(options=settings)
    for step in range(4):
        table.upsert(rows(range(step, step + 4), step))
        table.delete(rows([step], step))
    assert "logcompaction.requested" in table.actions()
    assert_readers_agree(table, live=3)


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE", "INMEMORY"])
def test_tables_of_other_indexes(make: MakeTable, index: str) -> None:
    """INMEMORY writes inserts to log files: groups without a base file."""
    table = make(partition=["part"], index=index)
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(2, 6), 2))
    table.delete(rows(range(2), 2))
    assert (index == "INMEMORY") != any(file.suffix == ".parquet" for file in data_files(table.path))
    assert_readers_agree(table, live=10)


def test_consistent_hashing_before_and_after_it_split_buckets(make: MakeTable) -> None:
    table = make(
        partition=["part"],
        options={
            "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
            "hoodie.bucket.index.max.num.buckets": "8",
            "hoodie.bucket.index.min.num.buckets": "1",
            "hoodie.parquet.max.file.size": "1000",
            "hoodie.bucket.index.split.threshold": "0.1",
            "hoodie.clustering.plan.strategy.class": "org.apache.hudi.client.clustering.plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
            "hoodie.clustering.execution.strategy.class": "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
        },
    )
    table.upsert(rows(range(40), 1))
    assert_readers_agree(table, live=40)
    table.call("run_clustering", op="scheduleAndExecute")
    table.upsert(rows(range(30, 50), 2))
    assert "replacecommit" in table.actions()
    assert_readers_agree(table, live=50)


def test_several_data_blocks_in_one_log_file(make: MakeTable) -> None:
    table = make(options={"hoodie.logfile.data.block.max.size": "200"})
    table.upsert(rows(range(40), 1))
    table.upsert(rows(range(40), 2))
    log = next(file for file in data_files(table.path) if ".log." in file.name)
    assert log.read_bytes().count(b"#HUDI#") > 3
    assert_readers_agree(table, live=40)


def test_a_metadata_table_of_spark_changes_nothing_for_a_reader(spark: Any, make: MakeTable) -> None:
    table = make(partition=["part"], options={"hoodie.metadata.enable": "true"})
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(2, 6), 2))
    assert (table.path / ".hoodie" / "metadata").is_dir()
    assert_readers_agree(table, live=12)
    assert_same_rows(read_by_us(table.path, meta_columns=True), read_by_spark(spark, table.path, metadata_table=True), "our reader")


def test_a_table_that_was_upgraded_from_version_6(make: MakeTable) -> None:
    table = make(partition=["part"], options={"hoodie.write.table.version": "6"})
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(2, 6), 2))
    table.upsert(rows(range(5, 8), 3), hoodie_write_table_version="8", hoodie_write_auto_upgrade="true")
    assert "hoodie.table.version=8" in (table.path / ".hoodie" / "hoodie.properties").read_text().splitlines()
    assert_readers_agree(table, live=12)


def test_non_blocking_writers_leave_log_files_only(make: MakeTable) -> None:
    settings = {
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    }
    table = make(options=settings)
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(6, 18), 2))
    assert not any(file.suffix == ".parquet" for file in data_files(table.path))
    assert_readers_agree(table, live=18)


EVERYTHING = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("c_short", pa.int16()),
        ("c_int", pa.int32()),
        ("c_long", pa.int64()),
        ("c_float", pa.float32()),
        ("c_double", pa.float64()),
        ("c_dec5", pa.decimal128(5, 2)),
        ("c_dec18", pa.decimal128(18, 4)),
        ("c_dec38", pa.decimal128(38, 10)),
        ("c_string", pa.string()),
        ("c_binary", pa.binary()),
        ("c_bool", pa.bool_()),
        ("c_date", pa.date32()),
        ("c_time", pa.timestamp("us", tz="UTC")),
        ("c_list", pa.list_(pa.int32())),
        ("c_map", pa.map_(pa.string(), pa.int64())),
        ("c_struct", pa.struct([("a", pa.int32()), ("l", pa.list_(pa.string())), ("t", pa.timestamp("us", tz="UTC"))])),
        ("c_structs", pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.float64())), ("b", pa.binary())]))),
    ]
)


def everything(ids: Iterable[int], ts: int) -> pa.Table:
    """Every type that Spark writes, with its extremes; every third row holds nulls only."""
    found = []
    for number in ids:
        sign = 1 if number % 2 else -1
        full: dict[str, Any] = {
            "c_short": sign * 32767,
            "c_int": sign * (2**31 - 1),
            "c_long": sign * (2**63 - 1),
            "c_float": [float("nan"), float("inf"), -0.0, 1.5][number % 4],
            "c_double": [1e308, float("nan"), float("-inf"), -0.0][number % 4],
            "c_dec5": Decimal("999.99").copy_sign(Decimal(sign)),
            "c_dec18": Decimal("99999999999999.9999").copy_sign(Decimal(sign)),
            "c_dec38": Decimal("9999999999999999999999999999.9999999999").copy_sign(Decimal(sign)),
            "c_string": ["", "ä€😀", "plain"][number % 3],
            "c_binary": [b"", b"\x00\xff"][number % 2],
            "c_bool": number % 2 == 0,
            "c_date": date(2026, 2, 28) if number % 2 else date(1969, 12, 31),
            "c_time": datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC) if number % 2 else datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
            "c_list": [[], [number, -number]][number % 2],
            "c_map": [[], [("a", number), ("", None)]][number % 2],
            "c_struct": {"a": None, "l": ["x", ""], "t": datetime(2001, 1, 1, tzinfo=UTC)},
            "c_structs": [{"m": [("k", 0.5)], "b": b"\x01"}, {"m": None, "b": None}],
        }
        found.append({"id": f"k{number}", "ts": ts} | (full if number % 3 else {}))
    return pa.Table.from_pylist(found, schema=EVERYTHING)


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_every_type_that_spark_writes(make: MakeTable, blocks: str) -> None:
    """Base files by Spark's row writer (bulk insert) and by Hudi's Avro writer, and log blocks.

    hudi-rs 0.5.0 cannot bring a timestamp inside another type from an Avro block to the table's schema.
    """
    table = make(options={"hoodie.logfile.data.block.format": blocks}, index="SIMPLE")
    table.write(everything(range(8), 1), "bulk_insert")
    table.write(everything(range(8, 16), 1), "insert", hoodie_parquet_small_file_limit="0")
    table.upsert(everything(range(4, 12), 2))
    assert_readers_agree(table, live=16, hudi_rs=blocks == "parquet")
    if blocks == "avro":
        with pytest.raises(Exception, match="leaf type Timestamp"):
            read_by_hudi_rs(table.path)


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_timestamps_without_zone_that_hudi_rs_cannot_read(spark: Any, make: MakeTable, blocks: str) -> None:
    """The reason why we store such columns with the zone UTC: hudi-rs 0.5.0 panics on Avro's local timestamps."""
    table = make(options={"hoodie.logfile.data.block.format": blocks})
    stamped = rows(range(6), 1).append_column("local", pa.array([datetime(2026, 2, 28, 1, 2, 3, 4)] * 6, pa.timestamp("us")))
    spark.conf.set("spark.sql.parquet.inferTimestampNTZ.enabled", "true")
    table.upsert(stamped)
    table.upsert(stamped.slice(2, 3))
    spark.conf.set("spark.sql.parquet.inferTimestampNTZ.enabled", "false")
    assert table.rows().schema.field("local").type == pa.timestamp("us")
    assert_readers_agree(table, live=6, hudi_rs=False)
    with pytest.raises(BaseException, match="not yet implemented"):  # a Rust panic is no Exception
        read_by_hudi_rs(table.path)


def test_partial_updates_of_merge_into_are_refused(make: MakeTable) -> None:
    table = make(options={"hoodie.spark.sql.merge.into.partial.updates": "true"})
    table.upsert(rows(range(12), 1))
    table.sql("merge into {t} t using (select 'k003' id, 9L ts, 77 v) s on t.id = s.id when matched then update set t.ts = s.ts, t.v = s.v")
    assert table.rows().num_rows == 12
    with pytest.raises(UnsupportedTableError, match="partial updates"):
        read_by_us(table.path)


def test_tables_whose_rows_carry_no_keys_are_refused(make: MakeTable) -> None:
    table = make(options={"hoodie.populate.meta.fields": "false"})
    table.upsert(rows(range(4), 1))
    with pytest.raises(UnsupportedTableError, match="virtual keys"):
        read_by_us(table.path)


def data_files(path: Path) -> list[Path]:
    """Base and log files."""
    found = [file for file in path.rglob("*") if ".hoodie" not in file.parts and file.is_file()]
    return [file for file in found if not file.name.startswith(".hoodie") and not file.name.endswith(".crc")]


def instant_of(file: Path) -> str:
    """The instant in a file's name."""
    return file.name.split("_")[1].split(".")[0] if ".log." in file.name else file.stem.split("_")[2]
