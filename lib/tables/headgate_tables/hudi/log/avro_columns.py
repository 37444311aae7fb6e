"""Reads values in Avro's binary form into Arrow columns, many at a time.

Of physical types (``avro_physical``), at positions that ascend; ``as_original`` makes the columns' own types of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, index_array, mask_array, pc
from headgate_tables.hudi.log.avro_walk import Bytes, OutOfStepError, Positions, Walk
from headgate_tables.hudi.schema.avro_json import AvroField, AvroSchema, AvroType, spelled_out

_DECIMAL_BYTES = 16
_FLOATS = {"float": pa.float32(), "double": pa.float64()}


class ColumnReader:
    """``run``: of bytes; ``raw`` are the same. ``steps``: as ``Walk`` has them. Its methods raise OutOfStepError, and
    ArrowException for text that is no Unicode and a decimal of too many digits.
    """

    def __init__(self, run: pa.Buffer, steps: int) -> None:
        self._run = run
        self.raw: Bytes = np.frombuffer(memoryview(run).cast("B"), dtype=np.uint8)
        self.walk = Walk(self.raw, steps)

    def read(self, shape: AvroSchema, at: Positions) -> tuple[Array, Positions]:
        """The values of this type at ``at``, and the positions after them."""
        if isinstance(shape, list):
            return self._union(shape, at)
        kind = shape if isinstance(shape, str) else shape["type"]
        if kind in ("int", "long"):
            return self._numbers(kind, at)
        if kind == "boolean":
            after = self.walk.past("boolean", at)
            return mask_array(self._cells(at, 1)[:, 0] == 1), after
        if isinstance(kind, str) and kind in _FLOATS:
            target, after = _FLOATS[kind], self.walk.past(kind, at)
            return _fixed_width(target, self._cells(at, target.byte_width)), after
        if kind in ("string", "bytes"):
            return self._text(shape, kind, at)
        return self._whole(spelled_out(shape), at)

    def _whole(self, shape: AvroType, at: Positions) -> tuple[Array, Positions]:
        match shape["type"]:
            case "record":
                return self._record(shape["fields"], at)
            case "array":
                return self._array(shape["items"], at)
            case "fixed":
                size = shape["size"]
                cells = self._cells(at, size)
                made = _decimals(cells, shape) if shape.get("logicalType") == "decimal" else _fixed_width(pa.binary(size), cells)
                return made, at + size
            case kind:
                return self.read(kind, at)

    def _union(self, shape: list[AvroSchema], at: Positions) -> tuple[Array, Positions]:
        branch, given = self.walk.given(shape, at)
        at = at + 1
        if given.size == at.size:
            return self.read(branch, at)
        values, at[given] = self.read(branch, at[given])
        chosen = np.zeros(at.size, dtype=np.int64)
        chosen[given] = np.arange(given.size)
        valid = np.zeros(at.size, dtype=np.bool_)
        valid[given] = True
        indices = pa.Array.from_buffers(pa.int64(), at.size, [mask_array(valid).buffers()[1], pa.py_buffer(chosen.data)])
        return values.take(indices), at

    def _numbers(self, kind: str, at: Positions) -> tuple[Array, Positions]:
        numbers, after = self.walk.whole_numbers(kind, at)
        if kind == "long":
            return index_array(numbers), after
        return _fixed_width(pa.int32(), numbers.astype(np.int32)), after

    def _text(self, shape: AvroSchema, kind: str, at: Positions) -> tuple[Array, Positions]:
        starts, ends = self.walk.texts(at)
        if isinstance(shape, dict) and shape.get("logicalType") == "decimal":
            return _decimals(self._right_aligned(starts, ends), shape), ends
        if not at.size:
            return pa.array([], pa.string() if kind == "string" else pa.binary()), ends
        # Texts and what is between them, of which every second one is wanted: Arrow gathers them at the speed of memory.
        bounds = np.empty(2 * at.size, dtype=np.int64)
        bounds[0::2], bounds[1::2] = starts, ends
        all_bytes = pa.Array.from_buffers(pa.large_binary(), 2 * at.size - 1, [None, pa.py_buffer(bounds.data), self._run])
        texts: Array = all_bytes.take(index_array(np.arange(0, 2 * at.size - 1, 2)))
        return pc.cast(texts, pa.string() if kind == "string" else pa.binary()), ends

    def _record(self, fields: list[AvroField], at: Positions) -> tuple[Array, Positions]:
        children = []
        for field in fields:
            child, at = self.read(field["type"], at)
            children.append(child)
        return pa.StructArray.from_arrays(children, names=[field["name"] for field in fields]), at

    def _array(self, items: AvroSchema, at: Positions) -> tuple[Array, Positions]:
        rows, starts, after = self.walk.items(items, at)
        order = np.argsort(rows, kind="stable")
        values, _ = self.read(items, starts[order])
        offsets = np.zeros(at.size + 1, dtype=np.int32)
        np.cumsum(np.bincount(rows, minlength=at.size), out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets.data)]
        made: Array = pa.Array.from_buffers(pa.list_(values.type), at.size, buffers, children=[values])
        return made, after

    def _cells(self, at: Positions, width: int) -> Bytes:
        """uint8[n, width]."""
        if at.size and int(at.max()) + width > self.raw.size:
            raise OutOfStepError
        if not at.size:
            return np.empty((0, width), dtype=np.uint8)
        return np.lib.stride_tricks.sliding_window_view(self.raw, width)[at]

    def _right_aligned(self, starts: Positions, ends: Positions) -> Bytes:
        """uint8[n, 16]: numbers of various lengths, each behind copies of its sign."""
        if (ends - starts > _DECIMAL_BYTES).any() or (ends == starts).any():
            raise OutOfStepError
        at = ends[:, None] - np.arange(_DECIMAL_BYTES, 0, -1)
        first = self.raw.take(starts, mode="clip")
        sign = (first >> 7) * np.uint8(0xFF)
        return np.where(at >= starts[:, None], self.raw.take(at, mode="clip"), sign[:, None])


def _fixed_width(target: pa.DataType, values: npt.NDArray[Any]) -> Array:
    """Of little-endian values, or of their bytes, uint8[n, width]."""
    whole = np.ascontiguousarray(values)
    made: Array = pa.Array.from_buffers(target, len(whole), [None, pa.py_buffer(whole.data)])
    return made


def _decimals(cells: Bytes, shape: AvroType) -> Array:
    """``cells``: uint8[n, width], the numbers without their points, the highest byte first."""
    width = cells.shape[1]
    sign = (cells[:, :1] >> 7) * np.uint8(0xFF)
    if width > _DECIMAL_BYTES:
        more, cells = cells[:, : width - _DECIMAL_BYTES], cells[:, width - _DECIMAL_BYTES :]
        if (more != sign).any() or ((cells[:, 0] ^ sign[:, 0]) >= 0x80).any():
            raise OutOfStepError
    stored = np.repeat(sign, _DECIMAL_BYTES, axis=1)
    stored[:, : cells.shape[1]] = cells[:, ::-1]
    made = _fixed_width(pa.decimal128(shape["precision"], shape.get("scale", 0)), stored)
    made.validate(full=True)
    return made
