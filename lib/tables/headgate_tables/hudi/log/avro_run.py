"""Rows in Avro that lie one after the other, each with its length in four bytes in front."""

from __future__ import annotations

import struct
from collections.abc import Collection

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array, ChunkedArray
from headgate_tables.hudi.log.avro_columns import ColumnReader
from headgate_tables.hudi.log.avro_walk import OutOfStepError, Positions
from headgate_tables.hudi.schema.avro_json import AvroField

_AT_ONCE = 8192
"""Rows; more of them no longer lie in a core's cache."""
_FEWEST_STEPS = 4096
_ROWS_PER_STEP = 4
"""A step over one item of an array in every record costs about as much as reading four rows one by one: who has used up the
steps reads the block in that way, which takes no longer for many of them."""
_LENGTH = struct.Struct(">i")
LENGTH_BYTES = _LENGTH.size


def read_run(
    fields: list[AvroField], run: pa.Buffer, count: int, columns: Collection[str]
) -> tuple[dict[str, ChunkedArray], Positions]:
    """``columns`` of ``count`` rows of these physical ``fields``, and the bytes of each row.

    Raises OutOfStepError unless each row begins and ends where it should; ArrowException as ``ColumnReader``.
    """
    reader = ColumnReader(run, _FEWEST_STEPS + count // _ROWS_PER_STEP)
    view = memoryview(run).cast("B")
    found: dict[str, list[Array]] = {field["name"]: [] for field in fields if field["name"] in columns}
    lengths, end = [], 0
    for first in range(0, count, _AT_ONCE):
        starts, end = _row_starts(view, end, min(_AT_ONCE, count - first))
        ends = np.append(starts[1:] - LENGTH_BYTES, end)
        at = starts
        for field in fields:
            if (pieces := found.get(field["name"])) is None:
                at = reader.walk.past(field["type"], at)
            else:
                values, at = reader.read(field["type"], at)
                pieces.append(values)
        if not np.array_equal(at, ends):
            raise OutOfStepError
        lengths.append(ends - starts)
    return {name: pa.chunked_array(pieces) for name, pieces in found.items()}, np.concatenate(lengths)


def _row_starts(run: memoryview, at: int, count: int) -> tuple[Positions, int]:
    """Row by row, since each length says where the next one is: 0.1 s for a million. The first one's length is ``at`` there."""
    starts, size = [], len(run)
    for _ in range(count):
        if at + LENGTH_BYTES > size:
            raise OutOfStepError
        starts.append(at + LENGTH_BYTES)
        (length,) = _LENGTH.unpack_from(run, at)
        if length < 0:
            raise OutOfStepError
        at += LENGTH_BYTES + length
    return np.array(starts, dtype=np.int64), at
