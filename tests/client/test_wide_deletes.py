"""Deletes of tables with many columns: a writer fills the columns that they leave out, and takes so many at once."""

import uuid

import pyarrow as pa
import pytest

from headgate.channel_state import ChannelState
from headgate.definition import TableInfo
from headgate.encoding import Encoder, encode_call
from headgate.entries import Entry
from headgate.errors import TooLargeError
from headgate.rows import RowFormat
from headgate_proto.api.v1 import ingest_pb2 as wire
from headgate_proto.limits import BATCH_ROWS, FILLED_BYTES
from headgate_tables.hudi.definition import Definition
from headgate_writer.admission import Admitted
from headgate_writer.filling import Filling

NARROW = pa.schema({"id": pa.string(), "part": pa.string(), "ts": pa.int64()})
WIDE = pa.schema(
    [
        *NARROW,
        *(pa.field(f"n{n}", pa.int64()) for n in range(1_000)),
        *(pa.field(f"t{n}", pa.string()) for n in range(500)),
        *(pa.field(f"b{n}", pa.bool_()) for n in range(200)),
        *(pa.field(f"s{n}", pa.struct({"a": pa.decimal128(38, 2), "b": pa.list_(pa.string())})) for n in range(100)),
    ]
)


def deletes_of(schema: pa.Schema) -> RowFormat:
    table = TableInfo("t", schema, ("id",), ("part",), "ts", 8, hive_style=False, url="", uuid="", table_version=8)
    return RowFormat(table, wire.OPERATION_DELETE)


def keys(rows: int) -> pa.Table:
    return pa.table({"id": [f"{n}" for n in range(rows)], "part": ["p"] * rows, "ts": range(rows)}, NARROW)


def filled_bytes(schema: pa.Schema, rows: int) -> int:
    """As a writer counts them. Raises its TooLargeError."""
    definition = Definition("t", schema, ("id",), ("part",), "ts", 8, False, True, uuid.UUID(int=1))
    return Filling(definition).counted(Admitted(keys(rows), pa.array([True] * rows), 0), NARROW).nbytes


def test_deletes_are_cut_so_that_a_writer_takes_them_and_no_smaller_than_half_of_that() -> None:
    row_format = deletes_of(WIDE)
    messages = list(encode_call(Encoder(), row_format, keys(20_000), None))
    assert sum(message.rows for message in messages) == 20_000
    most = max(message.rows for message in messages)
    assert most == row_format.most_rows
    assert FILLED_BYTES // 2 < filled_bytes(WIDE, most) <= FILLED_BYTES


def test_deletes_of_a_narrow_table_and_upserts_of_any_are_cut_by_their_bytes_alone() -> None:
    assert deletes_of(NARROW).most_rows == BATCH_ROWS
    table = TableInfo("t", WIDE, ("id",), ("part",), "ts", 8, hive_style=False, url="", uuid="", table_version=8)
    assert RowFormat(table, wire.OPERATION_UPSERT).most_rows == BATCH_ROWS


def test_small_calls_that_wait_become_no_more_deletes_than_a_writer_takes() -> None:
    row_format, state = deletes_of(WIDE), ChannelState(limit=1 << 30)
    state.stream_opened(1, 0, 0)
    for _ in range(20):
        (message,) = encode_call(Encoder(), row_format, keys(500), None)
        assert message.mergeable
        state.append_rows(row_format, message)
    entry = state.next_message()
    assert isinstance(entry, Entry)
    sent = 500 * len(entry.pieces)
    assert row_format.most_rows - 500 < sent <= row_format.most_rows


def test_deletes_with_an_own_offset_travel_together_or_not_at_all() -> None:
    row_format = deletes_of(WIDE)
    (whole,) = encode_call(Encoder(), row_format, keys(row_format.most_rows), 1)
    assert whole.rows == row_format.most_rows
    with pytest.raises(TooLargeError, match="fewer rows"):
        list(encode_call(Encoder(), row_format, keys(row_format.most_rows + 1), 1))
