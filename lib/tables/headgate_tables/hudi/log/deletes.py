"""Delete records of a DELETE block: key, partition path and ordering value of each (Hudi: HoodieDeleteBlock, version 3).

The list is Avro without a schema, so the union ordinals below are the format (Hudi's HoodieDeleteRecord.avsc).
The wrapper for each column type is the one that Hudi 1.2.0 on Spark writes itself and can read back: it compares
dates as integers and timestamps as longs, and fails on DateWrapper and TimestampMicrosWrapper (ClassCastException), although
the format has them. All records of a block have one wrapper: hudi-rs refuses a mixture.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.arrow import Array, Scalar, buffer_bytes, pc
from headgate_tables.errors import CorruptFileError, NullOrderingError, UnsupportedTableError, UnsupportedTypeError
from headgate_tables.hudi.log.avro_binary import as_original, ragged, read_varint, varint, varints
from headgate_tables.hudi.log.avro_columns import ColumnReader
from headgate_tables.hudi.log.avro_walk import OutOfStepError, Positions
from headgate_tables.hudi.log.delete_list import NO_ORDERING, decode_list
from headgate_tables.hudi.schema.avro_json import AvroSchema, AvroType

_VERSION = 3
_HEAD = struct.Struct(">ii")
_SMALL = 1024
"""Up to so many bytes, reading record by record is faster than starting the columnar decoder."""
_GIVEN = 2
"""The byte in front of a key that is there: branch 1 of its union."""
_WEEDINGS = 8
_MOST_STARTS = 16
"""For each record; of ours each has two such bytes, and few more by chance."""
_LONGEST_MIDDLE = 1024
_DECIMAL = pa.decimal128(30, 15)
_DECIMAL_JSON: AvroType = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}

_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES, _STRING, _DATE, _DECIMAL_ORDINAL, _TIME_US, _TIMESTAMP_US = range(1, 12)

_WRAPPED: dict[int, tuple[AvroSchema, pa.DataType]] = {
    _BOOLEAN: ("boolean", pa.bool_()),
    _INT: ("int", pa.int32()),
    _LONG: ("long", pa.int64()),
    _FLOAT: ("float", pa.float32()),
    _DOUBLE: ("double", pa.float64()),
    _BYTES: ("bytes", pa.binary()),
    _STRING: ("string", pa.string()),
    _DATE: ("int", pa.date32()),
    _DECIMAL_ORDINAL: (_DECIMAL_JSON, _DECIMAL),
    _TIME_US: ("long", pa.time64("us")),
    _TIMESTAMP_US: ("long", pa.timestamp("us", tz="UTC")),
}
"""Ordinal to the Avro type of its ``value`` and the Arrow type to read that as."""


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """``keys``, ``partitions``: string[n]. ``ordering``: [n] of the wrapper's type, null for a delete without an ordering
    value, which holds against everything before it; None when no delete has one.
    """

    keys: Array
    partitions: Array
    ordering: Array | None


def check_ordering_type(kind: pa.DataType, column: str) -> None:
    """Checks that Spark and hudi-rs compare values of this ordering column as we do, in rows and deletes.

    Raises UnsupportedTypeError. Seen with Hudi 1.2.0 and hudi-rs 0.5.0: neither orders bytes, hudi-rs ignores the ordering
    of booleans in deletes; a DecimalWrapper holds 15 digits on each side of the point. Spark compares strings of Parquet
    log blocks after reusing their buffer (test_spark_compares_strings_of_parquet_log_blocks_wrongly), and the
    milliseconds of a delete with the microseconds that it makes of a row's.
    """
    if pat.is_decimal(kind) and (kind.scale > 15 or kind.precision - kind.scale > 15):
        raise UnsupportedTypeError(
            f"Ordering column {column!r} is {kind}; Hudi orders by 15 digits on each side of the point",
            fix="Use decimal128(30, 15) or less.",
        )
    if pat.is_string(kind):
        raise UnsupportedTypeError(
            f"Ordering column {column!r} is {kind}, which Hudi on Spark compares wrongly",
            fix="Order by an integer or a timestamp('us').",
        )
    if pat.is_timestamp(kind) and kind.unit != "us":
        raise UnsupportedTypeError(
            f"Ordering column {column!r} is {kind}; Spark would take its deletes for older than they are",
            fix="Use timestamp('us').",
        )
    if pat.is_boolean(kind) or not (pat.is_primitive(kind) or pat.is_decimal(kind)):
        raise UnsupportedTypeError(
            f"Ordering column {column!r} is {kind}, which Hudi readers cannot order",
            fix="Order by an integer or a timestamp('us').",
        )


def encode(keys: Array, partition: str, ordering: Array | None) -> pa.Buffer:
    """The content of a DELETE block. ``keys``: string[n]; ``partition``: the path they share, "" when not partitioned.

    ``ordering``: [n] in the ordering column's stored type; None deletes everything before (IntWrapper 0).
    Raises NullOrderingError for a null among them (rule DE1), UnsupportedTypeError for a type that has no wrapper.
    """
    tail = b"\x02" + varint(len(partition.encode())) + partition.encode()
    raw = keys.cast(pa.binary())
    parts: list[Array | Scalar] = [pa.scalar(b"\x02"), varints(_lengths(raw)), raw]
    if ordering is None:
        parts.append(pa.scalar(tail + varint(_INT) + varint(0)))
    else:
        if ordering.null_count:
            raise NullOrderingError(
                "A delete has no ordering value", fix="Give every key that is deleted the value of the ordering column."
            )
        ordinal, values = _wrap(ordering)
        parts += [pa.scalar(tail + varint(ordinal)), values]
    records = _joined(*parts)
    items = _bytes_of(records)
    begin = varint(len(keys)) if len(keys) else b""
    return pa.py_buffer(b"".join((_HEAD.pack(_VERSION, len(begin) + items.size + 1), begin, memoryview(items), b"\x00")))


def decode(content: pa.Buffer, where: str) -> DeleteRows:
    """The records of a block. ``where`` names file and offset in errors.

    Raises CorruptFileError; UnsupportedTableError for content versions 1 and 2 (Java serialisation), for several
    ordering fields and for a block whose ordering values are of several types.
    """
    if content.size < _HEAD.size:
        raise _corrupt(where, "it ends before its length")
    version, length = _HEAD.unpack_from(content)
    if version != _VERSION:
        raise UnsupportedTableError(
            f"{where}: delete block of content version {version}", fix="Compact the table with the Hudi release that wrote it."
        )
    if length != content.size - _HEAD.size:
        raise _corrupt(where, "its length is not that of its records")
    payload = content.slice(_HEAD.size)
    decoded = _decode_columns(payload) if payload.size > _SMALL else None
    return DeleteRows(*(decoded if decoded is not None else decode_list(payload, where)))


def _decode_columns(payload: pa.Buffer) -> tuple[Array, Array, Array | None] | None:
    """All records at once, when they are one Avro array block, of one partition and one kind of ordering value; else None."""
    view = memoryview(payload).cast("B")
    try:
        count, start = read_varint(view, 0)
        partition, ordinal, middle = _first_middle(view, start)
    except (IndexError, ValueError):
        return None
    if not 0 < count <= payload.size or (ordinal not in _WRAPPED and ordinal != 0) or view[-1] != 0:
        return None
    run = payload.slice(start, payload.size - start - 1)
    reader, values = ColumnReader(run, steps=0), None
    try:
        starts = _record_starts(reader, count, middle, ordinal)
        keys, at = reader.read("string", starts + 1)
        if ordinal:
            shape, kind = _WRAPPED[ordinal]
            values = as_original(reader.read(shape, at + len(middle))[0], kind, shape)
    except (OutOfStepError, pa.ArrowException):
        return None
    return keys, pa.repeat(pa.scalar(partition), count), _without_markers(values, ordinal)


def _first_middle(view: memoryview, start: int) -> tuple[str, int, bytes]:
    """Of the first record: partition, ordinal of the ordering value, and what is between key and that value.

    Raises IndexError, ValueError.
    """
    length, position = read_varint(view, start + 1)
    begin = position + length
    branch, position = read_varint(view, begin)
    length, position = read_varint(view, position)
    if branch != 1 or not 0 <= length <= len(view) or not start < begin < len(view):
        raise ValueError("no partition")
    partition = str(view[position : position + length], "utf-8")
    ordinal, end = read_varint(view, position + length)
    return partition, ordinal, bytes(view[begin:end])


def _record_starts(reader: ColumnReader, count: int, middle: bytes, ordinal: int) -> Positions:
    """Where each of ``count`` records begins that have that between key and ordering value, and are the run from end to end.

    Each position where one may begin is followed to where that one would end. By chance there are too many: one at which none
    ends is no beginning. If there are still too many, the records are to be read one by one. Raises OutOfStepError.
    """
    walk, raw = reader.walk, reader.raw
    starts = np.flatnonzero(raw == _GIVEN)
    if len(starts) > _MOST_STARTS * count or len(middle) > _LONGEST_MIDDLE:
        raise OutOfStepError
    lengths, at = walk.numbers(starts + 1)
    inside = (lengths >= 0) & (lengths <= raw.size - len(middle) - at)
    starts, ends = starts[inside], (at + lengths)[inside]
    for byte in middle:
        same = raw.take(ends, mode="clip") == byte
        starts, ends = starts[same], ends[same] + 1
    if ordinal:
        ends = walk.past(_WRAPPED[ordinal][0], ends)
    for _ in range(_WEEDINGS):
        if len(starts) > count:
            begun = np.isin(starts, np.append(ends, 0))
            starts, ends = starts[begun], ends[begun]
    if len(starts) != count or starts[0] != 0 or not np.array_equal(ends, np.append(starts[1:], raw.size)):
        raise OutOfStepError
    return starts


def _without_markers(values: Array | None, ordinal: int) -> Array | None:
    """Null for IntWrapper 0, which is Hudi's "no ordering value" even in a table that is ordered by an int column."""
    if values is None or ordinal != _INT:
        return values
    marked = pc.equal(values, pa.scalar(NO_ORDERING, pa.int32()))
    return None if pc.all(marked).as_py() else pc.if_else(marked, pa.scalar(None, values.type), values)


def _wrap(ordering: Array) -> tuple[int, Array]:
    """The union ordinal and the encoded values."""
    kind = ordering.type
    if pat.is_boolean(kind):
        return _BOOLEAN, _cells(pc.cast(ordering, pa.uint8()).to_numpy())
    if pat.is_integer(kind) or pat.is_date32(kind) or pat.is_time(kind) or pat.is_timestamp(kind):
        plain = ordering.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_numpy()
        return (_INT if kind.bit_width == 32 else _LONG), varints(plain.astype(np.int64))
    if pat.is_float32(kind) or pat.is_float64(kind):
        return (_FLOAT if pat.is_float32(kind) else _DOUBLE), _cells(ordering.to_numpy().astype(f"<f{kind.byte_width}"))
    if pat.is_string(kind) or pat.is_binary(kind):
        raw = ordering.cast(pa.binary())
        return (_STRING if pat.is_string(kind) else _BYTES), _joined(varints(_lengths(raw)), raw)
    if pat.is_decimal128(kind):
        raw = decimal_bytes(pc.cast(ordering, _DECIMAL))
        return _DECIMAL_ORDINAL, _joined(varints(_lengths(raw)), raw)
    raise UnsupportedTypeError(f"Deletes cannot be ordered by {kind}", fix="Order by an integer or a timestamp('us').")


def decimal_bytes(values: Array) -> Array:
    """Unscaled values as Java's BigInteger writes them: big-endian two's complement in the fewest bytes."""
    raw = np.frombuffer(buffer_bytes(values, 1), dtype=np.uint8)[16 * values.offset : 16 * (values.offset + len(values))]
    cells = raw.reshape(-1, 16)[:, ::-1]
    sign = (cells[:, :1] >> 7) * np.uint8(0xFF)
    repeats_sign = (cells[:, :-1] == sign) & ((cells[:, 1:] ^ sign) < 0x80)
    used = np.ones(cells.shape, dtype=bool)
    used[:, :-1] = ~np.logical_and.accumulate(repeats_sign, axis=1)
    return ragged(cells, used)


def _joined(*parts: Array | Scalar) -> Array:
    """Concatenates them row by row; scalars are repeated in every row."""
    joined: Array = pc.binary_join_element_wise(*parts, b"")
    return joined


def _cells(numbers: npt.NDArray[np.number]) -> Array:
    raw = np.ascontiguousarray(numbers).view(np.uint8).reshape(len(numbers), -1)
    return ragged(raw, np.ones(raw.shape, dtype=bool))


def _lengths(values: Array) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int64] = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _bytes_of(records: Array) -> pa.Buffer:
    data = records.buffers()[2]
    return data.slice(0, pc.sum(pc.binary_length(records)).as_py() or 0) if data is not None else pa.py_buffer(b"")


def _corrupt(where: str, how: str) -> CorruptFileError:
    return CorruptFileError(
        f"{where}: a delete block is damaged, {how}", fix="Restore the file from a copy; verify() names every damaged file."
    )
