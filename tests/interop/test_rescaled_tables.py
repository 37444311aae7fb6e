"""Tables that were given another number of buckets: every reader agrees, and Hudi's Spark goes on with the new number."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from support.altered_rows import row
from support.oracle import Row
from support.readers import assert_all_agree, query_by_hudi_rs
from support.spark_hudi import SparkTable, read_by_spark
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32()), ("text", pa.string())])
KEYS = [f"k{number:03}" for number in range(200)]
COMPACTS = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
CLEANS = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}


def rows(ts: int, keys: list[str]) -> list[Row]:
    return [row(SCHEMA, key, ts) for key in keys]


def test_spark_writes_into_a_table_that_was_rescaled_before_it_had_rows(spark: Any, tmp_path: Path) -> None:
    tracked = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts")
    tracked.table.rescale(3)
    assert_all_agree(spark, tracked.path, tracked.expected())
    options = {"hoodie.bucket.index.num.buckets": "3", "hoodie.datasource.write.partitionpath.urlencode": "true"}
    by_spark = SparkTable(spark, tmp_path, "t", ordering="ts", partition=["part"], options=options)
    by_spark.upsert(tracked.arrow(rows(10, KEYS)))
    tracked.oracle.upsert(rows(10, KEYS))
    tracked.table = hudi.open_table(str(tracked.path))
    assert tracked.table.adopt().completed
    tracked.upsert(rows(11, KEYS[::2]))
    assert_all_agree(spark, tracked.path, tracked.expected())


@pytest.mark.parametrize("ordering", ["ts", None], ids=["event-time", "commit-time"])
@pytest.mark.parametrize("buckets", [1, 3, 8])
def test_all_readers_agree_on_a_rescaled_table_and_spark_goes_on_with_it(
    spark: Any, tmp_path: Path, buckets: int, ordering: str | None
) -> None:
    tracked = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering=ordering)
    tracked.upsert(rows(5, KEYS))
    tracked.table.compact()
    tracked.upsert(rows(6, KEYS[::3]))
    tracked.delete(rows(7, KEYS[::5]))
    before = tracked.table.commits()[-1].completion
    tracked.table.rescale(buckets)
    tracked.oracle.compact()
    assert_all_agree(spark, tracked.path, tracked.expected())
    assert read_by_spark(spark, tracked.path, since=before).num_rows == 0
    assert query_by_hudi_rs(tracked.path, since=before) == []
    tracked.upsert(rows(8, KEYS[::7]))
    tracked.delete(rows(9, KEYS[:3]))
    assert_all_agree(spark, tracked.path, tracked.expected())

    options = COMPACTS | CLEANS | {"hoodie.bucket.index.num.buckets": str(buckets)}
    options |= {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    by_spark = SparkTable(spark, tmp_path, "t", ordering=ordering, partition=["part"], options=options)
    for ts in (10, 11):
        by_spark.upsert(tracked.arrow(rows(ts, KEYS[50:60])))
        tracked.oracle.upsert(rows(ts, KEYS[50:60]))
    assert_all_agree(spark, tracked.path, tracked.expected())
    tracked.table = hudi.open_table(str(tracked.path))
    assert tracked.table.adopt().completed
    tracked.upsert(rows(12, KEYS[55:70]))
    tracked.table.compact()
    tracked.oracle.compact()
    tracked.table.rescale(4)
    assert_all_agree(spark, tracked.path, tracked.expected())


DAYS = ["2026-01-01", "2026-01-02", "2026-02-01"]
BY_DAY = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])


def by_day(ts: int, numbers: range) -> list[Row]:
    return [{"id": f"k{number:03}", "part": DAYS[number % 3], "ts": ts, "v": number} for number in numbers]


def test_partitions_of_other_numbers_are_read_alike_and_spark_goes_on_with_them(spark: Any, tmp_path: Path) -> None:
    """Its options are those that the table prints for Spark; a filter by key makes Hudi's reader look for the bucket."""
    tracked = Tracked(tmp_path / "t", BY_DAY, partition=["part"], ordering="ts")
    tracked.upsert(by_day(5, range(150)))
    tracked.table.compact()
    tracked.upsert(by_day(6, range(0, 150, 4)))
    tracked.table.rescale(7, partitions="2026-01-*")
    tracked.oracle.compact()
    assert_all_agree(spark, tracked.path, tracked.expected())
    options = dict(tracked.table.setup_of("spark").options)
    by_spark = SparkTable(spark, tmp_path, "t", ordering="ts", partition=["part"], options=options | COMPACTS)
    for ts in (10, 11):
        by_spark.upsert(tracked.arrow(by_day(ts, range(40, 70))))
        tracked.oracle.upsert(by_day(ts, range(40, 70)))
    assert_all_agree(spark, tracked.path, tracked.expected())
    tracked.table = hudi.open_table(str(tracked.path))
    assert tracked.table.adopt().completed
    tracked.upsert(by_day(12, range(50, 100)))
    assert_all_agree(spark, tracked.path, tracked.expected())
    frame = spark.read.format("hudi").options(**options, **{"hoodie.enable.data.skipping": "true"}).load(str(tracked.path))
    for number in range(0, 150, 7):
        assert [row["v"] for row in frame.where(f"id = 'k{number:03}'").collect()] == [number]
    tracked.table.rescale(3)
    assert_all_agree(spark, tracked.path, tracked.expected())
    frame = spark.read.format("hudi").options(**tracked.table.setup_of("spark").options).load(str(tracked.path))
    for number in range(0, 150, 7):
        assert [row["v"] for row in frame.where(f"id = 'k{number:03}'").collect()] == [number]
