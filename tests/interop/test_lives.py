"""Tables that are emptied, dropped, brought back, or lose rows by a condition: every reader follows at every moment."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import TableInGraceError
from support.altered_rows import row
from support.oracle import Row
from support.readers import assert_all_agree
from support.spark_hudi import SparkTable
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32()), ("text", pa.string())])
KEYS = [f"k{number}" for number in range(6, 16)]
URL_ENCODE = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


def rows(ts: int, keys: list[str] = KEYS) -> list[Row]:
    return [row(SCHEMA, key, ts) for key in keys]


@pytest.fixture(params=["ts", None], ids=["event-time", "commit-time"])
def tracked(request: pytest.FixtureRequest, tmp_path: Path) -> Tracked:
    """With base files, logs over them, and a log alone."""
    made = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering=request.param)
    made.upsert(rows(5))
    made.table.compact()
    made.upsert(rows(6, KEYS[::2]))
    made.delete(rows(7, KEYS[:2]))
    return made


def spark_writes(spark: Any, tracked: Tracked, ts: int) -> None:
    by_spark = SparkTable(
        spark, tracked.path.parent, tracked.path.name, ordering=tracked.oracle.ordering, partition=["part"], options=URL_ENCODE
    )
    by_spark.upsert(tracked.arrow(rows(ts, KEYS[3:6])))
    tracked.oracle.upsert(rows(ts, KEYS[3:6]))
    tracked.table = hudi.open_table(str(tracked.path))
    assert tracked.table.adopt().completed


def test_an_emptied_table_takes_rows_that_are_older_than_what_it_lost(spark: Any, tracked: Tracked) -> None:
    before, saved = tracked.expected(), tracked.table.savepoint()
    tracked.table.truncate()
    tracked.oracle.forget()
    assert_all_agree(spark, tracked.path, tracked.expected())
    tracked.upsert(rows(1, KEYS[2:]))
    assert_all_agree(spark, tracked.path, tracked.expected())
    assert not tracked.table.compact().dropped
    assert_all_agree(spark, tracked.path, tracked.expected())
    spark_writes(spark, tracked, 3)
    assert_all_agree(spark, tracked.path, tracked.expected(), schema_by_spark=True)
    tracked.upsert(rows(4, KEYS[:4]))
    assert_all_agree(spark, tracked.path, tracked.expected(), schema_by_spark=True)
    tracked.table.restore(saved)
    assert_all_agree(spark, tracked.path, before)


def test_a_partition_that_is_emptied_leaves_the_others_as_they_are(spark: Any, tracked: Tracked) -> None:
    tracked.table.delete_partitions(["a"])
    tracked.oracle.forget("a")
    assert_all_agree(spark, tracked.path, tracked.expected())
    tracked.upsert(rows(2))
    assert_all_agree(spark, tracked.path, tracked.expected())
    spark_writes(spark, tracked, 8)
    assert_all_agree(spark, tracked.path, tracked.expected(), schema_by_spark=True)


def test_rows_that_a_condition_deletes_are_gone_for_all(spark: Any, tracked: Tracked) -> None:
    gone = [each for each in tracked.oracle.rows() if each["v"] == 6 or each["id"] == KEYS[3]]
    assert tracked.table.delete_where(f"v = 6 OR id = '{KEYS[3]}'").rows == len(gone) > 2
    tracked.oracle.delete(gone)
    assert_all_agree(spark, tracked.path, tracked.expected())
    assert not tracked.table.compact().dropped
    assert_all_agree(spark, tracked.path, tracked.expected())
    tracked.upsert(rows(9, KEYS[:5]))
    assert_all_agree(spark, tracked.path, tracked.expected())


def test_a_dropped_table_is_read_in_its_grace_time_and_goes_on_when_it_is_brought_back(spark: Any, tracked: Tracked) -> None:
    tracked.table.drop("ann", grace_ms=600_000)
    assert_all_agree(spark, tracked.path, tracked.expected())
    with hudi.open_table(str(tracked.path)) as handle, pytest.raises(TableInGraceError):
        handle.upsert(tracked.arrow(rows(8)))
    assert_all_agree(spark, tracked.path, tracked.expected())
    with hudi.open_table(str(tracked.path)) as handle:
        assert handle.undrop("ann")
    tracked.table = hudi.open_table(str(tracked.path))
    tracked.upsert(rows(8, KEYS[4:]))
    assert_all_agree(spark, tracked.path, tracked.expected())
    spark_writes(spark, tracked, 9)
    assert_all_agree(spark, tracked.path, tracked.expected(), schema_by_spark=True)
