"""Some buckets of a round become log files and write statuses. CPU and disk: everything here runs in an executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.hudi.changes import Changes, ChangeWriter, Placed, WriteStatus, split
from headgate_writer.buffers import Portion
from headgate_writer.heap import Filed, sift

THREADS: Final = 2
"""That encode one flush. More make a round's end shorter where there are cores, and leave less to the rows that come in."""


def flush(
    writer: ChangeWriter, instant: str, portion: Portion, log_versions: Sequence[int], *, ordinal: int, drop_beaten: bool
) -> tuple[list[wire.FileStatus], list[Filed]]:
    """One durable file per wanted bucket, in the order of ``portion.codes``, and what else was in the portion.

    ``log_versions``: per bucket, in the same order. ``ordinal``: this process's number in the round.
    Raises as ``ChangeWriter.write``; the round must not be committed then, so nothing is put back.
    """
    picked, rest = sift(portion.batches, portion.wanted)
    changes = _by_bucket(picked, portion)
    del picked
    statuses = writer.write(instant, changes, log_versions, drop_beaten=drop_beaten, ordinal=ordinal, threads=THREADS)
    return [_on_the_wire(status) for status in statuses], rest


def _by_bucket(picked: Filed, portion: Portion) -> list[Changes]:
    """In the order of ``portion.codes``."""
    number = np.zeros(len(portion.wanted), np.int32)
    number[portion.codes] = np.arange(len(portion.codes), dtype=np.int32)
    groups = [portion.groups[code] for code in portion.codes.tolist()]
    return split(Placed(picked.rows, picked.keys, picked.deletes, number[picked.codes], groups))


def _on_the_wire(status: WriteStatus) -> wire.FileStatus:
    return wire.FileStatus(
        partition=status.stat.partition,
        file_id=status.stat.file_id,
        name=status.stat.name,
        size=status.stat.size,
        rows=status.stat.rows,
        deletes=status.stat.deletes,
        log_version=status.stat.log_version,
        sha256=status.file.sha256,
        stage=status.file.stage,
    )
