"""Every limit of a batch, from both sides."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import RpcError
from headgate_writer.admission import Admission
from headgate_writer.ipc_limits import Limits, check_batch
from support import schema_bombs
from support.arrow_batches import admit, batch, rows_message, schema_message

OPEN = Limits()
TOO_LARGE = errors_pb2.CODE_TOO_LARGE
SCHEMA = errors_pb2.CODE_SCHEMA
CORRUPT = errors_pb2.CODE_CORRUPT_BATCH


def verdict(rows: pa.RecordBatch, limits: Limits = OPEN, compression: str | None = None) -> tuple[int, str]:
    """Code and message; 0 when it is admitted."""
    try:
        admit(batch(rows, compression), Admission(limits))
    except RpcError as told:
        return told.error.code, told.error.message
    return 0, ""


def of_schema(schema: pa.Schema, limits: Limits = OPEN) -> tuple[int, str]:
    try:
        Admission(limits).schema(schema_message(schema))
    except RpcError as told:
        return told.error.code, told.error.message
    return 0, ""


def limited(**limits: int) -> Limits:
    """Of schemas."""
    return replace(OPEN, schema=replace(OPEN.schema, **limits))


INTS = pa.record_batch({"n": pa.array(range(1_000), pa.int64())})


def test_wire_bytes() -> None:
    wire = len(rows_message(INTS))
    assert verdict(INTS, replace(OPEN, wire_bytes=wire)) == (0, "")
    code, message = verdict(INTS, replace(OPEN, wire_bytes=wire - 1))
    assert code == TOO_LARGE
    assert f"{wire:,}" in message
    assert f"{wire - 1:,}" in message


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_uncompressed_bytes_are_known_before_anything_is_uncompressed(compression: str | None) -> None:
    declared = check_batch(rows_message(INTS, compression), OPEN)
    assert declared == 8_000
    assert verdict(INTS, replace(OPEN, body_bytes=declared), compression) == (0, "")
    assert verdict(INTS, replace(OPEN, body_bytes=declared - 1), compression)[0] == TOO_LARGE


def test_buffers_that_share_their_bytes_are_counted_once_each() -> None:
    column = pa.array(range(1_000), pa.int64())
    shared = pa.RecordBatch.from_arrays([column] * 3, names=["a", "b", "c"])
    assert check_batch(rows_message(shared), OPEN) == 24_000


def test_lengths_that_no_serializer_writes_are_refused() -> None:
    def judged(old: bytes, new: bytes, compression: str | None = None) -> str:
        message = rows_message(INTS, compression)
        assert message.count(old) == 1
        with pytest.raises(RpcError) as told:
            check_batch(message.replace(old, new), OPEN)
        assert told.value.error.code == CORRUPT
        return told.value.error.message

    column, prefix = struct.pack("<qq", 1_000, 0), struct.pack("<q", 8_000)
    assert "negative length" in judged(column, struct.pack("<qq", -1, 0))
    assert "negative length" in judged(column, struct.pack("<qq", 1_000, -1))
    assert "outside" in judged(struct.pack("<qq", 0, 8_000), struct.pack("<qq", 1, 8_000))
    assert "outside" in judged(struct.pack("<qq", 0, 8_000), struct.pack("<qq", -8, 8_000))
    assert "declares a negative length" in judged(prefix, struct.pack("<q", -2), "lz4")
    packed = len(rows_message(INTS, "lz4").partition(prefix)[2]) + 8
    length = next(each for each in range(packed, packed - 8, -1) if struct.pack("<qq", 0, each) in rows_message(INTS, "lz4"))
    assert "too short" in judged(struct.pack("<qq", 0, length), struct.pack("<qq", 0, 7), "lz4")


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_times_that_a_batch_grows(compression: str) -> None:
    zeros = pa.record_batch({"n": pa.array(np.zeros(60_000, np.int64))})
    wire = len(rows_message(zeros, compression))
    times = 480_000 // wire
    assert times > 10
    assert verdict(zeros, replace(OPEN, ratio=times + 1), compression) == (0, "")
    assert verdict(zeros, replace(OPEN, ratio=times - 1), compression)[0] == TOO_LARGE


def test_schema_bytes() -> None:
    size = len(schema_message(INTS.schema))
    assert of_schema(INTS.schema, limited(message_bytes=size)) == (0, "")
    assert of_schema(INTS.schema, limited(message_bytes=size - 1))[0] == TOO_LARGE


def test_columns_with_nested_ones_counted() -> None:
    schema = pa.schema([("a", pa.struct([("b", pa.int8()), ("c", pa.list_(pa.int8()))])), ("d", pa.int8())])
    assert of_schema(schema, limited(columns=5)) == (0, "")
    assert of_schema(schema, limited(columns=4))[0] == TOO_LARGE


def test_the_default_number_of_columns() -> None:
    assert of_schema(pa.schema([(f"c{n}", pa.int8()) for n in range(2_000)])) == (0, "")
    assert of_schema(pa.schema([(f"c{n}", pa.int8()) for n in range(2_001)]))[0] == TOO_LARGE


def nested(levels: int) -> pa.Schema:
    kind: pa.DataType = pa.int8()
    for _ in range(levels - 1):
        kind = pa.list_(kind)
    return pa.schema([("a", kind)])


def test_levels_of_nesting() -> None:
    assert of_schema(nested(16)) == (0, "")
    assert of_schema(nested(17))[0] == TOO_LARGE
    assert of_schema(nested(150))[0] == TOO_LARGE


@pytest.mark.parametrize("name", schema_bombs.SCHEMAS)
def test_a_schema_that_spells_more_than_it_carries_is_refused(name: str) -> None:
    """Arrow would take seconds or gigabytes for it, and takes it as well-formed."""
    with pytest.raises(RpcError, match="used twice") as caught:
        Admission(OPEN).schema(schema_bombs.SCHEMAS[name]())
    assert caught.value.error.code == CORRUPT


def test_a_batch_that_spells_more_than_it_carries_is_refused() -> None:
    for entries, code in ((16, CORRUPT), (17, TOO_LARGE)):
        with pytest.raises(RpcError) as caught:
            check_batch(schema_bombs.batch_metadata(entries, 100_000), OPEN)
        assert caught.value.error.code == code


def test_parts_of_a_batch() -> None:
    """As many as the widest schema has, and none of kinds that are not taken."""
    assert check_batch(schema_bombs.batch_of(nodes=2_000, buffers=6_000), OPEN) == 0
    for message, code in (
        (schema_bombs.batch_of(nodes=2_001), TOO_LARGE),
        (schema_bombs.batch_of(buffers=6_001), TOO_LARGE),
        (schema_bombs.batch_of(views=1), CORRUPT),
        (schema_bombs.batch_of(kind=2), CORRUPT),
    ):
        with pytest.raises(RpcError) as caught:
            check_batch(message, OPEN)
        assert caught.value.error.code == code


def test_rows() -> None:
    assert verdict(INTS, replace(OPEN, rows=1_000)) == (0, "")
    assert verdict(INTS, replace(OPEN, rows=999))[0] == TOO_LARGE


def test_values_of_all_columns_together() -> None:
    """A column of null has no bytes, but a table stores each of its values in eight."""
    nulls = pa.RecordBatch.from_arrays([pa.nulls(1_000)] * 5, names=list("abcde"))
    assert verdict(nulls, replace(OPEN, values=5_000)) == (0, "")
    assert verdict(nulls, replace(OPEN, values=4_999))[0] == TOO_LARGE


CELL = 1 << 20


@pytest.mark.parametrize(
    ("fits", "is_too_large"),
    [
        (pa.array(["x" * (CELL - 4)]), pa.array(["x" * (CELL - 3)])),
        (pa.array([b"x" * (CELL - 8)], pa.large_binary()), pa.array([b"x" * (CELL - 7)], pa.large_binary())),
        (pa.array([[1] * (CELL // 8 - 1)], pa.list_(pa.int64())), pa.array([[1] * (CELL // 8)], pa.list_(pa.int64()))),
        (
            pa.array([["x" * (CELL // 2 - 10)] * 2]),
            pa.array([["x" * (CELL // 2)] * 2]),
        ),
        (
            pa.array([{"a": "x" * (CELL // 2), "b": "y" * (CELL // 2 - 8)}]),
            pa.array([{"a": "x" * (CELL // 2), "b": "y" * (CELL // 2 - 7)}]),
        ),
        (pa.array([b"x" * CELL], pa.binary(CELL)), pa.array([b"x" * (CELL + 1)], pa.binary(CELL + 1))),
    ],
    ids=["string", "large_binary", "list", "list of strings", "struct", "fixed_size_binary"],
)
def test_bytes_of_one_value(fits: pa.Array[Any], is_too_large: pa.Array[Any]) -> None:
    small = pa.array(["a"])
    assert verdict(pa.record_batch({"id": small, "v": fits})) == (0, "")
    code, message = verdict(pa.record_batch({"id": small, "v": is_too_large}))
    assert code == TOO_LARGE
    assert "'v'" in message


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array(["a", "b"], pa.string_view()),
        pa.array([b"a", b"b"], pa.binary_view()),
        pa.array([[1], [2]], pa.list_view(pa.int8())),
        pa.array([[1], [2]], pa.large_list_view(pa.int8())),
        pa.RunEndEncodedArray.from_arrays([2], ["a"]),
        pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
        pa.array([1, 2], pa.duration("s")),
        pa.array([1, 2], pa.decimal32(5)),
        pa.array([1, 2], pa.decimal64(5)),
        pa.array([b"1" * 16, b"2" * 16], pa.uuid()),
        pa.array(["1", "2"], pa.json_()),
    ],
    ids=lambda column: str(column.type)[:30],
)
def test_columns_that_could_show_more_than_they_carry_or_run_code_are_refused(column: pa.Array[Any]) -> None:
    code, message = of_schema(pa.schema([("id", pa.string()), ("odd", column.type)]))
    assert code == SCHEMA
    assert "'odd'" in message
    inside = of_schema(pa.schema([("id", pa.string()), ("s", pa.struct([("odd", column.type)]))]))
    assert inside[0] == SCHEMA


def test_an_extension_that_nobody_registered_is_refused_by_its_name() -> None:
    field = pa.field("x", pa.binary(), metadata={"ARROW:extension:name": "arrow.py_extension_type"})
    assert of_schema(pa.schema([field]))[0] == SCHEMA
    assert of_schema(pa.schema([pa.field("x", pa.binary(), metadata={"other": "y"})])) == (0, "")


def test_big_endian_and_old_metadata_are_refused() -> None:
    old = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, INTS.schema, options=old) as writer:
        writer.write_batch(INTS)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    with pytest.raises(RpcError) as caught:
        Admission(OPEN).schema(reader.read_next_message().serialize().to_pybytes())
    assert caught.value.error.code == CORRUPT
    assert "version" in caught.value.error.message


def test_arrow_data_that_contradicts_itself_is_refused_although_it_can_be_read() -> None:
    """Unchecked offsets read other memory later (Arrow's security model)."""
    offsets = pa.py_buffer(np.array([0, 5, 2, 9], np.int32).tobytes())
    bad = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abcdefghi")])
    assert verdict(pa.RecordBatch.from_arrays([bad], names=["s"]))[0] == CORRUPT
    not_utf8 = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32).tobytes()), pa.py_buffer(b"\xff\xfe")]
    )
    assert verdict(pa.RecordBatch.from_arrays([not_utf8], names=["s"]))[0] == CORRUPT


def test_an_empty_batch_is_a_batch() -> None:
    assert verdict(INTS.slice(0, 0)) == (0, "")
