"""Encodes routed rows into frames of an exchange stream. CPU work: for many rows call it off the loop."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_proto.serialized import PART_BYTES
from headgate_writer.checksums import frame_checksum
from headgate_writer.routing import RoutedRows

FRAME_BYTES: Final = PART_BYTES - (96 << 10)
"""Arrow bytes of one frame, about, so that most frames go as one part. A frame has one row more than fits, and that may be the
largest that a client can send: then it goes in several."""

_BUCKET_BYTES: Final = 16
"""Of a group's name beside its partition, at most."""

_NAME_BYTES: Final = 1 << 20
"""Bytes of the names of a turn's groups that may be in each of its frames. Rows of more are cut as if each brought its own."""

OURS: Final[Sequence[tuple[str, pa.DataType]]] = (
    ("_headgate_key", pa.string()),
    ("_headgate_delete", pa.bool_()),
    ("_headgate_group", pa.int32()),
)
"""The columns behind the table's own (``exchange.proto``)."""


@dataclass(frozen=True, slots=True)
class EncodedFrame:
    """One frame's message. ``rows``: how many; ``checksum``: as the receiver computes it, too (rule RO10)."""

    message: wire.Rows
    rows: int
    checksum: int


def encode_rows(rows: RoutedRows) -> list[EncodedFrame]:
    """Returns frames with the rows in order, at least one row in each."""
    cuts = _cuts(rows)
    return [_encode(rows, start, stop) for start, stop in itertools.pairwise(cuts)]


def _cuts(rows: RoutedRows) -> list[int]:
    """Returns row numbers from 0 to n; between two of them lie at most ``FRAME_BYTES`` and one row."""
    n = rows.rows.num_rows
    names = np.array([len(partition.encode()) + _BUCKET_BYTES for partition, _ in rows.groups])
    sizes = rows.sizes + names[rows.group] if names.sum() > _NAME_BYTES else rows.sizes
    if sizes.sum() <= FRAME_BYTES:
        return [0, n]
    ends = np.cumsum(sizes)
    frames = (ends - 1) // FRAME_BYTES
    return [0, *(np.flatnonzero(np.diff(frames)) + 1).tolist(), n]


def _encode(rows: RoutedRows, start: int, stop: int) -> EncodedFrame:
    used, group = np.unique(rows.group[start:stop], return_inverse=True)
    length = stop - start
    ours = [rows.keys.slice(start, length), rows.deletes.slice(start, length), pa.array(group.astype(np.int32))]
    schema = pa.schema([*rows.rows.schema, *OURS])
    table = pa.Table.from_arrays([*rows.rows.slice(start, length).columns, *ours], schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(table)
    batch = sink.getvalue().to_pybytes()
    groups = [rows.groups[at] for at in used.tolist()]
    names = [wire.GroupName(partition=partition, bucket=bucket) for partition, bucket in groups]
    return EncodedFrame(wire.Rows(groups=names, batch=batch), length, frame_checksum(groups, batch))
