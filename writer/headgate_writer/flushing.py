"""Writes some buckets of a checkpoint to log files. CPU and disk: everything here runs in an executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.face.definition import Definition
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.writing import Changes, ChangeSink
from headgate_tables.writing import BucketedRows, sift
from headgate_writer.batch_list import bundled
from headgate_writer.buffers import Portion

THREADS: Final = 2
"""Threads that encode one flush. More: checkpoints end sooner if there are cores, and rows that come in get fewer of these."""


def flush(
    sink: ChangeSink,
    definition: Definition,
    instant: str,
    portion: Portion,
    log_versions: Sequence[int],
    *,
    ordinal: int,
    progress: Callable[[], object] = lambda: None,
) -> tuple[list[wire.FileStatus], list[BucketedRows]]:
    """Writes one durable file per wanted bucket. Returns the files in the order of ``portion.codes``, and the rows of the other
    buckets.

    ``log_versions``: per bucket, in the same order. ``ordinal``: this process's number in the checkpoint. ``progress``: as in
    ``ChangeSink.write``. Raises as ``ChangeSink.write`` does; then the checkpoint must not be committed, so no rows are put back.
    """
    changes, rest = take_apart(portion, definition)
    statuses = sink.write(instant, changes, log_versions, ordinal=ordinal, threads=THREADS, progress=progress)
    return [_on_the_wire(status) for status in statuses], rest


def take_apart(portion: Portion, definition: Definition) -> tuple[list[Changes], list[BucketedRows]]:
    """Returns one row of each record in the wanted buckets, upserts before deletes, in the order of ``portion.codes``, and the
    batches that remain. Empties ``portion.batches``.
    """
    return sift(bundled(portion.batches), portion.codes, portion.groups, definition.ordering)


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
