"""Tables of version 8 that Hudi on Spark writes here and now: we read what Spark reads, meta columns included."""

from typing import Any

import pyarrow as pa
import pytest

from headgate_tables.errors import UnsupportedTableError
from support.readers import read_by_us
from support.same_rows import assert_same_rows
from support.spark_hudi import read_by_spark
from support.spark_rows import MakeTable, assert_readers_agree, deletes_in_rows, rows
from support.table_files import data_files


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
@pytest.mark.parametrize("partition", [[], ["part"]], ids=["whole", "partitioned"])
def test_updates_and_deletes_of_both_kinds_in_log_blocks_of_both_formats(
    make: MakeTable, blocks: str, partition: list[str]
) -> None:
    table = make(
        partition=partition,
        options={"hoodie.logfile.data.block.format": blocks, "hoodie.datasource.write.hive_style_partitioning": "true"},
    )
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


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE", "INMEMORY"])
def test_tables_of_other_indexes(make: MakeTable, index: str) -> None:
    """INMEMORY writes inserts to log files: groups without a base file. A global index moves a key that changes its partition."""
    table = make(partition=["part"], index=index)
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(2, 6), 2))
    table.delete(rows(range(2), 2))
    table.upsert(rows([4], 3, "moved ", parts=["c"]))
    assert (index == "INMEMORY") != any(file.suffix == ".parquet" for file in data_files(table.path))
    assert_readers_agree(table, live=10 if index == "GLOBAL_SIMPLE" else 11)


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
    assert_same_rows(
        read_by_us(table.path, meta_columns=True), read_by_spark(spark, table.path, metadata_table=True), "our reader"
    )


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


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_partial_updates_of_merge_into(make: MakeTable, blocks: str) -> None:
    """Log blocks that hold the changed columns only, over base rows, over log rows, over each other; late ones lose."""
    table = make(options={"hoodie.spark.sql.merge.into.partial.updates": "true", "hoodie.logfile.data.block.format": blocks})
    table.upsert(rows(range(12), 5))
    table.upsert(rows(range(3, 6), 6))
    for source, assignments in (
        (
            "select 'k003' id, 9L ts, 77 v union all select 'k006', 0L, 78 union all select 'k007', 5L, 79",
            "t.ts = s.ts, t.v = s.v",
        ),
        ("select 'k003' id, 10L ts, 'noted' note union all select 'k004', 7L, null", "t.ts = s.ts, t.note = s.note"),
    ):
        table.sql(f"merge into {{t}} t using ({source}) s on t.id = s.id when matched then update set {assignments}")
    assert any(
        b'"name":"v"' in file.read_bytes() and b'"name":"note"' not in file.read_bytes() for file in data_files(table.path)
    )
    assert_readers_agree(table, live=12)


def test_change_data_logs_are_passed_over(make: MakeTable) -> None:
    table = make(
        options={
            "hoodie.table.cdc.enabled": "true",
            "hoodie.compact.inline": "true",
            "hoodie.compact.inline.max.delta.commits": "2",
        }
    )
    table.upsert(rows(range(6), 1))
    table.upsert(rows(range(4, 8), 2))
    table.upsert(rows([7], 3))
    assert any(file.name.endswith(".cdc") for file in data_files(table.path))
    assert_readers_agree(table, live=8)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"hoodie.populate.meta.fields": "false"}, "virtual keys"),
        (
            {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"},
            "CUSTOM",
        ),
    ],
    ids=["virtual-keys", "custom-merge"],
)
def test_tables_that_we_would_read_wrongly_are_refused(make: MakeTable, options: dict[str, str], why: str) -> None:
    table = make(partition=["part"], options=options)
    table.upsert(rows(range(4), 1))
    with pytest.raises(UnsupportedTableError, match=why):
        read_by_us(table.path)
