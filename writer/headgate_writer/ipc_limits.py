"""Checks the sizes that a client's Arrow messages declare, before Arrow reads the messages.

Arrow trusts a message: it allocates as much as a compressed buffer's prefix declares, and builds every level that a schema nests.
All of this stands in the metadata, so refusing a bomb costs no more than reading its metadata. Field numbers: Arrow's
Message.fbs and Schema.fbs.
"""

import struct
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import CodeValue, rpc_error
from headgate_writer.flatbuffer import DamagedError, Table

_CONTINUATION: Final = b"\xff\xff\xff\xff"
_BYTE, _SHORT, _LONG = struct.Struct("<B"), struct.Struct("<h"), struct.Struct("<q")
_METADATA_V5: Final = 4
"""Older messages mark compression elsewhere (``ARROW:experimental_compression``)."""
_SCHEMA, _RECORD_BATCH = 1, 3
_EXTENSION: Final = b"ARROW:extension:name"
_TYPES: Final = frozenset([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17, 19, 20, 21])
"""Null to Timestamp, List, Struct, FixedSizeBinary, FixedSizeList, Map, LargeBinary, LargeUtf8, LargeList. Not views and run-end
encoded columns: a few bytes of these repeat one megabyte in each of a million rows."""
_DECIMAL: Final = 7
_PIECES: Final = "Send the rows in smaller batches."


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one batch. A larger batch would take memory before anything is known about it.

    ``wire_bytes``: of the record batch message. ``body_bytes``: uncompressed, as declared, and at most ``ratio`` times the bytes
    on the wire. ``columns``: nested ones included. ``values``: of all columns together, nulls included; a table may store each
    in 8 bytes, however few it took on the wire. ``cell_bytes``: of one column's value in one row.
    """

    wire_bytes: int = 8 << 20
    body_bytes: int = 64 << 20
    ratio: int = 100
    schema_bytes: int = 256 << 10
    columns: int = 2_000
    nesting: int = 16
    rows: int = 1_000_000
    values: int = 16 << 20
    cell_bytes: int = 1 << 20


def refuse(code: CodeValue, message: str, fix: str) -> NoReturn:
    """Raises RpcError."""
    raise rpc_error(code, message, fix)


def too_large(what: str, found: int, limit: int, fix: str = _PIECES) -> NoReturn:
    """Raises RpcError with CODE_TOO_LARGE, and the limit in its message."""
    refuse(errors_pb2.CODE_TOO_LARGE, f"{what}: {found:,}, and the limit is {limit:,}", fix)


def corrupt(what: str) -> NoReturn:
    """Raises RpcError with CODE_CORRUPT_BATCH."""
    refuse(
        errors_pb2.CODE_CORRUPT_BATCH,
        what,
        "Send the bytes of Arrow's own serializer, unchanged; these were damaged, or not made by it.",
    )


def check_schema(message: bytes, limits: Limits) -> None:
    """Raises RpcError unless ``message`` is an Arrow IPC schema message within the limits, without dictionaries or extensions."""
    if len(message) > limits.schema_bytes:
        too_large("bytes of the schema", len(message), limits.schema_bytes, "Use fewer or shorter column names and metadata.")
    try:
        metadata, _ = _open(message, _SCHEMA, "schema")
        if metadata.number(0, _SHORT, 0) != 0:
            refuse(errors_pb2.CODE_SCHEMA, "the schema is big-endian", "Send little-endian Arrow data.")
        _check_fields(metadata, limits)
    except DamagedError:
        corrupt("the schema is no Arrow IPC message")


def check_batch(message: bytes, limits: Limits) -> int:
    """Returns the uncompressed bytes that the message declares.

    Raises RpcError unless it is an Arrow IPC record batch message within the limits.
    """
    if len(message) > limits.wire_bytes:
        too_large("bytes of the batch on the wire", len(message), limits.wire_bytes)
    try:
        batch, body = _open(message, _RECORD_BATCH, "record batch")
        rows = batch.number(0, _LONG, 0)
        nodes = batch.longs(1, 2)
        buffers = batch.longs(2, 2)
        compressed = batch.table(3) is not None
    except DamagedError:
        corrupt("the rows are no Arrow IPC message")
    if rows < 0 or (nodes < 0).any():
        corrupt("the batch declares a negative length")
    if rows > limits.rows:
        too_large("rows of the batch", rows, limits.rows)
    # Python's integers: two hostile lengths can overflow 64 bits.
    if (values := sum(nodes[:, 0].tolist())) > limits.values:
        too_large("values of the batch in all columns", values, limits.values)
    declared = _declared_bytes(buffers, body, compressed=compressed)
    if declared > limits.body_bytes:
        too_large("uncompressed bytes of the batch", declared, limits.body_bytes)
    if declared > limits.ratio * len(message):
        fix = "Send these rows uncompressed, or with fewer repeated values in a batch."
        too_large("times that the batch grows when it is decompressed", declared // len(message), limits.ratio, fix)
    return declared


def _open(message: bytes, kind: int, name: str) -> tuple[Table, memoryview]:
    """Returns the header table of an encapsulated message of that kind, and its body."""
    if len(message) < 8 or message[:4] != _CONTINUATION:
        raise DamagedError
    view = memoryview(message)
    size = int.from_bytes(message[4:8], "little", signed=True)
    if size < 8 or size > len(message) - 8:
        raise DamagedError
    root = Table.root(view[8 : 8 + size])
    body = view[8 + size :]
    if root.number(0, _SHORT, 0) != _METADATA_V5:
        refuse(errors_pb2.CODE_CORRUPT_BATCH, "the message is not of Arrow's metadata version 5", "Use Arrow 1.0 or newer.")
    if root.number(1, _BYTE, 0) != kind:
        corrupt(f"the message is no Arrow IPC {name}")
    header = root.table(2)
    if header is None or root.number(3, _LONG, 0) != len(body):
        raise DamagedError
    return header, body


def _check_fields(schema: Table, limits: Limits) -> None:
    """Checks level by level: tables of a flatbuffer may share children, so a small message can spell an endless schema."""
    seen = 0
    level = [schema]
    for depth in range(limits.nesting + 1):
        below: list[Table] = []
        for table in level:
            children = table.tables(1 if depth == 0 else 5, limits.columns - seen)
            if children is None:
                too_large("columns, nested ones counted", limits.columns + 1, limits.columns, "Use a narrower schema.")
            seen += len(children)
            for child in children:
                _check_field(child)
            below += children
        if not below:
            return
        level = below
    too_large("levels of nested columns", limits.nesting + 1, limits.nesting, "Flatten the nested columns.")


def _check_field(field: Table) -> None:
    name = field.text(0).decode(errors="replace")[:60]
    if field.table(4) is not None:
        refuse(errors_pb2.CODE_SCHEMA, f"column {name!r} is dictionary-encoded", "Send the values themselves.")
    kind = field.number(2, _BYTE, 0)
    described = field.table(3)
    narrow = kind == _DECIMAL and (described is None or described.number(2, struct.Struct("<i"), 128) < 128)
    if kind not in _TYPES or narrow:
        refuse(
            errors_pb2.CODE_SCHEMA,
            f"column {name!r} has an Arrow type that writers do not take",
            "Use the types of the table's schema: no views, no run-end encoding, no decimals below 128 bits.",
        )
    metadata = field.tables(6, most=1_000)
    if metadata is None or any(entry.text(0) == _EXTENSION for entry in metadata):
        refuse(errors_pb2.CODE_SCHEMA, f"column {name!r} has an extension type", "Send its storage type.")


def _declared_bytes(buffers: npt.NDArray[np.int64], body: memoryview, *, compressed: bool) -> int:
    """Returns the uncompressed bytes of all buffers. Raises RpcError unless each lies in the body."""
    if not len(buffers):
        return 0
    offsets, lengths = buffers[:, 0], buffers[:, 1]
    if (buffers < 0).any() or (offsets > len(body) - lengths).any():
        corrupt("a buffer of the batch lies outside of it")
    if not compressed:
        return sum(lengths.tolist())
    offsets, lengths = offsets[lengths > 0], lengths[lengths > 0]
    if (lengths < 8).any():
        corrupt("a compressed buffer of the batch is too short")
    # Each begins with its uncompressed length, or -1 if it was left uncompressed (Message.fbs, BodyCompressionMethod).
    prefixes = np.frombuffer(body, np.uint8)[offsets[:, None] + np.arange(8)].view("<i8").ravel()
    if (prefixes < -1).any():
        corrupt("a compressed buffer of the batch declares a negative length")
    return sum(np.where(prefixes < 0, lengths - 8, prefixes).tolist())
