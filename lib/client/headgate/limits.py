"""Holds rows to what a writer takes: how many deletes at once, and how large a row and a value may be."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from headgate.errors import TooLargeError
from headgate_proto.limits import BATCH_ROWS, FILLED_BYTES, ROW_BYTES, VALUE_BYTES

if TYPE_CHECKING:
    from headgate.values import Array

_FEW_ROWS = 1024
_BITS = 8
"""A writer counts a byte for a boolean, of which Arrow stores a bit: no value counts for more than so many times its bytes."""


def most_deletes(stored: pa.Schema, sent: pa.Schema) -> int:
    """Rows whose nulls in the columns that are not sent stay within a writer's limit."""
    nbytes: int = sum(pa.nulls(1, field.type).nbytes for field in stored if field.name not in sent.names)
    return max(1, min(BATCH_ROWS, FILLED_BYTES // max(1, nbytes)))


def check_sizes(batch: pa.RecordBatch, first: int) -> None:
    """Raises TooLargeError for a row, or a value in it, above a writer's limit. ``first``: the number of the first row."""
    if _most_bytes(batch) * _BITS <= VALUE_BYTES:
        return
    bounds = [_bound(column) for column in batch.columns]
    for name, column, bound in zip(batch.schema.names, batch.columns, bounds, strict=True):
        for at in _large(column, 0, VALUE_BYTES) if bound > VALUE_BYTES else ():
            _check(value_bytes(column.slice(at, 1)), VALUE_BYTES, f"row {first + at}, column {name!r}")
    for at in _large(batch, 0, ROW_BYTES) if sum(bounds) > ROW_BYTES else ():
        size = sum(value_bytes(column.slice(at, 1)) for column in batch.columns)
        _check(size, ROW_BYTES, f"row {first + at}")


def _most_bytes(batch: pa.RecordBatch) -> int:
    """No less than its Arrow bytes. Of few rows the size of their message is found in a tenth of the time."""
    return pa.ipc.get_record_batch_size(batch) if batch.num_rows <= _FEW_ROWS else batch.nbytes


def _bound(values: "Array") -> int:
    """No value counts for more bytes. Exact for a column that is not nested: there it costs much less than to cut it."""
    if isinstance(values, pa.StringArray | pa.BinaryArray):
        return 4 + (pc.max(pc.binary_length(values)).as_py() or 0)
    return values.nbytes * _BITS if pat.is_nested(values.type) else value_bytes(values.slice(0, 1))


def value_bytes(values: "Array") -> int:
    """Arrow bytes of the values as a writer counts them: with offsets, without validity, a byte for a boolean."""
    kind = values.type
    if pat.is_null(kind):
        return 0
    if pat.is_boolean(kind):
        return len(values)
    if isinstance(values, pa.StructArray):
        return sum(value_bytes(values.field(at)) for at in range(kind.num_fields))
    if isinstance(values, pa.MapArray):
        inside = values.offsets[0].as_py(), values.offsets[-1].as_py()
        return 4 * len(values) + sum(value_bytes(part[slice(*inside)]) for part in (values.keys, values.items))
    if isinstance(values, pa.ListArray | pa.LargeListArray):
        return 4 * len(values) + value_bytes(values.flatten())
    if isinstance(values, pa.StringArray | pa.BinaryArray):
        return 4 * len(values) + (pc.sum(pc.binary_length(values)).as_py() or 0)
    return len(values) * int(kind.bit_width) // 8


def _large(values: "pa.RecordBatch | Array", first: int, limit: int) -> Iterator[int]:
    """The number of each row that may be above the limit; halves that cannot hold one are passed over."""
    if values.nbytes * _BITS <= limit:
        return
    if len(values) == 1:
        yield first
        return
    half = len(values) // 2
    yield from _large(values.slice(0, half), first, limit)
    yield from _large(values.slice(half), first + half, limit)


def _check(size: int, limit: int, where: str) -> None:
    if size > limit:
        raise TooLargeError(
            f"{where}: {size:,} bytes, and the limit is {limit:,}", fix="Keep such values in files, and send the files' names."
        )
