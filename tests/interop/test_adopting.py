"""We adopt what Hudi on Spark wrote to tables of ours, and tables that Spark made; each executes plans of the other."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate_tables import hudi
from support.oracle import Oracle, Row
from support.readers import assert_all_agree
from support.spark_hudi import SparkTable
from support.spark_rows import MakeTable
from support.tracked import Tracked

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("note", pa.string())])


def rows(numbers: range, second: int, note: str, part: str | None = None) -> list[Row]:
    return [{"id": f"k{n}", "part": part or f"p{n % 2}", "ts": second, "note": note} for n in numbers]


def spark_on(spark: Any, table: Tracked, **options: str) -> SparkTable:
    settings = {"hoodie.datasource.write.partitionpath.urlencode": "true", **options}
    return SparkTable(
        spark, table.path.parent, table.path.name, key="id", ordering="ts", partition=table.oracle.partition, options=settings
    )


def test_what_spark_wrote_compacted_cleaned_and_archived_is_adopted(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    by_spark = spark_on(spark, table, **{"hoodie.clean.commits.retained": "1"})

    def spark_upserts(changed: list[Row], **options: str) -> None:
        by_spark.upsert(table.arrow(changed), **options)
        table.oracle.upsert(changed)

    def adopt_and_write(second: int) -> hudi.Table:
        table.table = hudi.open_table(str(table.path))
        found = table.table.adopt()
        assert found.completed
        assert_all_agree(spark, table.path, table.expected())
        table.upsert(rows(range(second % 7, second % 7 + 5), second, f"ours {second}") + rows(range(3), second, "ours", "new"))
        table.delete(rows(range(1), second + 1, ""))
        assert_all_agree(spark, table.path, table.expected())
        assert table.table.verify().ok, table.table.verify().findings
        return table.table

    table.upsert(rows(range(8), 1, "ours"))
    table.upsert(rows(range(3, 10), 2, "ours"))
    spark_upserts(rows(range(6, 14), 3, "Spark's") + rows(range(4), 3, "Spark's", "new"))
    by_spark.delete(table.arrow(rows(range(6, 8), 4, "")))
    table.oracle.delete(rows(range(6, 8), 4, ""))
    adopt_and_write(10)
    spark_upserts(rows(range(2, 5), 20, "Spark's again"))
    by_spark.call("run_compaction", op="schedule")
    by_spark.run_scheduled_compactions()
    adopt_and_write(30)
    spark_upserts(rows(range(2, 5), 40, "Spark's third"))
    by_spark.call("run_clean", retain_commits=1)
    archiving = {"hoodie_keep_min_commits": "2", "hoodie_keep_max_commits": "3", "hoodie_clean_automatic": "true"}
    spark_upserts(rows(range(2, 5), 50, "and archived"), **archiving)
    adopt_and_write(60)
    assert table.table.compact().completion
    assert_all_agree(spark, table.path, table.expected())


def test_a_column_that_spark_adds_is_shown_by_all_before_it_is_adopted_and_after(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    table.upsert(rows(range(8), 1, "ours"))
    more = SCHEMA.append(pa.field("more", pa.int64()))
    changed = [row | {"more": number} for number, row in enumerate(rows(range(5, 10), 2, "Spark's"))]
    spark_on(spark, table).upsert(pa.Table.from_pylist(changed, more))
    table.oracle.upsert(changed)
    expected = pa.Table.from_pylist([{"more": None} | row for row in table.oracle.rows()], more)
    assert_all_agree(spark, table.path, expected)
    assert table.table.scan().schema == more, "a handle that was open before"
    adopted = hudi.open_table(str(table.path))
    assert adopted.adopt().completed
    assert adopted.schema == more
    assert_all_agree(spark, table.path, expected)


def test_spark_executes_a_plan_of_ours_and_we_adopt_that(spark: Any, tmp_path: Path) -> None:
    table = Tracked(tmp_path / "t", SCHEMA, partition=["part"], ordering="ts", buckets=2)
    table.upsert(rows(range(8), 1, "ours"))
    table.upsert(rows(range(3, 10), 2, "ours"))
    plan = table.table.plan_compaction(forced=True)
    assert plan is not None
    table.upsert(rows(range(4, 6), 3, "beside it"))
    by_spark = spark_on(spark, table)
    by_spark.run_scheduled_compactions()
    assert by_spark.actions().count("commit") == 1
    table.table = hudi.open_table(str(table.path))
    assert table.table.adopt().finished_plans == (plan.instant,)
    assert not table.table.plans
    assert_all_agree(spark, table.path, table.expected())
    table.upsert(rows(range(5, 12), 4, "ours"))
    assert_all_agree(spark, table.path, table.expected())
    assert table.table.compact().completion
    assert_all_agree(spark, table.path, table.expected())


def test_we_adopt_a_table_of_spark_execute_its_plan_and_both_go_on(spark: Any, make: MakeTable, tmp_path: Path) -> None:
    made = make(partition=["part"])
    oracle = Oracle(["id"], ["part"], "ts")

    def spark_upserts(changed: list[Row]) -> None:
        made.upsert(pa.Table.from_pylist(changed, SCHEMA))
        oracle.upsert(changed)

    def agree() -> None:
        assert_all_agree(spark, made.path, pa.Table.from_pylist(oracle.rows(), SCHEMA))

    spark_upserts(rows(range(12), 1, "Spark's"))
    spark_upserts(rows(range(3, 9), 2, "Spark's"))
    made.call("run_compaction", op="schedule")
    spark_upserts(rows(range(8, 11), 3, "after the plan"))
    table = hudi.open_table(str(made.path))
    [planned] = table.adopt(buckets=2).plans
    changed = rows(range(2, 16), 4, "ours")
    table.upsert(pa.Table.from_pylist(changed, SCHEMA))
    oracle.upsert(changed)
    agree()
    assert table.compact().instant == planned
    agree()
    spark_upserts(rows(range(5, 20), 5, "Spark's again"))
    agree()
    assert table.adopt().completed
    table.delete(pa.Table.from_pylist(rows(range(3), 6, ""), SCHEMA))
    oracle.delete(rows(range(3), 6, ""))
    assert table.compact().completion
    agree()
