"""A Spark job with default settings gives a table a metadata table, which would not know our files (fact HF4)."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import ForeignWriterError, MetadataTableError
from support.oracle import Row
from support.readers import assert_all_agree, without_meta
from support.same_rows import assert_same_rows
from support.spark_hudi import SparkTable, read_by_spark
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])


def rows(numbers: range, ts: int) -> list[Row]:
    return [{"id": f"k{number}", "part": "ab"[number % 2], "ts": ts, "v": number * ts} for number in numbers]


@pytest.fixture
def table(tmp_path: Path) -> Tracked:
    made = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    made.upsert(rows(range(8), 1))
    made.upsert(rows(range(4, 10), 2))
    return made


def with_metadata(spark: Any, table: Tracked) -> SparkTable:
    settings = {"hoodie.metadata.enable": "true", "hoodie.datasource.write.partitionpath.urlencode": "true"}
    return SparkTable(spark, table.path.parent, "t", partition=["part"], options=settings)


def test_a_spark_write_with_default_settings_is_noticed_before_our_next_commit(spark: Any, table: Tracked) -> None:
    with_metadata(spark, table).upsert(table.arrow(rows(range(3), 3)))
    table.oracle.upsert(rows(range(3), 3))
    assert (table.path / ".hoodie" / "metadata").is_dir()
    assert_all_agree(spark, table.path, table.expected())
    assert_same_rows(
        without_meta(read_by_spark(spark, table.path, metadata_table=True)), table.expected(), "Spark by its metadata table"
    )

    with pytest.raises(MetadataTableError, match="metadata table"):
        table.table.upsert(table.arrow(rows(range(1), 9)))
    with (
        hudi.open_table(str(table.path), metadata_table="remove") as again,
        pytest.raises(ForeignWriterError, match="another program"),
    ):
        again.upsert(table.arrow(rows(range(1), 9)))
    assert_all_agree(spark, table.path, table.expected())


def test_a_metadata_table_that_was_only_built_can_be_removed(spark: Any, table: Tracked) -> None:
    """Spark's procedure builds one without a commit to the table. Written past it, our rows would be lost to Spark's defaults."""
    with_metadata(spark, table).call("create_metadata_table")
    assert (table.path / ".hoodie" / "metadata").is_dir()
    with pytest.raises(MetadataTableError, match="metadata_table='remove'"):
        table.table.upsert(table.arrow(rows(range(1), 9)))

    table.table = hudi.open_table(str(table.path), metadata_table="remove")
    table.upsert(rows(range(2), 9))
    assert not (table.path / ".hoodie" / "metadata").exists()
    assert_all_agree(spark, table.path, table.expected())
    assert_same_rows(
        without_meta(read_by_spark(spark, table.path, metadata_table=True)), table.expected(), "Spark with its defaults"
    )
