"""A process with the identity of a writer and no part in a table sends frames of it (rule EX7), with real processes."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pyarrow as pa
import pytest

import headgate
from headgate.status import Status
from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_proto.cluster.v1.exchange_pb2_grpc import ExchangeServiceStub
from headgate_tables import hudi
from headgate_writer.frames import encode_rows
from support.arrow_batches import routed
from support.cluster import Cluster
from support.processes import READY_S
from support.readers import read_by_hudi_rs

SCHEMA = pa.schema({"id": pa.string(), "part": pa.string(), "n": pa.int64()})
SOON = {"coordinator": ["--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
PARTS, ROWS, CHECKPOINTS = 10, 100, 6


def some(first: int) -> list[dict[str, object]]:
    return [{"id": f"k{n}", "part": f"p{n % PARTS}", "n": n} for n in range(first, first + ROWS)]


def frames_of(rows: wire.Rows, checkpoint: int) -> Sequence[wire.Frame]:
    """Right rows, before, in and behind the checkpoint that fills, and a barrier that counts wrong."""
    said = [wire.Frame(number=1, checkpoint=number, rows=rows) for number in range(max(0, checkpoint - 1), checkpoint + 3)]
    return [*said, wire.Frame(number=1, checkpoint=checkpoint, barrier=7)]


def send(status: Status, writer: int, frame: wire.Frame) -> str:
    """Why the frame was refused; "" it was taken."""
    (table,), receiver = status.tables, status.writers[writer]
    name = wire.StreamName(
        table=table.name, epoch=table.epoch, generation=table.generation, sender="f" * 32, receiver=receiver.process
    )
    with grpc.insecure_channel(receiver.address) as channel:
        said = iter([wire.ExchangeRequest(name=name), wire.ExchangeRequest(frame=frame)])
        answers = ExchangeServiceStub(channel).Exchange(said, timeout=READY_S)
        return "".join(answer.refused.why for answer in answers)


@pytest.mark.slow
def test_ex7_a_stranger_with_the_identity_of_a_writer_aborts_nothing_and_no_writer_is_excluded(tmp_path: Path) -> None:
    refusals: list[str] = []
    with (
        Cluster(tmp_path / "cluster", writers=2, compactors=1, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
        ThreadPoolExecutor(16) as threads,
    ):
        table = hg.create_table("t", SCHEMA, key="id", partition_by="part", buckets=1)
        folder = tmp_path / "cluster" / "store" / "t"
        with table.channel("c") as channel:
            channel.upsert(some(0))
            channel.flush("queryable")
            before = hg.status("t").tables[0]
            definition = hudi.open_table(f"file://{folder}").definition
            assert definition is not None
            (content,) = encode_rows(routed([{"id": "false", "part": "p0", "n": -1}], definition))
            for number in range(1, CHECKPOINTS):
                channel.upsert(some(number * ROWS))
                status = hg.status("t")
                sends = [
                    threads.submit(send, status, writer, frame)
                    for writer in range(2)
                    for frame in frames_of(content.message, status.tables[0].checkpoint)
                ]
                channel.flush("queryable")
                channel.upsert(some(number * ROWS))  # so that the checkpoint that some frames wait for begins
                channel.flush("queryable")
                refusals += [each.result() for each in sends]
        after = hg.status("t").tables[0]
        found = read_by_hudi_rs(folder)
    assert all("process ffffffffffffffffffffffffffffffff has no part in checkpoint" in why for why in refusals), refusals
    assert len(refusals) == 2 * 5 * (CHECKPOINTS - 1)
    assert (after.epoch, after.generation, list(after.alarms)) == (before.epoch, before.generation, [])
    assert sorted(set(found["n"].to_pylist())) == list(range(CHECKPOINTS * ROWS))
