"""Spark wrote to a table of ours without the bucket index, its own default: nothing is adopted until its instant is undone."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import UnsupportedTableError
from support.oracle import Row
from support.readers import assert_all_agree
from support.refusals import refused
from support.spark_hudi import SparkTable
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("note", pa.string())])


def rows(numbers: range, second: int, note: str) -> list[Row]:
    return [{"id": f"k{n}", "part": f"p{n % 2}", "ts": second, "note": note} for n in numbers]


@pytest.mark.parametrize(
    ("upgrades", "what"), [(True, "did not write with 2 buckets"), (False, "have no bucket number")], ids=["default", "version 8"]
)
def test_a_write_without_the_bucket_index_is_undone_as_the_error_says_and_the_table_goes_on(
    spark: Any, tmp_path: Path, upgrades: bool, what: str
) -> None:
    """An upgrade compacts first: then Spark finds all keys, and puts new ones into our small files. Else it makes groups."""
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    table.upsert(rows(range(8), 1, "ours"))
    table.upsert(rows(range(4, 10), 2, "ours"))
    by_spark = SparkTable(spark, tmp_path, "t", partition=["part"], index="SIMPLE", upgrades=upgrades)
    by_spark.options["hoodie.datasource.write.partitionpath.urlencode"] = "true"
    by_spark.upsert(table.arrow(rows(range(6, 20), 3, "Spark's")))
    written = sorted((table.path / ".hoodie/timeline").glob("*.deltacommit"))[-1].name[:17]
    handle = hudi.open_table(str(table.path))
    with refused(UnsupportedTableError, f"{what}.*instants are {written}", "rollback_to_instant"):
        handle.adopt()
    by_spark.call("rollback_to_instant", instant_time=written)
    table.table = hudi.open_table(str(table.path))
    table.table.adopt()
    assert_all_agree(spark, table.path, table.expected())
    table.upsert(rows(range(5, 12), 5, "ours again"))
    assert table.table.compact().completion
    assert_all_agree(spark, table.path, table.expected())
    assert table.table.verify().ok, table.table.verify().findings
