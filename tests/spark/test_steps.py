"""Which partitions a copy takes in one commit, and that Spark finds exactly their rows."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_spark.steps import SourcePartition, condition_of, steps_of
from headgate_tables.errors import OptionError


def paths(*rows: int, step_rows: int) -> list[list[str]]:
    parts = [SourcePartition(f"p{at}", count, [(at,)]) for at, count in enumerate(rows)]
    return [[part.path for part in step] for step in steps_of(reversed(parts), step_rows)]


def test_a_step_has_as_many_partitions_as_fit_into_its_rows_and_at_least_one() -> None:
    assert paths(step_rows=10) == []
    assert paths(4, 6, 1, step_rows=10) == [["p0", "p1"], ["p2"]]
    assert paths(25, 1, 1, step_rows=10) == [["p0"], ["p1", "p2"]]
    assert paths(1, 25, 1, step_rows=10) == [["p0"], ["p1"], ["p2"]]
    with pytest.raises(OptionError, match="step_rows=0"):
        paths(1, step_rows=0)


def test_a_step_has_no_more_partitions_than_spark_can_plan() -> None:
    steps = steps_of([SourcePartition(f"{at:05}", 1, [(at,)]) for at in range(2_001)], 1 << 40)
    assert [len(step) for step in steps] == [1_000, 1_000, 1]


@pytest.mark.parametrize("columns", [("a",), ("b",), ("a", "b"), ("b", "c", "a")])
def test_each_row_is_in_exactly_one_step(spark: Any, columns: tuple[str, ...]) -> None:
    rows = [(a, b, c) for a in ("x", "y z", None) for b in (1, 2, None) for c in (True, False)]
    frame = spark.createDataFrame(rows, "a string, b int, c boolean")
    all_values = sorted({tuple(row["abc".index(name)] for name in columns) for row in rows}, key=repr)
    steps = [SourcePartition(repr(values), 1, [values]) for values in all_values]
    found = [frame.where(condition_of(columns, steps[at : at + 2])).collect() for at in range(0, len(steps), 2)]
    assert sorted(map(repr, (tuple(row) for step in found for row in step))) == sorted(map(repr, rows))


def test_spark_plans_a_step_of_a_thousand_partitions_of_two_columns(spark: Any) -> None:
    step = [SourcePartition(str(at), 1, [(f"{at:05}", at)]) for at in range(1_000)]
    frame = spark.range(3_000).selectExpr("lpad(id, 5, '0') as a", "id as b")
    assert frame.where(condition_of(("a", "b"), step)).count() == 1_000
