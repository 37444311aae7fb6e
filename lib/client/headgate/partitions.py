"""Cuts record batches so that no message belongs to more partitions than a writer takes at once."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from headgate.values import Array


def cut_at_partitions(batch: pa.RecordBatch, columns: Sequence[str], most: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yields the rows in their order, in slices of at most ``most`` distinct partitions, as long as they can be, with how many.

    Distinct are the values of the partition columns: no two partitions have the same. Without columns: the whole batch, and 0.
    """
    if not columns or not batch.num_rows:
        yield batch, 0
        return
    while batch.num_rows:
        numbers = _numbers(batch, columns)
        distinct = cast("int", pc.max(numbers).as_py()) + 1
        # A value's number is how many others came first, so the first row with this number is the first one too many.
        length = batch.num_rows if distinct <= most else pc.index(numbers, pa.scalar(most, numbers.type)).as_py()
        yield batch.slice(0, length), min(distinct, most)
        batch = batch.slice(length)


def _numbers(batch: pa.RecordBatch, columns: Sequence[str]) -> "Array":
    """int64[n]: equal where all columns are, numbered by first appearance."""
    numbers = _numbered(batch.column(columns[0]))
    for name in columns[1:]:
        others = _numbered(batch.column(name))
        factor = pa.scalar(cast("int", pc.max(others).as_py()) + 1, pa.int64())
        numbers = _numbered(pc.add(pc.multiply(numbers, factor), others))
    return numbers


def _numbered(values: "Array") -> "Array":
    encoded = cast(
        "pa.DictionaryArray[pa.lib.Int32Type, pa.lib.StringType]", pc.dictionary_encode(values, null_encoding="encode")
    )
    return encoded.indices.cast(pa.int64())
