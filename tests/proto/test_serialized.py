"""Requests with rows that are serialized by hand: protobuf itself would send the same."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_proto.api.v1 import ingest_pb2
from headgate_proto.api.v1.ingest_pb2 import AppendRequest, Batch
from headgate_proto.cluster.v1.coordination_pb2 import Broken, ControlRequest, TableReport
from headgate_proto.serialized import PART_BYTES, in_parts, inside, requests_of, with_bytes
from headgate_runtime.limits import RECEIVED_BYTES
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


@pytest.mark.parametrize("size", [0, PART_BYTES - 100, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 7])
def test_a_message_without_rows_goes_out_whole_or_in_parts_that_a_coordinator_takes(size: int) -> None:
    report = ControlRequest(table=TableReport(broken=Broken(why="x" * size)))
    sent = list(in_parts(report))
    assert all(each.ByteSize() <= RECEIVED_BYTES for each in sent)
    if len(sent) == 1:
        assert sent == [report]
    else:
        assert [each.part.request_bytes for each in sent] == [report.ByteSize(), *[0] * (len(sent) - 1)]
        assert ControlRequest.FromString(b"".join(each.part.content for each in sent)) == report
