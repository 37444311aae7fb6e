"""Tables whose base files are sorted (what Hudi calls clustering): every reader agrees, and Hudi's Spark goes on with them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.face.row_order import CURVES
from support.altered_rows import row
from support.oracle import Row
from support.readers import assert_all_agree
from support.spark_hudi import SparkTable
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32()), ("text", pa.string())])
KEYS = [f"k{number:03}" for number in range(200)]
COMPACTS = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
CLEANS = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
URL_ENCODE = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


def rows(ts: int, keys: list[str]) -> list[Row]:
    return [row(SCHEMA, key, ts) for key in keys]


@pytest.mark.parametrize("ordering", ["ts", None], ids=["event-time", "commit-time"])
@pytest.mark.parametrize("curve", CURVES)
def test_all_readers_agree_on_a_sorted_table_and_spark_compacts_and_cleans_it(
    spark: Any, tmp_path: Path, curve: str, ordering: str | None
) -> None:
    tracked = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering=ordering)
    tracked.upsert(rows(5, KEYS))
    tracked.upsert(rows(6, KEYS[::3]))
    tracked.delete(rows(7, KEYS[::5]))
    tracked.table.configure({"hoodie.clustering.plan.strategy.sort.columns": "v,text", "hoodie.layout.optimize.strategy": curve})
    tracked.table.compact(sort=True)
    tracked.oracle.compact()
    assert_all_agree(spark, tracked.path, tracked.expected())
    tracked.upsert(rows(8, KEYS[::7]))
    tracked.delete(rows(9, KEYS[:3]))
    assert_all_agree(spark, tracked.path, tracked.expected())

    options = COMPACTS | CLEANS | URL_ENCODE
    by_spark = SparkTable(spark, tmp_path, "t", ordering=ordering, partition=["part"], options=options)
    for ts in (10, 11):
        by_spark.upsert(tracked.arrow(rows(ts, KEYS[50:60])))
        tracked.oracle.upsert(rows(ts, KEYS[50:60]))
    assert_all_agree(spark, tracked.path, tracked.expected())
    tracked.table = hudi.open_table(str(tracked.path))
    assert tracked.table.adopt().completed
    tracked.upsert(rows(12, KEYS[55:70]))
    tracked.table.compact(sort=True)
    assert tracked.table.compact(sort=True).planned == ()
    assert_all_agree(spark, tracked.path, tracked.expected())
