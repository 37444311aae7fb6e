"""Rows of a table in the types of a query that began before the table was altered; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from headgate_spark.types import fitted
from headgate_tables.errors import SchemaError

Wrap = tuple[Callable[[pa.DataType], pa.DataType], Callable[[Any], Any]]
WRAPS: dict[str, Wrap] = {
    "alone": (lambda kind: kind, lambda value: value),
    "struct": (lambda kind: pa.struct([("b", kind)]), lambda value: {"b": value}),
    "list": (pa.list_, lambda value: [value]),
    "map": (lambda kind: pa.map_(pa.string(), kind), lambda value: [("k", value)]),
    "deep": (lambda kind: pa.list_(pa.struct([("m", pa.map_(pa.string(), kind))])), lambda value: [{"m": [("k", value)]}]),
}


def batch(values: list[Any], kind: pa.DataType) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["c"])


def shown(kind: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field("c", kind)])


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_doubles_come_as_floats_where_they_are_floats_and_are_refused_elsewhere(wrap: Wrap) -> None:
    kind, value = wrap
    floats = [value(0.5), None, value(float("nan")), value(float("inf"))]
    rows = batch([value(0.1), *floats], kind(pa.float64()))
    found = fitted(rows[1:], shown(kind(pa.float32())))
    assert found.schema == shown(kind(pa.float32()))
    assert str(found["c"].to_pylist()) == str(floats)
    with pytest.raises(SchemaError, match=r"column 'c' is .*double.*a value needs a double"):
        fitted(rows, shown(kind(pa.float32())))


def test_a_field_that_the_query_does_not_know_is_left_out_and_one_that_is_gone_is_null() -> None:
    now = pa.struct([("new", pa.float64()), ("x", pa.float64())])
    before = pa.struct([("x", pa.float32()), ("gone", pa.float32())])
    assert fitted(batch([{"new": 0.1, "x": 0.5}], now), shown(before))["c"].to_pylist() == [{"x": 0.5, "gone": None}]


def test_a_type_that_arrow_casts_in_no_way_is_refused_as_a_value_is() -> None:
    with pytest.raises(SchemaError, match=r"column 'c' is list<.*Unsupported cast") as refused:
        fitted(batch([[1]], pa.list_(pa.int64())), shown(pa.int64()))
    assert "start the query again" in refused.value.fix
