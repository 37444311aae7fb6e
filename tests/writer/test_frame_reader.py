"""Frames that no writer of ours sends: each is refused in words, and nothing of it counts."""

import struct
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_tables.arrow import Array, Field
from headgate_tables.hudi.definition import Definition
from headgate_writer.frame_reader import FrameReader
from headgate_writer.frames import encode_rows
from headgate_writer.windows import ExchangeError
from support.arrow_batches import routed, rows_message, schema_message

_FIELDS: list[Field] = [
    pa.field("id", pa.int64(), nullable=False),
    pa.field("part", pa.string()),
    pa.field("ts", pa.int64()),
    pa.field("tags", pa.list_(pa.string())),
    pa.field("note", pa.string()),
]
SCHEMA = pa.schema(_FIELDS)
TABLE = Definition("t", SCHEMA, ("id",), ("part",), "ts", 4, False, True, uuid.UUID(int=1))
READER = FrameReader(TABLE)
END = b"\xff\xff\xff\xff\0\0\0\0"
GROUPS = [wire.GroupName(partition="p", bucket=0), wire.GroupName(partition="q", bucket=3)]

BASE: dict[str, pa.DataType] = {"id": pa.string(), "part": pa.string(), "ts": pa.int64()}
Columns = dict[str, Array]


def right() -> Columns:
    """Three rows of two buckets, as the batch of a frame has them."""
    return {
        "id": pa.array([1, 2, 3]),
        "part": pa.array(["p", "p", "q"]),
        "ts": pa.array([1, 2, 3]),
        "tags": pa.array([["a", "b"], [], None], pa.list_(pa.string())),
        "note": pa.array(["x", None, "longer than the others"]),
        "_headgate_key": pa.array(["1", "2", "3"]),
        "_headgate_delete": pa.array([False, True, False]),
        "_headgate_group": pa.array([0, 0, 1], pa.int32()),
    }


def batch_of(columns: Columns) -> pa.RecordBatch:
    known = {field.name: field for field in SCHEMA}
    fields = [
        known[name] if name in known and known[name].type == of.type else pa.field(name, of.type) for name, of in columns.items()
    ]
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=pa.schema(fields))


def frame(batch: pa.RecordBatch, groups: Sequence[wire.GroupName] = GROUPS) -> wire.Rows:
    return wire.Rows(groups=groups, batch=schema_message(batch.schema) + rows_message(batch) + END)


def with_column(name: str, column: Array) -> wire.Rows:
    return frame(batch_of({**right(), name: column}))


def without(name: str) -> wire.Rows:
    return frame(batch_of({each: column for each, column in right().items() if each != name}))


def damaged(column: str, part: int, content: bytes) -> wire.Rows:
    """The frame with other bytes in one buffer of a column."""
    batch = batch_of(right())
    buffer = batch.column(column).buffers()[part]
    assert buffer is not None
    whole = frame(batch)
    known = buffer.to_pybytes()
    assert whole.batch.count(known) == 1, "else another buffer is changed"
    return wire.Rows(groups=GROUPS, batch=whole.batch.replace(known, content + known[len(content) :]))


def compressed() -> wire.Rows:
    """64 MB of zeros in a few hundred bytes."""
    batch = batch_of({**right(), "note": pa.array(["\0" * (64 << 20), "", ""])})
    return wire.Rows(groups=GROUPS, batch=schema_message(batch.schema) + rows_message(batch, "zstd") + END)


def pieces(*shape: str) -> wire.Rows:
    """A stream of these messages."""
    batch = batch_of(right())
    made = {"schema": schema_message(batch.schema), "batch": rows_message(batch), "end": END}
    return wire.Rows(groups=GROUPS, batch=b"".join(made[each] for each in shape))


def dictionary() -> Array:
    return pa.array(["x", "y", "x"]).dictionary_encode()


STRANGE: dict[str, tuple[Callable[[], wire.Rows], str]] = {
    "no arrow": (lambda: wire.Rows(batch=b"no arrow"), "its end is missing|no Arrow IPC message"),
    "nothing": (lambda: wire.Rows(groups=GROUPS), "no Arrow IPC message"),
    "without the ordering column": (lambda: without("ts"), "not the table's"),
    "without keys": (lambda: without("_headgate_key"), "not the table's"),
    "without groups": (lambda: without("_headgate_group"), "not the table's"),
    "a column more": (lambda: with_column("more", pa.array([1, 2, 3])), "columns, nested ones counted"),
    "columns in another order": (lambda: frame(batch_of(dict(reversed(right().items())))), "not the table's"),
    "a column of another type": (lambda: with_column("ts", pa.array(["1", "2", "3"])), "not the table's"),
    "a dictionary": (lambda: with_column("note", dictionary()), "dictionary-encoded"),
    "groups as text": (lambda: with_column("_headgate_group", pa.array(["0", "0", "1"])), "not the table's"),
    "a group too high": (lambda: with_column("_headgate_group", pa.array([0, 1, 2], pa.int32())), "none of its 2 buckets"),
    "a group below 0": (lambda: with_column("_headgate_group", pa.array([0, 1, -1], pa.int32())), "none of its 2 buckets"),
    "no group": (lambda: with_column("_headgate_group", pa.array([0, 1, None], pa.int32())), "belongs to no bucket"),
    "a bucket without rows": (lambda: with_column("_headgate_group", pa.array([0, 0, 0], pa.int32())), "bucket without rows"),
    "a bucket that the table lacks": (
        lambda: frame(batch_of(right()), [GROUPS[0], wire.GroupName(partition="q", bucket=4)]),
        "that the table does not have",
    ),
    "no buckets": (lambda: frame(batch_of(right()), []), "none of its 0 buckets"),
    "no key": (lambda: with_column("_headgate_key", pa.array(["1", None, "3"])), "has no key"),
    "no word on deletes": (lambda: with_column("_headgate_delete", pa.array([True, None, False])), "whether it is a delete"),
    "no rows": (lambda: frame(batch_of({name: each.slice(0, 0) for name, each in right().items()})), "it has no rows"),
    "compressed": (compressed, "is compressed"),
    "offsets behind the end": (lambda: damaged("note", 1, struct.pack("<4i", 0, 1, 1, 1 << 30)), "ffset"),
    "offsets that go back": (lambda: damaged("note", 1, struct.pack("<4i", 0, 9, 1, 23)), "ffset"),
    "offsets of a list behind the end": (lambda: damaged("tags", 1, struct.pack("<4i", 0, 2, 2, 1 << 20)), "ffset"),
    "two batches": (lambda: pieces("schema", "batch", "batch", "end"), "its length is wrong"),
    "no batch": (lambda: pieces("schema", "end"), "no Arrow IPC message"),
    "no end": (lambda: pieces("schema", "batch"), "its end is missing"),
    "no schema": (lambda: pieces("batch", "end"), "no schema message"),
}
"""A frame, and words of its refusal."""


@pytest.mark.parametrize("name", STRANGE)
def test_ex6_a_frame_that_is_not_of_the_table_is_refused(name: str) -> None:
    make, why = STRANGE[name]
    with pytest.raises(ExchangeError, match=f"^a frame cannot be read: .*(?:{why})"):
        READER.decode(make())


def test_a_frame_that_is_right_is_read_without_a_copy() -> None:
    before = pa.total_allocated_bytes()
    rows = READER.decode(frame(batch_of(right())))
    assert pa.total_allocated_bytes() == before
    assert rows.rows.schema.equals(SCHEMA)
    assert rows.rows.to_pylist()[2] == {"id": 3, "part": "q", "ts": 3, "tags": None, "note": "longer than the others"}
    assert rows.keys.to_pylist() == ["1", "2", "3"]
    assert rows.deletes.to_pylist() == [False, True, False]
    assert [rows.groups[at] for at in rows.group] == [("p", 0), ("p", 0), ("q", 3)]


def test_a_schema_that_another_version_of_arrow_writes_in_other_bytes_is_the_tables() -> None:
    batch = batch_of(right())
    schema = schema_message(batch.schema.with_metadata({"written by": "another one"}))
    rows = READER.decode(wire.Rows(groups=GROUPS, batch=schema + rows_message(batch) + END))
    assert rows.rows.schema.equals(SCHEMA, check_metadata=True)


def test_what_a_writer_sends_begins_with_the_very_bytes_that_are_looked_for() -> None:
    """Else each frame's schema would be read, some microseconds a column."""
    (sent,) = encode_rows(routed([{"id": 1, "part": "p", "ts": 1, "tags": ["a"], "note": "n"}], TABLE))
    assert sent.message.batch.startswith(READER._head)


def test_a_table_of_every_kind_of_column_is_read() -> None:
    kinds: dict[str, pa.DataType] = {
        "s": pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))]),
        "m": pa.map_(pa.string(), pa.float64()),
        "d": pa.decimal128(20, 3),
        "b": pa.binary(),
        "f": pa.binary(4),
        "t": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
    }
    schema = pa.schema({**BASE, **kinds})
    table = Definition("t", schema, ("id",), ("part",), "ts", 4, False, True, uuid.UUID(int=1))
    row: dict[str, Any] = {
        "id": "1",
        "part": "p",
        "ts": 1,
        "s": {"a": "x", "b": [1, 2]},
        "m": [("k", 1.5)],
        "b": b"\xff",
        "f": b"abcd",
    }
    (sent,) = encode_rows(routed([row, {"id": "2", "part": "p", "ts": 2}], table))
    read = FrameReader(table).decode(sent.message)
    assert read.rows.to_pylist()[0] == {**dict.fromkeys(schema.names), **row}
    assert read.rows.num_rows == 2


def test_buffers_that_share_their_bytes_are_refused() -> None:
    """What counts in memory would be less than what merging the rows takes: 1,000 columns of the same megabyte."""
    names = [f"c{n}" for n in range(40)]
    schema = pa.schema({**BASE, **dict.fromkeys(names, pa.string())})
    table = Definition("t", schema, ("id",), ("part",), "ts", 4, False, True, uuid.UUID(int=1))
    values = [f"{n:02d}" + "x" * 1_000 for n in range(40)]
    (sent,) = encode_rows(routed([{"id": "1", "part": "p", "ts": 1, **dict(zip(names, values, strict=True))}], table))
    message = bytearray(sent.message.batch)
    first = message.find(b"00" + b"x" * 1_000)
    assert first > 0
    places = np.frombuffer(message, "<i8", len(message) // 8)
    body = _begin_of_body(message)
    for n in range(1, 40):
        at = message.find(b"%02d" % n + b"x" * 1_000) - body
        (found,) = np.flatnonzero(places[:-1] == at)
        places[found : found + 2] = first - body, len(message) - 16 - first
    with pytest.raises(ExchangeError, match=r"times that the batch grows|uncompressed bytes"):
        FrameReader(table).decode(wire.Rows(groups=sent.message.groups, batch=bytes(message)))


def _begin_of_body(stream: bytes | bytearray) -> int:
    schema = 8 + int.from_bytes(stream[4:8], "little")
    return schema + 8 + int.from_bytes(stream[schema + 4 : schema + 8], "little")
