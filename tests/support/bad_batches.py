"""Batches that a writer has to refuse, each with the error that it has to give: what is wrong by name, and what to do."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from headgate_proto.api.v1 import errors_pb2 as wire
from headgate_proto.api.v1 import ingest_pb2
from support import schema_bombs
from support.arrow_batches import Compression, batch, rows_message, schema_message

_COLUMNS: dict[str, pa.DataType] = {"id": pa.string(), "part": pa.string(), "ts": pa.int64(), "note": pa.string()}
SCHEMA = pa.schema(_COLUMNS)
"""Of the table: key ``id``, partition ``part``, ordering ``ts``."""
ROWS = pa.RecordBatch.from_pydict({"id": ["bad-1", "bad-2"], "part": ["p", "p"], "ts": [1, 1], "note": ["bad", "bad"]}, SCHEMA)
"""Good ones, from which the bad ones are made. If one of them is ever read back, it slipped through."""
MIB = 1 << 20
MIXED = ingest_pb2.OPERATION_MIXED


@dataclass(frozen=True, slots=True)
class Bad:
    """``make`` builds the batch, with offsets only where these are what is wrong. ``says`` and ``fix``: regular expressions."""

    make: Callable[[], ingest_pb2.Batch]
    code: "wire.Code.ValueType"
    says: str
    fix: str


def with_column(name: str, column: Any) -> pa.RecordBatch:
    """``ROWS`` with another column of that name, or one more; as long as the column is."""
    columns = {each: pa.array(ROWS[each].to_pylist()[:1] * len(column), ROWS[each].type) for each in ROWS.schema.names}
    return pa.RecordBatch.from_pydict({**columns, name: column})


def bomb(size: int, compression: Compression = "zstd", *, says: int | None = None) -> bytes:
    """A record batch message of one row whose text has ``size`` bytes, or says so although it has ``size``."""
    message = rows_message(with_column("note", pa.array(["x" * size])), compression)
    if says is None:
        return message
    # The last column's last buffer begins with its length; its offsets, in front, hold the same bytes.
    before, true, compressed = message.rpartition(struct.pack("<q", size))
    assert true, "the declared length is not where it is looked for"
    return before + struct.pack("<q", says) + compressed


def _column(name: str, *values: Any, kind: pa.DataType | None = None) -> Callable[[], ingest_pb2.Batch]:
    return lambda: batch(with_column(name, pa.array(list(values), kind)))


_good_schema = partial(schema_message, SCHEMA)


def _raw(rows: Callable[[], bytes], schema: Callable[[], bytes] | None = None) -> Callable[[], ingest_pb2.Batch]:
    def make() -> ingest_pb2.Batch:
        described = schema() if schema else schema_message(SCHEMA)
        return ingest_pb2.Batch(schema=described, rows=rows(), operation=ingest_pb2.OPERATION_UPSERT)

    return make


def _schema(*fields: Any) -> Callable[[], ingest_pb2.Batch]:
    return _raw(partial(rows_message, ROWS), lambda: schema_message(pa.schema(list(fields))))


def _operations(*values: Any, kind: pa.DataType | None = None) -> Callable[[], ingest_pb2.Batch]:
    return lambda: batch(with_column("op", pa.array(list(values), kind)), None, MIXED, "op")


def _at(after: int, offset: int) -> Callable[[], ingest_pb2.Batch]:
    def make() -> ingest_pb2.Batch:
        made = batch(ROWS)
        made.after, made.offset = after, offset
        return made

    return make


def _nested(levels: int) -> pa.DataType:
    kind: pa.DataType = pa.int8()
    for _ in range(levels):
        kind = pa.list_(kind)
    return kind


def _contradicting() -> bytes:
    """Text whose offsets go back: Arrow reads it and finds other memory there."""
    offsets = pa.py_buffer(np.array([0, 9, 2], np.int32).tobytes())
    return rows_message(with_column("note", pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcdefghi")])))


def _not_utf8() -> bytes:
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes())
    return rows_message(with_column("note", pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xff\xfe")])))


def _many_partitions() -> ingest_pb2.Batch:
    rows: dict[str, Any] = {"id": [str(n) for n in range(1025)], "part": [f"p{n}" for n in range(1025)]}
    rest: dict[str, Any] = {"ts": np.ones(1025, np.int64), "note": ["bad"] * 1025}
    return batch(pa.RecordBatch.from_pydict({**rows, **rest}, SCHEMA))


_FIX_PARTITION = "Change the value or leave its rows out"
_FIX_SERIALIZER = "Arrow's own serializer"
_FIX_PIECES = "smaller batches"
_FIX_OPERATION = "1 = upsert and 2 = delete"
_Table: TypeAlias = Mapping[str, Bad]

SCHEMAS: _Table = {
    "a column is missing": Bad(
        lambda: batch(ROWS.drop_columns("ts")), wire.CODE_SCHEMA, "missing: ts", "exactly these: id, part, ts, note"
    ),
    "an unknown column": Bad(_column("other", 1, 2), wire.CODE_SCHEMA, "unknown: other", "exactly these: id, part, ts, note"),
    "another type": Bad(_column("ts", "1", "2"), wire.CODE_SCHEMA, "'ts'", "Cast the column"),
    "a value too wide": Bad(_column("ts", 1.5, 2.5), wire.CODE_SCHEMA, "'ts'", "Cast the column"),
    "a dictionary": Bad(
        lambda: batch(with_column("note", pa.array(["a", "b"]).dictionary_encode())),
        wire.CODE_SCHEMA,
        "'note' is dictionary-encoded",
        "Send the values themselves",
    ),
    "an extension": Bad(
        lambda: batch(with_column("note", pa.array([b"1" * 16, b"2" * 16], pa.uuid()))),
        wire.CODE_SCHEMA,
        "'note' has an extension type",
        "storage type",
    ),
    "an extension by name": Bad(
        _schema(pa.field("note", pa.string(), metadata={"ARROW:extension:name": "arrow.py_extension_type"})),
        wire.CODE_SCHEMA,
        "'note' has an extension type",
        "storage type",
    ),
    "a view": Bad(_column("note", "a", "b", kind=pa.string_view()), wire.CODE_SCHEMA, "'note'", "types of the table's schema"),
    "too many columns": Bad(
        _schema(*((f"c{n}", pa.int8()) for n in range(2001))), wire.CODE_TOO_LARGE, "columns.* 2,000", "narrower schema"
    ),
    "too deep": Bad(_schema(("note", _nested(17))), wire.CODE_TOO_LARGE, "levels .* 16", "Flatten"),
    "a schema that spells more than it carries": Bad(
        _raw(partial(rows_message, ROWS), schema_bombs.SCHEMAS["metadata of 4 GB"]),
        wire.CODE_CORRUPT_BATCH,
        "schema .* used twice",
        _FIX_SERIALIZER,
    ),
    "a long name of a column": Bad(_schema(("n" * 256, pa.int8())), wire.CODE_TOO_LARGE, "'nnn.*256.* 255", "shorter name"),
    "a long schema": Bad(
        _schema(("n" * 300_000, pa.int8())), wire.CODE_TOO_LARGE, "bytes of the schema.* 262,144", "shorter column"
    ),
}

VALUES: _Table = {
    "a null key": Bad(_column("id", "bad", None), wire.CODE_NULL_KEY, "'id' .*row 1", "Give these rows a key"),
    "an empty key": Bad(_column("id", "", "bad"), wire.CODE_NULL_KEY, "'id' .*row 0", "Give these rows a key"),
    "a null ordering": Bad(_column("ts", 1, None), wire.CODE_NULL_ORDERING, "'ts' .*row 1", "ordering value"),
    "a null partition": Bad(_column("part", "p", None), wire.CODE_PARTITION_VALUE, "'part' .*row 1", "Give these rows a value"),
    "two dots": Bad(_column("part", "p", ".."), wire.CODE_PARTITION_VALUE, r"'\.\.' .*'part'", _FIX_PARTITION),
    "a dot": Bad(_column("part", "."), wire.CODE_PARTITION_VALUE, r"'\.' .*'part'", _FIX_PARTITION),
    "NUL": Bad(_column("part", "p\0q"), wire.CODE_PARTITION_VALUE, "'part' holds NUL", _FIX_PARTITION),
    "no name": Bad(_column("part", ""), wire.CODE_PARTITION_VALUE, "'' .*'part'", _FIX_PARTITION),
    "a long name": Bad(_column("part", "p" * 256), wire.CODE_PARTITION_VALUE, "'part' .*256 bytes, and 255", _FIX_PARTITION),
    "a long escaped name": Bad(_column("part", "/" * 100), wire.CODE_PARTITION_VALUE, "'part' .*300 bytes", _FIX_PARTITION),
    "Hudi's null": Bad(_column("part", "__HIVE_DEFAULT_PARTITION__"), wire.CODE_PARTITION_VALUE, "'part'", _FIX_PARTITION),
    "Hudi's folder": Bad(_column("part", ".hoodie"), wire.CODE_PARTITION_VALUE, "'part' .*Hudi's own", _FIX_PARTITION),
    "too many partitions": Bad(_many_partitions, wire.CODE_TOO_LARGE, "partitions.* 1,025.* 1,024", "Sort the rows by partition"),
    "a value too large": Bad(
        _column("note", "x" * (MIB + 1)), wire.CODE_TOO_LARGE, "'note'.* 1,048,576", "Keep such values in files"
    ),
}

SIZES: _Table = {
    "bytes on the wire": Bad(
        lambda: batch(with_column("note", pa.array(["x" * 1_000_000] * 8 + ["x" * 400_000]))),
        wire.CODE_TOO_LARGE,
        "on the wire.* 8,388,608",
        _FIX_PIECES,
    ),
    "rows": Bad(
        lambda: batch(pa.RecordBatch.from_pydict({"id": pa.nulls(1_000_001)})),
        wire.CODE_TOO_LARGE,
        "rows.* 1,000,000",
        _FIX_PIECES,
    ),
    "values": Bad(
        lambda: batch(pa.RecordBatch.from_pydict({f"c{n}": pa.nulls(1_000_000) for n in range(17)})),
        wire.CODE_TOO_LARGE,
        "values.* 16,777,216",
        _FIX_PIECES,
    ),
    "a zstd bomb": Bad(_raw(partial(bomb, 65 * MIB)), wire.CODE_TOO_LARGE, "uncompressed bytes.* 67,108,864", _FIX_PIECES),
    "an lz4 bomb": Bad(_raw(partial(bomb, 65 * MIB, "lz4")), wire.CODE_TOO_LARGE, "uncompressed bytes.* 67,108,864", _FIX_PIECES),
    "a bomb below the limit of bytes": Bad(_raw(partial(bomb, 8 * MIB)), wire.CODE_TOO_LARGE, "times .* 100", "uncompressed"),
    "a zstd bomb that says it is small": Bad(
        _raw(partial(bomb, 65 * MIB, "zstd", says=1000)), wire.CODE_CORRUPT_BATCH, "not valid Arrow data", _FIX_SERIALIZER
    ),
    "an lz4 bomb that says it is small": Bad(
        _raw(partial(bomb, 65 * MIB, "lz4", says=MIB)), wire.CODE_CORRUPT_BATCH, "not valid Arrow data", _FIX_SERIALIZER
    ),
    "a small one that says it is large": Bad(
        _raw(partial(bomb, 70_000, "lz4", says=71_000)), wire.CODE_CORRUPT_BATCH, "not valid Arrow data", _FIX_SERIALIZER
    ),
}

DAMAGED: _Table = {
    "no bytes": Bad(_raw(bytes), wire.CODE_CORRUPT_BATCH, "no Arrow IPC message", _FIX_SERIALIZER),
    "noise": Bad(_raw(lambda: b"no arrow" * 99), wire.CODE_CORRUPT_BATCH, "no Arrow IPC message", _FIX_SERIALIZER),
    "a truncated message": Bad(_raw(lambda: rows_message(ROWS)[:-8]), wire.CODE_CORRUPT_BATCH, "no Arrow IPC", _FIX_SERIALIZER),
    "a schema for rows": Bad(_raw(lambda: schema_message(SCHEMA)), wire.CODE_CORRUPT_BATCH, "no record batch", _FIX_SERIALIZER),
    "rows for a schema": Bad(
        _raw(partial(rows_message, ROWS), partial(rows_message, ROWS)), wire.CODE_CORRUPT_BATCH, "no Arrow IPC", _FIX_SERIALIZER
    ),
    "a damaged schema": Bad(
        _raw(partial(rows_message, ROWS), lambda: schema_message(SCHEMA)[:-30]),
        wire.CODE_CORRUPT_BATCH,
        "schema",
        _FIX_SERIALIZER,
    ),
    "rows of another schema": Bad(
        _raw(lambda: rows_message(ROWS.select(["id"]))), wire.CODE_CORRUPT_BATCH, "not valid Arrow data", _FIX_SERIALIZER
    ),
    "offsets that go back": Bad(_raw(_contradicting), wire.CODE_CORRUPT_BATCH, "not valid Arrow data", _FIX_SERIALIZER),
    "text that is not UTF-8": Bad(_raw(_not_utf8), wire.CODE_CORRUPT_BATCH, "not valid Arrow data", _FIX_SERIALIZER),
}

OPERATIONS: _Table = {
    "an operation that is none": Bad(
        _operations(1, 7, kind=pa.int8()), wire.CODE_INVALID_ARGUMENT, "operation column .*row 1", _FIX_OPERATION
    ),
    "no operation": Bad(_operations("upsert", None), wire.CODE_INVALID_ARGUMENT, "operation column .*row 1", _FIX_OPERATION),
    "an operation in capitals": Bad(
        _operations("DELETE", "upsert"), wire.CODE_INVALID_ARGUMENT, "operation column .*row 0", _FIX_OPERATION
    ),
    "operations of another type": Bad(_operations(1, 2, kind=pa.int64()), wire.CODE_SCHEMA, "int64", _FIX_OPERATION),
    "no operation column": Bad(
        lambda: batch(ROWS, None, MIXED, "op"), wire.CODE_SCHEMA, "no operation column 'op'", "Name the column"
    ),
    "an operation that nobody knows": Bad(
        lambda: batch(ROWS, None, 9), wire.CODE_INVALID_ARGUMENT, "operation 9 is unknown", "UPSERT, DELETE or MIXED"
    ),
    "not said what to do": Bad(
        lambda: batch(ROWS, None, 0), wire.CODE_INVALID_ARGUMENT, "operation 0", "UPSERT, DELETE or MIXED"
    ),
}

OFFSETS: _Table = {
    "a gap": Bad(_at(3, 4), wire.CODE_OFFSET_GAP, "after=3, .*stands at 2", "Send the missing batches first, with after=2"),
    "another cut": Bad(_at(1, 4), wire.CODE_OFFSET_OVERLAP, "covers 1 to 4, .*stands at 2", "after=2"),
}

ALL: _Table = {**SCHEMAS, **VALUES, **SIZES, **DAMAGED, **OPERATIONS, **OFFSETS}
