"""Spark and hudi-rs read a slice that a minor compaction has made (rule DE5), and Spark goes on with it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from support.minor import SETTINGS, compact, only_minor, sizes
from support.readers import assert_all_agree, query_by_hudi_rs
from support.spark_hudi import SparkTable, read_by_spark
from support.tables import SHORT, keys, rows


def gone(ordering: str | None, *entries: tuple[str, int]) -> pa.Table:
    return keys(*entries).select(["id", "ts"] if ordering else ["id"])


def shown(notes: dict[str, tuple[int, str]]) -> pa.Table:
    return rows(*((key, ts, note) for key, (ts, note) in notes.items()))


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("ordering", ["ts", None], ids=["event time", "commit time"])
def test_all_read_the_copied_base_file_and_the_merged_log_and_spark_merges_them(
    spark: Any, tmp_path: Path, ordering: str | None, version: int
) -> None:
    path = tmp_path / "t"
    schema = rows().schema
    table = hudi.create_table(str(path), schema, record_key="id", ordering=ordering, buckets=1, table_version=version)
    table.configure({**SETTINGS, **SHORT})
    table.upsert(rows(*((letter, 10, "base") for letter in "abcdef")))
    table.compact()
    first = table.upsert(rows(("b", 11, "newer"), ("c", 11, "older"), ("x", 1, "new")))
    with table.transaction() as both:
        both.upsert(rows(("c", 12, "newest"), ("z", 1, "fresh")))
        both.delete(gone(ordering, ("d", 11), ("x", 2)))
    table.upsert(rows(("e", 11, "new")))
    expected = {
        "a": (10, "base"),
        "b": (11, "newer"),
        "c": (12, "newest"),
        "e": (11, "new"),
        "f": (10, "base"),
        "z": (1, "fresh"),
    }
    assert_all_agree(spark, path, shown(expected))
    operation = only_minor(compact(table))
    assert_all_agree(spark, path, shown(expected))
    since = {(row["id"], row["note"]) for row in read_by_spark(spark, path, since=first.completion).to_pylist()}
    assert since == {("c", "newest"), ("z", "fresh"), ("e", "new")}
    assert since == {(row["id"], row["note"]) for row in query_by_hudi_rs(path, since=first.completion)}
    table.upsert(rows(("b", 11, "a tie"), ("z", 1, "a tie")))
    table.upsert(rows(("a", 20, "later")))
    expected |= {"a": (20, "later"), "b": (11, "a tie"), "z": (1, "a tie")}
    table.clean()
    assert operation.base is not None
    assert not {operation.at(each.name) for each in (*operation.logs, operation.base)} & sizes(table).keys()
    assert_all_agree(spark, path, shown(expected))
    _spark_goes_on(spark, path, expected, ordering, version)


def _spark_goes_on(spark: Any, path: Path, expected: dict[str, tuple[int, str]], ordering: str | None, version: int) -> None:
    options = {"hoodie.bucket.index.num.buckets": "1", "hoodie.write.table.version": str(version)}
    by_spark = SparkTable(spark, path.parent, path.name, ordering=ordering, options=options)
    by_spark.upsert(rows(("f", 30, "by Spark")))
    expected = expected | {"f": (30, "by Spark")}
    assert_all_agree(spark, path, shown(expected), schema_by_spark=True)
    by_spark.call("run_compaction", op="scheduleAndExecute")
    assert_all_agree(spark, path, shown(expected), schema_by_spark=True)
