"""Encodes rows in Avro's binary form, whole columns at a time; the inverse of ``avro_rows``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.arrow import Array, buffer_bytes, mask_array, offsets_of
from headgate_tables.hudi.log.avro_binary import varint
from headgate_tables.hudi.log.avro_pieces import Ints, Mask, Pieces
from headgate_tables.hudi.schema.arrow_to_avro import decimal_size

_GIVEN = np.full((1, 1), 2, dtype=np.uint8)
"""The tag of a value in a union of null and its type, whose branch number 1 is."""
_END = np.zeros((1, 1), dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class RowBytes:
    """Rows one after the other, each with its length in four bytes in front. Row i begins at ``offsets[i]``, int64[n + 1]."""

    content: pa.Buffer
    offsets: Ints

    def slice(self, start: int, stop: int) -> pa.Buffer:
        """The bytes of the rows ``start`` to ``stop``, without a copy."""
        first, end = int(self.offsets[start]), int(self.offsets[stop])
        return self.content.slice(first, end - first)


def encode_rows(columns: list[Array], schema: pa.Schema) -> RowBytes:
    """Rows of canonical ``columns`` as ``arrow_to_avro.avro_schema`` describes ``schema``, byte for byte what fastavro writes.

    A column of text may be a dictionary array without nulls and of few values. Memory: about three times the result.
    """
    pieces = Pieces(len(columns[0]))
    for column, field in zip(columns, schema, strict=True):
        _add(pieces, column, field.type, None, nullable=field.nullable)
    return RowBytes(*pieces.joined(framed=True))


def _add(pieces: Pieces, array: Array, kind: pa.DataType, present: Mask | None, *, nullable: bool) -> None:
    """``present``: where the enclosing value is not null, bool[n]; None: everywhere."""
    valid = present
    if nullable:
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
        pieces.add_cells(_GIVEN if valid is None else (valid.view(np.uint8) * np.uint8(2))[None, :], present)
    if isinstance(array, pa.StructArray) and isinstance(kind, pa.StructType):
        for i, child in enumerate(array.flatten()):  # which passes the struct's nulls down
            field = kind.field(i)
            _add(pieces, child, field.type, valid, nullable=field.nullable)
    elif isinstance(array, pa.ListArray | pa.MapArray):
        _add_list(pieces, array, kind, valid)
    elif isinstance(array, pa.DictionaryArray):
        texts = [str(text).encode() for text in array.dictionary.to_pylist()]
        each = pa.array([varint(len(text)) + text for text in texts], pa.binary()).take(array.indices)
        pieces.add_texts(each, np.diff(offsets_of(each)))
    elif pat.is_string(kind) or pat.is_binary(kind):
        lengths = np.diff(offsets_of(array)).astype(np.int64)
        if valid is not None:
            lengths *= valid
        pieces.add_numbers(lengths, valid)
        pieces.add_texts(pa.Array.from_buffers(pa.binary(), len(array), array.buffers(), offset=array.offset), lengths)
    else:
        _add_fixed(pieces, array, kind, valid)


def _add_fixed(pieces: Pieces, array: Array, kind: pa.DataType, valid: Mask | None) -> None:
    """Values whose width in Arrow is fixed."""
    n, raw = len(array), np.frombuffer(buffer_bytes(array, 1), dtype=np.uint8)
    if pat.is_boolean(kind):
        bits = np.unpackbits(raw, bitorder="little", count=array.offset + n)[array.offset :]
        pieces.add_cells(bits[None, :], valid)
        return
    width = kind.bit_width // 8
    values = raw[array.offset * width : (array.offset + n) * width]
    if pat.is_decimal(kind):
        pieces.add_cells(values.reshape(n, width).T[decimal_size(kind.precision) - 1 :: -1], valid)
    elif pat.is_floating(kind) or pat.is_fixed_size_binary(kind):
        pieces.add_cells(values.reshape(n, width).T, valid)
    else:
        pieces.add_numbers(values.view(np.int32 if width == 4 else np.int64).astype(np.int64, copy=False), valid)


def _add_list(pieces: Pieces, array: Array, kind: pa.DataType, valid: Mask | None) -> None:
    """The number of items, these, and an end; an empty list is its end alone."""
    starts = offsets_of(array)
    first = int(starts[0])
    content, offsets = _items(array, kind, first, int(starts[-1])).joined(framed=False)
    counts = np.diff(starts).astype(np.int64)
    given: Mask = counts > 0 if valid is None else valid & (counts > 0)
    bounds = offsets[starts - first]
    buffers = [mask_array(given).buffers()[1], pa.py_buffer(bounds.data), content]
    pieces.add_numbers(counts, given)
    pieces.add_texts(pa.Array.from_buffers(pa.large_binary(), len(array), buffers), np.diff(bounds) * given)
    pieces.add_cells(_END, valid)


def _items(array: Array, kind: pa.DataType, first: int, end: int) -> Pieces:
    """Of a list or map array, the items number ``first`` to ``end`` of all that it keeps."""
    items = Pieces(end - first)
    if isinstance(array, pa.MapArray) and isinstance(kind, pa.MapType):
        _add(items, array.keys.slice(first, end - first), kind.key_type, None, nullable=False)
        _add(items, array.items.slice(first, end - first), kind.item_type, None, nullable=kind.item_field.nullable)
    elif isinstance(array, pa.ListArray) and isinstance(kind, pa.ListType):
        field = kind.value_field
        _add(items, array.values.slice(first, end - first), field.type, None, nullable=field.nullable)
    return items
