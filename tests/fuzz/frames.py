"""Frames of the exchange: as a writer sends them, but for one thing or another."""

from random import Random

import numpy as np
import pyarrow as pa

from fuzz.arrow import draw_batch, draw_schema
from headgate_proto.cluster.v1 import exchange_pb2
from headgate_tables.arrow import Array
from support.arrow_batches import rows_message, schema_message

_END = b"\xff\xff\xff\xff\0\0\0\0"
_GROUPS = (0, 0, 0, 1, 7, -1, 2**31 - 1)


def draw_frame(random: Random, rows: pa.RecordBatch, checkpoint: int) -> exchange_pb2.Frame:
    """The first of its stream, mostly of the checkpoint that fills."""
    groups = [
        exchange_pb2.GroupName(partition="p", bucket=random.choice((0, 0, 0, 1, 2)))
        for _ in range(random.choice((1, 1, 1, 0, 2)))
    ]
    content = exchange_pb2.Rows(groups=groups, batch=draw_frame_batch(random, rows))
    return exchange_pb2.Frame(number=1, checkpoint=max(0, checkpoint + random.choice((0, 0, 0, 1, 2, -1))), rows=content)


def draw_frame_batch(random: Random, rows: pa.RecordBatch) -> bytes:
    """An IPC stream of ``rows`` with the exchange's columns: right, or one thing of it is wrong."""
    wrong = random.choice(("", "", "", "value", "columns", "order", "schema", "batch", "batch", "compressed", "count", "end"))
    columns = [*zip(rows.schema.names, rows.columns, strict=True), *_ours(random, rows.num_rows, right=wrong != "value")]
    if wrong == "columns":
        columns.pop(random.randrange(len(columns)))
    if wrong == "order":
        random.shuffle(columns)
    sent = pa.RecordBatch.from_arrays([each for _, each in columns], names=[name for name, _ in columns])
    schema = draw_schema(random) if wrong == "schema" else schema_message(sent.schema)
    batch = draw_batch(random, sent) if wrong == "batch" else rows_message(sent, "zstd" if wrong == "compressed" else None)
    return schema + batch * (random.choice((0, 2)) if wrong == "count" else 1) + (b"" if wrong == "end" else _END)


def _ours(random: Random, rows: int, *, right: bool) -> list[tuple[str, Array]]:
    keys = pa.array([f"k{number}" if right or random.random() < 0.8 else None for number in range(rows)], pa.string())
    deletes = pa.array([random.random() < 0.5 for _ in range(rows)])
    group = pa.array(np.array([0 if right else random.choice(_GROUPS) for _ in range(rows)], np.int32))
    return [("_headgate_key", keys), ("_headgate_delete", deletes), ("_headgate_group", group)]
