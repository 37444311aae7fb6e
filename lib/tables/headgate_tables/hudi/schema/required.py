"""Columns and parts of nested ones that must not hold null.

What lies under a null list or struct is no value, so it may be null even where the table forbids it, and Arrow producers leave
nulls there. Arrow's Parquet writer would refuse them, so they are filled (test_null_under_a_null_struct_is_no_value).
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, ChunkedArray, Field
from headgate_tables.errors import SchemaError

_Mask = npt.NDArray[np.bool_]


def without_forbidden_nulls(rows: pa.Table, shown: _Mask | None = None) -> pa.Table:
    """The rows, with what lies under nulls filled. Raises SchemaError for null where the schema forbids it.

    ``shown``: bool[n], False for rows whose values nobody will see; None when all are seen.
    """
    fields = list(zip(rows.schema, rows.columns, strict=True))
    if not any(_suspect(chunk, field) for field, column in fields for chunk in column.chunks):
        return rows
    seen = np.ones(rows.num_rows, np.bool_) if shown is None else shown
    columns = [_checked_chunks(column, field, seen) for field, column in fields]
    return pa.table(columns, schema=rows.schema)


def _checked_chunks(column: ChunkedArray, field: Field, shown: _Mask) -> ChunkedArray:
    starts = itertools.accumulate((len(chunk) for chunk in column.chunks), initial=0)
    return pa.chunked_array(
        [
            _checked(chunk, field, field.name, shown[start : start + len(chunk)])
            for start, chunk in zip(starts, column.chunks, strict=False)
        ],
        type=field.type,
    )


def _suspect(array: Array, field: Field) -> bool:
    """Whether a part that forbids null has one anywhere, shown or not."""
    kind = field.type
    if not field.nullable and array.null_count:
        return True
    if isinstance(array, pa.StructArray):
        return any(_suspect(array.field(i), kind.field(i)) for i in range(kind.num_fields))
    if isinstance(array, pa.MapArray):
        return _suspect(array.items, kind.item_field)
    return isinstance(array, pa.ListArray) and _suspect(array.values, kind.value_field)


def _checked(array: Array, field: Field, path: str, shown: _Mask) -> Array:
    """``shown``: bool[n], the values that are not under a null."""
    if not _suspect(array, field):
        return array
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if not field.nullable and (shown & ~valid).any():
        raise SchemaError(
            f"Column {path!r} holds null, which the table does not allow",
            fix="Fill in the values, or create the table with a nullable column.",
        )
    if isinstance(array, pa.StructArray):
        return _checked_struct(array, field, path, shown & valid)
    buffers, kind = array.buffers(), array.type
    children: list[Array] | None = None
    if isinstance(array, pa.MapArray):
        inside = _inside(array.offsets, len(array.items), shown & valid)
        items = _checked(array.items, kind.item_field, f"{path}.value", inside)
        entries = pa.StructArray.from_arrays([array.keys, items], fields=[kind.key_field, kind.item_field])
        buffers, children = buffers[:2], [entries]
    elif isinstance(array, pa.ListArray):
        inside = _inside(array.offsets, len(array.values), shown & valid)
        buffers, children = buffers[:2], [_checked(array.values, kind.value_field, f"{path}.element", inside)]
    if not field.nullable:
        buffers[0] = None
    return pa.Array.from_buffers(kind, len(array), buffers, offset=array.offset, children=children)


def _checked_struct(array: pa.StructArray, field: Field, path: str, shown: _Mask) -> Array:
    fields = [array.type.field(i) for i in range(array.type.num_fields)]
    parts = [_checked(array.field(i), part, f"{path}.{part.name}", shown) for i, part in enumerate(fields)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null() if field.nullable else None)


def _inside(offsets: Array, length: int, shown: _Mask) -> _Mask:
    """bool[length]: the values that a shown list or map points to."""
    bounds = offsets.to_numpy()
    depth = np.zeros(length + 1, np.int64)
    np.add.at(depth, bounds[:-1][shown], 1)
    np.add.at(depth, bounds[1:][shown], -1)
    inside: _Mask = np.cumsum(depth[:-1]) > 0
    return inside
