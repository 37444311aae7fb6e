"""Random pyarrow filter expressions for Hypothesis."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

_COMPARISONS: list[Callable[[Any, Any], Any]] = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def expressions(rows: pa.Table, often: Sequence[str]) -> st.SearchStrategy[Any]:
    """Filters over the columns of ``rows``, every second time over those ``often`` asked for.

    Most literals are values that are there, so that something matches.
    """
    about = {name: _about(name, rows) for name in rows.column_names}
    leaves = st.one_of([about[name] for name in often]) | st.one_of(list(about.values()))
    leaves |= leaves.map(operator.inv)
    pairs = st.tuples(st.sampled_from([operator.and_, operator.or_]), leaves, leaves).map(
        lambda drawn: drawn[0](drawn[1], drawn[2])
    )
    return leaves | pairs | pairs.map(operator.inv) | st.tuples(pairs, pairs).map(lambda both: both[0] & both[1])


def _about(name: str, rows: pa.Table) -> st.SearchStrategy[Any]:
    column, kind = pc.field(name), rows.schema.field(name).type
    found = st.sampled_from([column.is_null(), column.is_valid()])
    if pa.types.is_nested(kind):
        return found
    values = _literals(name, rows)
    if pa.types.is_boolean(kind):
        found |= st.just(column)
    if pa.types.is_floating(kind):
        found |= st.sampled_from([pc.is_nan(column), column.is_null(nan_is_null=True)])
    compared = st.tuples(st.sampled_from(_COMPARISONS), values).map(lambda drawn: drawn[0](column, pa.scalar(drawn[1], kind)))
    others = [pc.field(other) for other in rows.column_names if other != name and rows.schema.field(other).type == kind]
    if others:
        found |= st.tuples(st.sampled_from(_COMPARISONS), st.sampled_from(others)).map(lambda drawn: drawn[0](column, drawn[1]))
    listed = st.lists(st.none() | values, max_size=3).map(lambda chosen: column.isin(pa.array(chosen, kind)))
    return found | compared | compared | listed


def _literals(name: str, rows: pa.Table) -> st.SearchStrategy[Any]:
    present = [value for value in rows[name].to_pylist() if value is not None]
    kind = rows.schema.field(name).type
    more: list[Any] = [float("nan"), 0.0, -0.0] if pa.types.is_floating(kind) else [0, 1] if pa.types.is_integer(kind) else []
    return st.sampled_from(present + more) if present or more else st.none()
