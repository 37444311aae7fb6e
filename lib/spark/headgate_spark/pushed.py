"""Conditions that Spark pushes into a read, in the library's terms. They only rule out: Spark checks what is left again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter  # PySpark 4.1

_COMPARISONS: Final[Mapping[str, Callable[..., pc.Expression]]] = {
    "EqualTo": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
}
_IsKind = Callable[[pa.DataType], bool]
_EXACT: Final[tuple[_IsKind, ...]] = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_date,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_timestamp,
)
"""Types of which Arrow compares values as Spark does. Of floats it does not: in Spark NaN is above all numbers."""


def expression_of(filters: Iterable[Filter], schema: pa.Schema) -> pc.Expression | None:
    """What PySpark's filters say together of a table with this schema. At least the rows that they select pass: a filter that
    cannot be said exactly is left out. None: nothing is ruled out.
    """
    found = [each for each in (_expression(wanted, schema) for wanted in filters) if each is not None]
    return reduce(operator.and_, found) if found else None


def _expression(wanted: Filter, schema: pa.Schema) -> pc.Expression | None:
    kind = type(wanted).__name__
    if kind == "Not":
        # Where Spark's answer is null, Arrow's is null or true. EqualNullSafe, of which this does not hold, is not said at all.
        inner = _expression(wanted.child, schema)
        return None if inner is None else ~inner
    [*parents, name] = wanted.attribute
    if parents or name not in schema.names:
        return None
    field, column = schema.field(name), pc.field(name)
    if kind == "IsNull":
        return column.is_null()
    if kind == "IsNotNull":
        return ~column.is_null()
    if not any(is_exact(field.type) for is_exact in _EXACT):
        return None
    if kind == "In":
        values = [_scalar(value, field.type) for value in wanted.value]
        return None if None in values else column.isin([each.as_py() for each in values if each is not None])
    value = _scalar(wanted.value, field.type) if kind in _COMPARISONS else None
    return None if value is None else _COMPARISONS[kind](column, value)


def _scalar(value: object, kind: pa.DataType) -> pa.Scalar[pa.DataType] | None:
    """The value in the column's type; None when it has none there."""
    if isinstance(kind, pa.TimestampType) and (not isinstance(value, datetime) or (value.tzinfo is None) != (kind.tz is None)):
        return None  # Arrow would drop the zone
    try:
        found = pa.scalar(value, kind)
        return found if found.as_py() == value else None  # Arrow cuts off what a type has no room for
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
