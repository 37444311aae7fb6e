"""As of a point, read optimised, and what changed: we and Hudi on Spark give the same, on our tables and on Spark's."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import RangeGoneError
from support.readers import read_by_us
from support.same_rows import assert_same_rows
from support.spark_hudi import read_by_spark
from support.spark_rows import MakeTable
from support.spark_rows import rows as spark_rows
from support.tables import create, keys, rows


def by_us(path: Path, **query: Any) -> pa.Table:
    with hudi.open_table(str(path)) as table:
        return table.scan(meta_columns=True, **query).to_table()


def test_every_query_on_a_table_of_ours(spark: Any, tmp_path: Path) -> None:
    table = create(tmp_path)
    path = tmp_path / "table"
    table.upsert(rows(*((f"k{n}", 10, "one") for n in range(8))))
    table.upsert(rows(*((f"k{n}", 5 + n, "two") for n in range(4, 12)), part="p"))
    table.delete(keys(("k0", 20), ("k11", 1)))
    table.compact()
    table.upsert(pa.concat_tables([rows(("k1", 3, "late"), ("k2", 30, "three")), rows(("k1", 1, "q"), part="q")]))
    table.delete(keys(("k3", 40), ("k2", 1)))
    commits = table.commits()
    assert [info.action for info in commits] == ["deltacommit"] * 3 + ["commit"] + ["deltacommit"] * 2

    assert_same_rows(
        by_us(path, mode="read_optimized"), read_by_spark(spark, path, mode="read_optimized"), "Spark, read optimised"
    )
    compared = 0
    for info in commits:
        known = {other.instant for other in commits if other.completion <= info.completion}
        for point in (info.instant, info.completion):
            # Hudi's time travel goes by requested times: only where they say the same is there an answer to compare.
            if known == {other.instant for other in commits if other.instant <= point}:
                for mode in ("snapshot", "read_optimized"):
                    asked: dict[str, Any] = {"as_of": point, "mode": mode}
                    assert_same_rows(by_us(path, **asked), read_by_spark(spark, path, **asked), f"Spark, {asked}")
                    compared += 1
    assert compared >= 6
    for n, first in enumerate(commits):
        for last in commits[n + 1 :]:
            asked = {"since": first.completion, "as_of": last.completion}
            assert_same_rows(by_us(path, **asked), read_by_spark(spark, path, **asked), f"Spark, {asked}")


def test_late_rows_around_a_compaction_of_spark_and_what_its_clean_leaves(spark: Any, make: MakeTable) -> None:
    table = make()
    table.upsert(spark_rows(range(4), 10, "one"))
    table.upsert(pa.concat_tables([spark_rows([1], 5, "late"), spark_rows([6], 5, "two")]))
    table.call("run_compaction", op="schedule")
    table.run_scheduled_compactions()
    table.upsert(pa.concat_tables([spark_rows([2, 3], 5, "late"), spark_rows([7], 5, "three")]))
    with hudi.open_table(str(table.path)) as opened:
        first, second, compaction, third = opened.commits()

    def check(live: int, **asked: Any) -> None:
        found = by_us(table.path, **asked)
        assert found.num_rows == live
        assert_same_rows(found, read_by_spark(spark, table.path, **asked), f"Spark, {asked}")

    check(4, since=first.completion)  # the one that the compaction dropped is not among them
    check(3, since=second.completion)
    check(2, since=first.completion, as_of=second.completion)
    check(1, since=first.completion, as_of=compaction.completion)
    for point in (first.instant, first.completion):
        check(4, as_of=point)
    check(5, as_of=second.instant)
    check(5, as_of=third.instant, mode="read_optimized")
    check(0, as_of="20200101000000000")

    table.call("run_clean", retain_commits=1)
    check(4, since=first.completion)
    with pytest.raises(RangeGoneError):
        by_us(table.path, as_of=second.instant)
    with pytest.raises(Exception, match="Cleaner cleaned up the timestamp of interest"):
        read_by_spark(spark, table.path, as_of=second.instant)
    with pytest.raises(RangeGoneError, match="cleaned away"):  # where Spark scans the whole table, and misses a late row
        by_us(table.path, since=first.completion, as_of=second.completion)
    assert read_by_us(table.path).num_rows == 6
