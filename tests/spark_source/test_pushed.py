"""Filters that Spark pushes: with and without them a query has the same rows, whatever nulls, NaN and types do."""

from __future__ import annotations

import datetime
import decimal
import itertools
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource

from headgate_spark.pushed import expression_of
from headgate_tables import hudi
from support.same_rows import assert_same_rows

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
MICRO = datetime.timedelta(microseconds=1)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "n": (pa.int32(), [None, -1, 0, 1, 2**31 - 1]),
    "f": (pa.float64(), [None, float("nan"), 0.0, 1.5, float("inf")]),
    "s": (pa.string(), [None, "", "a", "é", "z"]),
    "b": (pa.bool_(), [None, True, False]),
    "d": (pa.date32(), [None, datetime.date(1969, 12, 31), datetime.date(2026, 1, 1)]),
    "x": (pa.decimal128(10, 2), [None, decimal.Decimal("-0.01"), decimal.Decimal("1.50")]),
    "ms": (pa.timestamp("ms", "UTC"), [None, NOON, NOON + 1000 * MICRO]),
    "us": (pa.timestamp("us", "UTC"), [None, NOON, NOON + MICRO]),
}
SCHEMA = pa.schema([("id", pa.string()), *((name, kind) for name, (kind, _) in VALUES.items())])
LITERALS: dict[str, dict[str, Any]] = {
    "n": {"0": 0, "1": 1, "3000000000": 3_000_000_000, "-1": -1},
    "f": {"1.5D": 1.5, "double('nan')": float("nan"), "0D": 0.0},
    "s": {"'a'": "a", "'é'": "é", "''": ""},
    "b": {"true": True, "false": False},
    "d": {"date'2026-01-01'": datetime.date(2026, 1, 1), "date'1970-01-01'": datetime.date(1970, 1, 1)},
    "x": {"1.50": decimal.Decimal("1.50"), "1.505": decimal.Decimal("1.505"), "0": decimal.Decimal(0)},
    "ms": {f"timestamp'{NOON}'": NOON, f"timestamp'{NOON + MICRO}'": NOON + MICRO},
    "us": {f"timestamp'{NOON}'": NOON, f"timestamp'{NOON + MICRO}'": NOON + MICRO},
}
FORMS = {
    "{c} = {v}": lambda c, v, _: datasource.EqualTo((c,), v),
    "{c} <=> {v}": lambda c, v, _: datasource.EqualNullSafe((c,), v),
    "{c} > {v}": lambda c, v, _: datasource.GreaterThan((c,), v),
    "{c} >= {v}": lambda c, v, _: datasource.GreaterThanOrEqual((c,), v),
    "{c} < {v}": lambda c, v, _: datasource.LessThan((c,), v),
    "{c} <= {v}": lambda c, v, _: datasource.LessThanOrEqual((c,), v),
    "{c} IN ({v}, {w})": lambda c, v, w: datasource.In((c,), (v, w)),
    "{c} IN ({v}, NULL)": lambda c, v, _: datasource.In((c,), (v, None)),
    "{c} IS NULL": lambda c, _, __: datasource.IsNull((c,)),
    "{c} IS NOT NULL": lambda c, _, __: datasource.IsNotNull((c,)),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every value of a column in a file group of its own, so that statistics can rule it out; logs on top of base files."""
    rows: list[dict[str, Any]] = []
    for name, (_, values) in VALUES.items():
        rows += [{"id": f"{name}{at}", name: value} for at, value in enumerate(values)]
    folder = tmp_path_factory.mktemp("tables") / "t"
    with hudi.create_table(str(folder), SCHEMA, record_key="id", buckets=16) as table:
        table.upsert(pa.Table.from_pylist(rows[::2], schema=SCHEMA))
        table.compact()
        table.upsert(pa.Table.from_pylist(rows[1::2], schema=SCHEMA))
    return str(folder)


def conditions(name: str) -> dict[str, Any]:
    """In SQL, and as Spark pushes them; each also negated."""
    pairs = itertools.pairwise([*LITERALS[name].items(), *LITERALS[name].items()])
    found = {
        form.format(c=name, v=value[0], w=other[0]): make(name, value[1], other[1])
        for (value, other), (form, make) in itertools.product(pairs, FORMS.items())
    }
    return found | {f"NOT ({text})": datasource.Not(pushed) for text, pushed in found.items()}


@pytest.mark.parametrize("name", list(VALUES))
def test_no_row_that_spark_selects_is_ruled_out(spark: Any, url: str, name: str) -> None:
    with hudi.open_table(url) as table:
        rows = table.scan().to_table()
    asked = conditions(name)
    columns = [f"coalesce({text}, false) AS c{at}" for at, text in enumerate(asked)]
    by_spark = spark.createDataFrame(rows).selectExpr("id", *columns).toArrow()
    said = 0
    for at, (text, pushed) in enumerate(asked.items()):
        expression = expression_of([pushed], rows.schema)
        said += expression is not None
        passed = rows if expression is None else rows.filter(expression)
        selected = by_spark.filter(by_spark[f"c{at}"])
        assert set(selected["id"].to_pylist()) <= set(passed["id"].to_pylist()), text
    assert said >= (4 if name == "f" else len(asked) / 3), "of floats only nulls are ruled out"


@pytest.mark.parametrize("name", list(VALUES))
def test_a_query_has_the_same_rows_with_pushed_filters(spark: Any, url: str, name: str) -> None:
    source = spark.read.format("headgate").load(url)
    rows = spark.createDataFrame(source.toArrow())
    first, other, *_ = LITERALS[name]
    for condition in (f"{name} >= {first}", f"NOT {name} IN ({first}, {other})", f"{name} <=> {other}"):
        assert_same_rows(source.where(condition).toArrow(), rows.where(condition).toArrow(), condition)


def made(kind: str, *values: Any) -> Any:
    return getattr(datasource, kind)(*values)


def test_what_cannot_be_said_exactly_rules_nothing_out() -> None:
    zoned = pa.schema(
        [("at", pa.timestamp("ms", "UTC")), ("f", pa.float64()), ("n", pa.int32()), ("deep", pa.struct([("n", pa.int32())]))]
    )
    for left_out in (
        made("LessThan", ("at",), NOON + MICRO),
        made("LessThan", ("at",), NOON.replace(tzinfo=None)),
        made("GreaterThan", ("f",), 1.0),
        made("EqualNullSafe", ("n",), 1),
        made("EqualTo", ("n",), 2**40),
        made("In", ("n",), (1, 2**40)),
        made("EqualTo", ("deep", "n"), 1),
        made("EqualTo", ("gone",), 1),
        made("StringContains", ("n",), "x"),
    ):
        assert expression_of([left_out], zoned) is None
        assert expression_of([made("Not", left_out)], zoned) is None
    said = expression_of([made("EqualTo", ("n",), 1), made("LessThan", ("at",), NOON), made("GreaterThan", ("f",), 1.0)], zoned)
    assert str(said) == "((n == 1) and (at < 2026-01-01 12:00:00.000Z))"
