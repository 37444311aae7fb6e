"""Batches through the functions of the SDK and of one writer, in one thread and without a network, checkpoint by checkpoint."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench.profile.stages import Stages, Watched
from bench.tables.scratch import scratch_folder
from headgate.encoding import Encoder
from headgate_proto.api.v1 import ingest_pb2
from headgate_proto.serialized import inside, requests_of, with_bytes
from headgate_tables import hudi
from headgate_tables.hudi import change_writer, data_files
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.log import parquet_rows
from headgate_tables.hudi.small_blocks import AvroBlocks, BlockRows
from headgate_tables.storage.local import LocalStore
from headgate_tables.system import SystemIds
from headgate_writer.admission import Admission, Admitted
from headgate_writer.buffers import CheckpointBuffer
from headgate_writer.filling import Filling
from headgate_writer.flushing import take_apart
from headgate_writer.ipc_limits import Limits
from headgate_writer.routing import route

CHECKPOINT_BATCHES = 12
"""What a second brings on a machine of two cores."""
_WARM_UP = 2
"""Checkpoints before those that count: Arrow and the table's layout learn."""
_WATCHED: Sequence[Watched] = (
    (change_writer, "sequence_numbers", "flush: meta columns"),
    (BlockRows, "with_meta", "flush: meta columns"),
    (AvroBlocks, "encode", "flush: encode"),
    (change_writer, "encode_log_file", "flush: frame"),
    (parquet_rows, "encode", "flush: encode"),
    (change_writer, "write_files", "flush: files"),
    (data_files, "_sha256", "flush: hash"),
)


def profile(feed: str, table: Mapping[str, Any]) -> dict[str, float]:
    """Microseconds of CPU a row by stage. ``table``: arguments of ``create_table`` besides URL and schema."""
    reader = pa.ipc.open_file(pa.memory_map(feed))
    stages, rows = Stages(), 0
    with scratch_folder("profile") as folder, hudi.create_table(f"file://{folder}/t", schema=reader.schema, **table) as created:
        pipe = _Pipe(created, reader.schema, stages)
        with stages.watching(_WATCHED):
            for number, batches in enumerate(_checkpoints(reader)):
                if number == _WARM_UP:
                    stages.seconds.clear()
                pipe.run_checkpoint(batches)
                rows += sum(batch.num_rows for batch in batches) * (number >= _WARM_UP)
    return {name: seconds * 1e6 / rows for name, seconds in stages.seconds.items()}


def _checkpoints(reader: pa.ipc.RecordBatchFileReader) -> Iterator[list[pa.RecordBatch]]:
    """Full ones alone."""
    for first in range(0, reader.num_record_batches - CHECKPOINT_BATCHES + 1, CHECKPOINT_BATCHES):
        yield [reader.get_batch(number) for number in range(first, first + CHECKPOINT_BATCHES)]


class _Pipe:
    """What a channel, an ingest side and a bucket side do, one after the other."""

    def __init__(self, table: hudi.Table, schema: pa.Schema, stages: Stages) -> None:
        if table.definition is None:
            raise AssertionError("a table that was just created has a definition")
        self._definition, self._schema, self._stages = table.definition, schema, stages
        store = LocalStore(table.url.removeprefix("file://"), SystemIds())
        self._sink = ChangeWriter(store, self._definition, epoch=table.epoch, process="5" * 32, ordinal=0)
        self._block_format = table.settings.block_format
        self._instant = 20260201000000000
        self._encoder, self._admission, self._filling = Encoder(), Admission(Limits()), Filling(self._definition)

    def run_checkpoint(self, batches: Sequence[pa.RecordBatch]) -> None:
        """From the batches to the files of an instant."""
        stage, buffer = self._stages.stage, CheckpointBuffer()
        for batch in batches:
            with stage("client: requests"):
                sent = list(self._requests(batch))
            for requests in sent:
                with stage("writer: protobuf and parts"):
                    received = self._received(requests)
                    rows = received.rows
                with stage("writer: decode and check"):
                    admitted = self._admitted(received, rows)
                with stage("writer: key and route"):
                    routed = route([admitted], self._definition)
                with stage("writer: buffer"):
                    buffer.add(routed)
        codes = np.arange(len(buffer.groups))
        with stage("flush: pick, sort and cut"):
            sifted = take_apart(buffer.take_portion(codes), self._definition)
        self._instant += 1
        with stage("flush: rest"):
            self._sink.write(str(self._instant), sifted.changes, [1] * len(codes), block_format=self._block_format, threads=1)

    def _requests(self, batch: pa.RecordBatch) -> Iterator[list[bytes]]:
        """For each message the requests that carry it."""
        for encoded in self._encoder.encode([batch], partition_by=self._definition.partition_by):
            envelope = ingest_pb2.Batch(after=1, offset=2, operation=ingest_pb2.OPERATION_UPSERT)
            pieces = with_bytes(envelope, ingest_pb2.Batch.ROWS_FIELD_NUMBER, memoryview(encoded.content))
            request = ingest_pb2.AppendRequest
            yield list(requests_of(inside(request.BATCH_FIELD_NUMBER, pieces), request.PART_FIELD_NUMBER))

    def _received(self, requests: Sequence[bytes]) -> ingest_pb2.Batch:
        read = [ingest_pb2.AppendRequest.FromString(each) for each in requests]
        if len(read) > 1:
            read = [ingest_pb2.AppendRequest.FromString(b"".join(each.part.content for each in read))]
        return read[0].batch

    def _admitted(self, batch: ingest_pb2.Batch, rows: bytes) -> Admitted:
        return self._filling.counted(self._admission.decode(batch, rows, self._schema), self._schema)
