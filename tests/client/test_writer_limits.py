"""The SDK cuts and refuses rows by the limits of writers: no more and no less."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.channel_state import ChannelState
from headgate.definition import TableInfo
from headgate.encoding import Encoder, decoded, encode_call
from headgate.entries import Entry
from headgate.errors import TooLargeError
from headgate.limits import check_sizes, value_bytes
from headgate.partitions import cut_at_partitions
from headgate.rows import RowFormat
from headgate_proto.api.v1 import ingest_pb2 as wire
from headgate_proto.limits import BATCH_PARTITIONS, ROW_BYTES, VALUE_BYTES
from headgate_writer.sizes import row_bytes
from support.every_kind import SCHEMA
from support.strategies import effort

PARTED = pa.schema({"id": pa.int64(), "part": pa.string(), "hour": pa.int32()})
_INFO = TableInfo("t", PARTED, ("id",), ("part", "hour"), None, 1, hive_style=False, url="", uuid="", table_version=8)
UPSERT = RowFormat(_INFO, wire.OPERATION_UPSERT)


def parted(values: Sequence[tuple[str | None, int | None]]) -> pa.RecordBatch:
    parts, hours = [part for part, _ in values], [hour for _, hour in values]
    return pa.RecordBatch.from_pydict({"id": range(len(values)), "part": parts, "hour": hours}, PARTED)


def partitions_of(batch: pa.RecordBatch) -> set[tuple[Any, Any]]:
    return set(zip(batch.column("part").to_pylist(), batch.column("hour").to_pylist(), strict=True))


# --- partitions ---


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([0, 1, 7, None])), max_size=60), st.integers(1, 6))
@effort(200)
def test_slices_are_as_long_as_the_number_of_partitions_allows_and_lose_no_row(
    values: list[tuple[str | None, int | None]], most: int
) -> None:
    batch = parted(values)
    slices = list(cut_at_partitions(batch, ("part", "hour"), most))
    assert pa.Table.from_batches([part for part, _ in slices], PARTED).equals(pa.Table.from_batches([batch], PARTED))
    if not values:
        return
    assert [count for _, count in slices] == [len(partitions_of(part)) for part, _ in slices]
    assert all(0 < count <= most for _, count in slices)
    for (before, _), (behind, _) in pairwise(slices):
        assert len(partitions_of(before) | partitions_of(behind.slice(0, 1))) == most + 1


def test_a_call_of_many_partitions_becomes_messages_that_a_writer_takes() -> None:
    messages = list(encode_call(Encoder(), UPSERT, parted([(f"p{n % 1_500}", n % 2) for n in range(4_000)]), None))
    assert [len(partitions_of(decoded(each.content, PARTED))) <= BATCH_PARTITIONS for each in messages] == [True] * len(messages)
    assert sum(each.rows for each in messages) == 4_000
    assert len(messages) == 4  # 1,024 rows each, and the rest


def test_rows_with_an_offset_of_their_own_stay_together_or_are_refused() -> None:
    encode_call(Encoder(), UPSERT, parted([(f"p{n}", 0) for n in range(BATCH_PARTITIONS)]), 9)
    with pytest.raises(TooLargeError, match=r"more than 1,024 partitions"):
        encode_call(Encoder(), UPSERT, parted([(f"p{n}", 0) for n in range(BATCH_PARTITIONS + 1)]), 9)


@pytest.mark.parametrize("rows", [1, 100])
def test_small_calls_that_wait_become_no_message_of_too_many_partitions(rows: int) -> None:
    state = ChannelState(limit=1 << 30)
    state.stream_opened(1, 0, 0)
    for start in range(0, 3_000, rows):
        (message,) = encode_call(Encoder(), UPSERT, parted([(f"p{n}", 0) for n in range(start, start + rows)]), None)
        state.append_rows(UPSERT, message)
    entry = state.next_message()
    assert isinstance(entry, Entry)
    assert BATCH_PARTITIONS - rows < entry.offset <= BATCH_PARTITIONS


# --- sizes ---

_values = st.fixed_dictionaries(
    {
        "flag": st.none() | st.booleans(),
        "text": st.none() | st.text(max_size=9),
        "raw": st.none() | st.binary(max_size=9),
        "fixed": st.none() | st.binary(min_size=16, max_size=16),
        "tags": st.none() | st.lists(st.none() | st.text(max_size=5), max_size=3),
        "spot": st.none() | st.fixed_dictionaries({"x": st.none() | st.floats(), "y": st.none() | st.integers(-5, 5)}),
        "spots": st.none() | st.lists(st.fixed_dictionaries({"x": st.none(), "y": st.integers(-5, 5)}), max_size=3),
        "props": st.none() | st.dictionaries(st.text(max_size=3), st.none() | st.integers(-5, 5), max_size=3),
    }
)


@pytest.mark.slow
@given(st.lists(_values, min_size=1, max_size=9), st.integers(0, 8))
@effort(150)
def test_a_row_counts_as_many_bytes_as_a_writer_counts(values: list[dict[str, Any]], start: int) -> None:
    rows = [{**dict.fromkeys(SCHEMA.names), "id": number, **each} for number, each in enumerate(values)]
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA).slice(start)
    counted = [sum(value_bytes(column.slice(at, 1)) for column in batch.columns) for at in range(batch.num_rows)]
    assert counted == row_bytes(pa.Table.from_batches([batch], SCHEMA)).tolist()


def test_values_up_to_the_limit_pass_and_a_larger_one_is_named_by_row_and_column() -> None:
    largest = VALUE_BYTES - 4
    texts = ["x" * size for size in (1, 1_000, largest, 1, largest, 7)]
    check_sizes(pa.record_batch({"n": range(6), "text": texts}), 0)
    with pytest.raises(TooLargeError, match=r"row 14, column 'text': 1,048,577 bytes, and the limit is 1,048,576"):
        check_sizes(pa.record_batch({"n": range(6), "text": [*texts[:4], "x" * (largest + 1), ""]}), 10)


def test_booleans_count_as_a_byte_each_as_at_the_writer() -> None:
    flags = pa.array([[True] * (VALUE_BYTES - 4), [True] * (VALUE_BYTES - 3)], pa.list_(pa.bool_()))
    check_sizes(pa.record_batch({"flags": flags[:1]}), 0)
    with pytest.raises(TooLargeError, match="row 1, column 'flags'"):
        check_sizes(pa.record_batch({"flags": flags}), 0)


def test_a_row_is_refused_when_its_values_together_are_too_large() -> None:
    names = [f"t{number}" for number in range(5)]
    sizes = [VALUE_BYTES - 4] * 4
    check_sizes(pa.record_batch({name: ["", "x" * size] for name, size in zip(names, sizes, strict=False)}), 0)
    with pytest.raises(TooLargeError, match=rf"row 1: {ROW_BYTES + 5:,} bytes"):
        check_sizes(pa.record_batch({name: ["", "x" * size] for name, size in zip(names, [*sizes, 1], strict=True)}), 0)
