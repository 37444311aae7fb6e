"""Requests with rows that are serialized by hand: protobuf itself would send the same."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_proto.api.v1 import ingest_pb2
from headgate_proto.api.v1.ingest_pb2 import AppendRequest, Batch
from headgate_proto.serialized import PART_BYTES, inside, requests_of, with_bytes
from support.parts import messages_of


def serialized(batch: Batch, rows: bytes | memoryview) -> list[bytes]:
    pieces = inside(AppendRequest.BATCH_FIELD_NUMBER, with_bytes(batch, Batch.ROWS_FIELD_NUMBER, rows))
    return list(requests_of(pieces, AppendRequest.PART_FIELD_NUMBER))


def whole(batch: Batch, rows: bytes) -> AppendRequest:
    request = AppendRequest(batch=batch)
    request.batch.rows = rows
    return request


_batches = st.builds(
    Batch,
    after=st.integers(0, 2**63 - 1),
    offset=st.integers(0, 2**63 - 1),
    operation=st.sampled_from(ingest_pb2.Operation.values()),
    operation_column=st.text(max_size=5),
    schema=st.binary(max_size=300),
)


@given(_batches, st.binary(min_size=1, max_size=300))
def test_a_batch_serialized_around_its_rows_is_what_protobuf_makes_of_it(batch: Batch, rows: bytes) -> None:
    assert serialized(batch, rows) == [whole(batch, rows).SerializeToString()]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, PART_BYTES - 10, PART_BYTES, 2_097_151, 2_097_152, 8 << 20])
def test_rows_of_any_size_come_whole_or_in_the_parts_that_protobuf_would_send(size: int) -> None:
    rows = bytes(size)
    batch = Batch(after=1, offset=2, schema=b"schema")
    messages = [AppendRequest.FromString(each) for each in serialized(batch, memoryview(pa.py_buffer(rows)))]
    assert messages == list(messages_of(whole(batch, rows)))
