"""Checks the sizes that a client's Arrow messages declare, before Arrow reads the messages.

Arrow trusts a message: it allocates as much as a compressed buffer's prefix declares. All of this stands in the metadata, so
refusing a bomb costs no more than reading its metadata. Field numbers: Arrow's Message.fbs and Schema.fbs.
"""

import operator
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.limits import BATCH_BYTES, BATCH_ROWS, BATCH_WIRE_BYTES, COMPRESSION_RATIO, VALUE_BYTES
from headgate_runtime.arrow_messages import LONG, RECORD_BATCH, open_message, too_large
from headgate_runtime.errors import CodeValue, rpc_error
from headgate_runtime.flatbuffer import DamagedError
from headgate_runtime.schema_limits import DECIMAL, DeclaredField, SchemaLimits, read_declared

_TYPES: Final = frozenset([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17, 19, 20, 21])
"""Null to Timestamp, List, Struct, FixedSizeBinary, FixedSizeList, Map, LargeBinary, LargeUtf8, LargeList. Not views and run-end
encoded columns: a few bytes of these repeat one megabyte in each of a million rows."""
_PIECES: Final = "Send the rows in smaller batches."
_BUFFERS_A_COLUMN: Final = 3
"""At most, of the types that are taken: validity, offsets, values."""
_PAIR: Final = 2 * LONG.size
"""Bytes of what describes a column or a buffer in a batch."""
_PREFIX: Final = LONG
"""Before the bytes of a compressed buffer."""
_BATCH_METADATA: Final = 16
"""Key-value pairs of a record batch message. Arrow itself writes none."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one batch. A larger batch would take memory before anything is known about it.

    ``wire_bytes``: of the record batch message. ``body_bytes``: uncompressed, as declared, and at most ``ratio`` times the bytes
    on the wire. ``values``: of all columns together, nulls included; a table may store each in 8 bytes, however few it took on
    the wire. ``cell_bytes``: of one column's value in one row. ``compressed``: whether a batch may be.
    """

    schema: SchemaLimits = field(default_factory=SchemaLimits)
    wire_bytes: int = BATCH_WIRE_BYTES
    body_bytes: int = BATCH_BYTES
    ratio: int = COMPRESSION_RATIO
    rows: int = BATCH_ROWS
    values: int = 16 << 20
    cell_bytes: int = VALUE_BYTES
    compressed: bool = True


def refuse(code: CodeValue, message: str, fix: str) -> NoReturn:
    """Raises RpcError."""
    raise rpc_error(code, message, fix)


def corrupt(what: str) -> NoReturn:
    """Raises RpcError with CODE_CORRUPT_BATCH."""
    refuse(
        errors_pb2.CODE_CORRUPT_BATCH,
        what,
        "Send the bytes of Arrow's own serializer, unchanged; these were damaged, or not made by it.",
    )


def check_schema(message: bytes, limits: SchemaLimits) -> None:
    """Raises RpcError unless this is an Arrow IPC schema message within the limits, without dictionaries and extensions.

    Costs some microseconds a column: call it off the loop for a message of more than some kilobytes.
    """
    try:
        declared = read_declared(message, limits)
    except DamagedError as damage:
        corrupt(f"the schema is no Arrow IPC message: {damage}")
    if declared.is_big_endian:
        refuse(errors_pb2.CODE_SCHEMA, "the schema is big-endian", "Send little-endian Arrow data.")
    for each in declared.fields:
        _check_field(each)


def _check_field(column: DeclaredField) -> None:
    if column.is_dictionary:
        refuse(errors_pb2.CODE_SCHEMA, f"column {column.name} is dictionary-encoded", "Send the values themselves.")
    if column.kind not in _TYPES or (column.kind == DECIMAL and column.bits < 128):
        refuse(
            errors_pb2.CODE_SCHEMA,
            f"column {column.name} has an Arrow type that writers do not take",
            "Use the types of the table's schema: no views, no run-end encoding, no decimals below 128 bits.",
        )
    if column.is_extension:
        refuse(errors_pb2.CODE_SCHEMA, f"column {column.name} has an extension type", "Send its storage type.")


def check_batch(message: bytes | memoryview, limits: Limits) -> int:
    """Returns the uncompressed bytes that the message declares.

    Raises RpcError unless it is an Arrow IPC record batch message within the limits.
    """
    if len(message) > limits.wire_bytes:
        raise too_large("bytes of the batch on the wire", len(message), limits.wire_bytes, _PIECES)
    try:
        batch, body, _ = open_message(message, RECORD_BATCH, "record batch", _BATCH_METADATA)
        rows = batch.number(0, LONG, 0)
        nodes, buffers = batch.elements(1, _PAIR), batch.elements(2, _PAIR)
        compressed = batch.table(3) is not None
        views = batch.elements(4, LONG.size)
    except DamagedError as damage:
        corrupt(f"the rows are no Arrow IPC message: {damage}")
    if compressed and not limits.compressed:
        corrupt("the batch is compressed")
    _check_parts(len(nodes) // _PAIR, len(buffers) // _PAIR, views, limits)
    lengths = _longs(nodes)
    if rows < 0 or min(lengths, default=0) < 0:
        corrupt("the batch declares a negative length")
    if rows > limits.rows:
        raise too_large("rows of the batch", rows, limits.rows, _PIECES)
    if (values := sum(lengths[::2])) > limits.values:
        raise too_large("values of the batch in all columns", values, limits.values, _PIECES)
    declared = _declared_bytes(_longs(buffers), body, compressed=compressed)
    if declared > limits.body_bytes:
        raise too_large("uncompressed bytes of the batch", declared, limits.body_bytes, _PIECES)
    if declared > limits.ratio * len(message):
        fix = "Send these rows uncompressed, or with fewer repeated values in a batch."
        raise too_large("times that the batch grows when it is decompressed", declared // len(message), limits.ratio, fix)
    return declared


def _longs(elements: memoryview) -> Sequence[int]:
    """A vector of structs of two longs, one struct after the other.

    Python's integers: two hostile lengths can overflow 64 bits. And with few columns NumPy takes longer.
    """
    return struct.unpack(f"<{len(elements) // LONG.size}q", elements)


def _check_parts(nodes: int, buffers: int, views: memoryview, limits: Limits) -> None:
    """``nodes``: one a column, nested ones included. ``views``: numbers of buffers of view columns, which are not taken."""
    columns = limits.schema.columns
    if nodes > columns:
        raise too_large("columns of the batch, nested ones counted", nodes, columns, "Use a narrower schema.")
    if buffers > _BUFFERS_A_COLUMN * columns:
        raise too_large("buffers of the batch", buffers, _BUFFERS_A_COLUMN * columns, "Use a narrower schema.")
    if len(views):
        corrupt("the batch has buffers of view columns, which no schema that is taken has")


def _declared_bytes(buffers: Sequence[int], body: memoryview, *, compressed: bool) -> int:
    """Returns the uncompressed bytes of all buffers. Raises RpcError unless each lies in the body."""
    if not buffers:
        return 0
    offsets, lengths = buffers[::2], buffers[1::2]
    if min(buffers) < 0 or max(map(operator.add, offsets, lengths)) > len(body):
        corrupt("a buffer of the batch lies outside of it")
    if not compressed:
        return sum(lengths)
    if any(0 < length < _PREFIX.size for length in lengths):
        corrupt("a compressed buffer of the batch is too short")
    # Each begins with its uncompressed length, or -1 if it was left uncompressed (Message.fbs, BodyCompressionMethod).
    prefixed = [(_PREFIX.unpack_from(body, at)[0], length) for at, length in zip(offsets, lengths, strict=True) if length]
    if any(prefix < -1 for prefix, _ in prefixed):
        corrupt("a compressed buffer of the batch declares a negative length")
    return sum(length - _PREFIX.size if prefix < 0 else prefix for prefix, length in prefixed)
