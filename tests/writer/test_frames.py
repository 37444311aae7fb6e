"""Routed rows as frames: cut to size, whole again at the other end."""

import uuid
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_proto.limits import ROW_BYTES
from headgate_proto.serialized import PART_BYTES
from headgate_runtime.limits import MAX_MESSAGE_BYTES
from headgate_tables.hudi.definition import Definition
from headgate_writer.frame_reader import FrameReader
from headgate_writer.frames import FRAME_BYTES, encode_rows
from support.arrow_batches import routed

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
TABLE = Definition("t", SCHEMA, ("id",), ("part",), "ts", 4, False, True, uuid.UUID(int=1))
READER = FrameReader(TABLE)


@pytest.mark.parametrize(
    "sizes",
    [[1], [1] * 5_000, [2_000] * 5_000, [ROW_BYTES - 1_000] * 3, [10, ROW_BYTES - 1_000, 10, 3_000_000] * 2],
    ids=["one row", "small", "many frames", "largest rows", "skewed"],
)
def test_frames_hold_all_rows_in_order_and_fit_a_message(sizes: list[int]) -> None:
    rows = routed([{"id": f"k{n}", "part": f"p{n % 7}", "ts": n, "note": "x" * size} for n, size in enumerate(sizes)], TABLE)
    frames = encode_rows(rows)
    assert all(frame.message.ByteSize() < MAX_MESSAGE_BYTES - 10_000 for frame in frames)
    assert len(frames) <= 2 + sum(sizes) // (FRAME_BYTES // 2)
    if max(sizes) < 10_000:
        # A frame that is cut into parts costs its receiver another copy and decode.
        assert all(wire.ExchangeRequest(frame=wire.Frame(rows=frame.message)).ByteSize() <= PART_BYTES for frame in frames)
    came = [READER.decode(frame.message) for frame in frames]
    assert [(part.rows.num_rows, part.checksum) for part in came] == [(frame.rows, frame.checksum) for frame in frames]
    assert pa.concat_tables([part.rows for part in came]).equals(rows.rows)
    assert [key for part in came for key in part.keys.to_pylist()] == rows.keys.to_pylist()
    assert [part.groups[at] for part in came for at in part.group] == [rows.groups[at] for at in rows.group]
    for part in came:
        assert sorted(np.unique(part.group).tolist()) == list(range(len(part.groups)))


def test_frames_fit_a_message_however_long_the_names_of_partitions_are() -> None:
    """Columns of numbers in the path of a hive-style table: its text is long, and the row is short."""
    few = routed([{"id": f"k{n}", "part": "p", "ts": n, "note": "x"} for n in range(20_000)], TABLE)
    rows = replace(few, groups=[(f"{'x' * 900}{n}", 0) for n in range(20_000)], group=np.arange(20_000, dtype=np.int32))
    frames = encode_rows(rows)
    assert all(wire.ExchangeRequest(frame=wire.Frame(rows=frame.message)).ByteSize() <= PART_BYTES for frame in frames)
    came = [READER.decode(frame.message) for frame in frames]
    assert [part.groups[at] for part in came for at in part.group] == rows.groups


def test_the_checksum_tells_rows_and_buckets_apart() -> None:
    def checksum(note: str, part: str, buckets: int = 4) -> int:
        definition = replace(TABLE, buckets=buckets)
        (frame,) = encode_rows(routed([{"id": "k1", "part": part, "ts": 1, "note": note}], definition))
        return frame.checksum

    assert checksum("a", "p") == checksum("a", "p")
    assert checksum("a", "p") != checksum("b", "p")
    (frame,) = encode_rows(routed([{"id": "k1", "part": "p", "ts": 1, "note": "a"}], TABLE))
    moved = wire.Rows(
        groups=[wire.GroupName(partition="p", bucket=(frame.message.groups[0].bucket + 1) % 4)], batch=frame.message.batch
    )
    assert READER.decode(moved).checksum != frame.checksum
