"""Table version 9: Spark's ordinary writes bring a table of ours to it, tables are created with it, and we go on writing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse
from support.oracle import Oracle, Row
from support.readers import assert_all_agree
from support.spark_hudi import SparkTable
from support.spark_rows import MakeTable
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("zone", pa.string()), ("ts", pa.int64()), ("note", pa.string())])


def rows(numbers: range, second: int, note: str) -> list[Row]:
    return [{"id": f"k{n}", "part": f"p{n % 2}", "zone": "x/y", "ts": second, "note": note} for n in numbers]


def ordinary_spark(spark: Any, table: Tracked, **options: str) -> SparkTable:
    """Spark with its own choice of the table version."""
    oracle = table.oracle
    settings = {"hoodie.datasource.write.partitionpath.urlencode": "true", **options}
    return SparkTable(
        spark,
        table.path.parent,
        table.path.name,
        ordering=oracle.ordering,
        partition=oracle.partition,
        upgrades=True,
        options=settings,
    )


def properties_of(path: Path) -> dict[str, str]:
    return parse((path / PROPERTIES_PATH).read_bytes(), "")


class Beside:
    """A table of ours and Spark's writes to it, both known to the oracle."""

    def __init__(self, spark: Any, table: Tracked, by_spark: SparkTable) -> None:
        self.spark, self.table, self.by_spark = spark, table, by_spark

    def agree(self) -> None:
        assert_all_agree(self.spark, self.table.path, self.table.expected())

    def spark_writes(self, changed: list[Row], deleted: Sequence[Row] = ()) -> None:
        self.by_spark.upsert(self.table.arrow(changed))
        self.table.oracle.upsert(changed)
        if deleted:
            self.by_spark.delete(self.table.arrow(deleted))
            self.table.oracle.delete(deleted)
        self.agree()

    def adopt_and_write(self, second: int) -> None:
        """Rows, deletes and late rows of ours, then a compaction, after each of which all readers agree."""
        self.table.table = hudi.open_table(str(self.table.path))
        assert self.table.table.adopt().completed
        self.agree()
        self.table.upsert(rows(range(second % 5, second % 5 + 9), second, f"ours {second}") + rows(range(30, 33), second, "new"))
        self.table.delete(rows(range(3), second + 1, ""))
        self.table.upsert(rows(range(3, 5), 0, "late"))
        self.agree()
        assert self.table.table.compact().completion
        self.agree()
        assert self.table.table.verify().ok, self.table.table.verify().findings


def test_an_ordinary_write_of_spark_upgrades_a_table_of_ours_and_both_go_on(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    both = Beside(spark, table, ordinary_spark(spark, table))
    table.upsert(rows(range(8), 1, "ours"))
    table.upsert(rows(range(3, 10), 2, "ours"))
    both.spark_writes(rows(range(6, 14), 3, "Spark's"), rows(range(6, 8), 4, ""))
    assert properties_of(table.path)["hoodie.table.version"] == "9"
    both.adopt_and_write(10)
    both.spark_writes(rows(range(2, 12), 20, "Spark's again"), rows(range(1), 21, ""))
    both.adopt_and_write(31)
    table.upsert(rows(range(4, 9), 40, "compacted by the downgrade"))
    both.by_spark.call("downgrade_table", to_version="EIGHT")
    assert properties_of(table.path)["hoodie.table.version"] == "8"
    both.adopt_and_write(42)


def test_a_table_that_we_upgrade_and_downgrade_goes_on_with_spark_in_each_version(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    both = Beside(spark, table, ordinary_spark(spark, table))
    table.upsert(rows(range(8), 1, "ours"))
    table.upsert(rows(range(3, 10), 2, "ours, in logs"))
    assert table.table.change_version(9).before == 8
    both.agree()
    upgraded = properties_of(table.path)
    both.spark_writes(rows(range(6, 14), 3, "Spark's"), rows(range(6, 8), 4, ""))
    assert properties_of(table.path) == upgraded
    both.adopt_and_write(10)
    assert table.table.change_version(8).before == 9
    both.agree()
    downgraded = properties_of(table.path)
    both.by_spark.options |= {"hoodie.write.table.version": "8", "hoodie.write.auto.upgrade": "false"}
    both.spark_writes(rows(range(4, 9), 20, "Spark's in 8"))
    assert properties_of(table.path) == downgraded
    both.adopt_and_write(31)


@pytest.mark.parametrize(
    ("partition", "ordering"), [(["part", "zone"], "ts"), ([], None)], ids=["two partition columns", "none, commit time"]
)
def test_spark_goes_on_with_a_table_that_we_created_in_version_9_and_leaves_its_properties(
    spark: Any, tmp_path: Path, partition: list[str], ordering: str | None
) -> None:
    """With two partition columns Spark's complex key generator writes ``id:k1``."""
    table = Tracked(tmp_path / "t", SCHEMA, partition=partition, ordering=ordering, buckets=2, table_version=9)
    both = Beside(spark, table, ordinary_spark(spark, table))
    table.upsert(rows(range(8), 1, "ours"))
    table.delete(rows(range(5, 6), 2, ""))
    both.agree()
    before = properties_of(table.path)
    both.spark_writes(rows(range(4, 14), 3, "Spark's"), rows(range(6, 8), 4, ""))
    assert properties_of(table.path) == before
    both.adopt_and_write(10)


def test_a_table_that_spark_made_in_version_9_is_adopted_and_both_go_on(spark: Any, make: MakeTable) -> None:
    made = make(partition=["part", "zone"], upgrades=True)
    oracle = Oracle(["id"], ["part", "zone"], "ts")
    plain = [row | {"zone": "x"} for row in rows(range(12), 1, "Spark's")]

    def spark_upserts(changed: list[Row]) -> None:
        made.upsert(pa.Table.from_pylist(changed, SCHEMA))
        oracle.upsert(changed)

    def agree() -> None:
        assert_all_agree(spark, made.path, pa.Table.from_pylist(oracle.rows(), SCHEMA))

    spark_upserts(plain)
    spark_upserts([row | {"ts": 2, "note": "again"} for row in plain[3:9]])
    table = hudi.open_table(str(made.path))
    assert table.adopt(buckets=2).completed
    ours = [row | {"ts": 3, "note": "ours"} for row in plain[5:]]
    table.upsert(pa.Table.from_pylist(ours, SCHEMA))
    oracle.upsert(ours)
    agree()
    spark_upserts([row | {"ts": 4, "note": "Spark's third"} for row in plain[2:7]])
    agree()
    assert table.adopt().completed
    assert table.compact().completion
    agree()
