"""Columns of objects and lists, whose innermost columns are converted."""

from bisect import bisect_right
from collections.abc import Callable

import pyarrow as pa

from headgate_cli.reading.text_values import Array, MisfitError
from headgate_tables.arrow import pc

Leaf = Callable[[Array, pa.DataType], Array]


def nested(column: Array, kind: pa.DataType, leaf: Leaf) -> Array:
    """``column`` as ``kind``: ``leaf`` converts what is neither an object nor a list. Raises MisfitError of a row."""
    if isinstance(kind, pa.StructType) and isinstance(column.type, pa.StructType):
        inner = [nested(pc.struct_field(column, [at]), field.type, leaf) for at, field in enumerate(kind)]
        return pa.StructArray.from_arrays(inner, fields=list(kind), mask=column.is_null())
    if isinstance(kind, pa.ListType) and isinstance(column.type, pa.ListType):
        whole = column.take(pa.array(range(len(column)))) if column.offset else column
        try:
            inner = nested(whole.values, kind.value_type, leaf)
        except MisfitError as misfit:
            row = bisect_right(whole.offsets.to_pylist(), misfit.index) - 1
            raise MisfitError(row, misfit.value, misfit.why) from misfit
        return pa.ListArray.from_arrays(whole.offsets, inner, type=kind, mask=whole.is_null())
    return leaf(column, kind)
