"""Writes some buckets of a checkpoint to log files. CPU and disk: everything here runs in an executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.errors import ReopenTable, StoreDeniedError, StoreFullError
from headgate_tables.face.definition import Definition
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.settings import BlockFormat
from headgate_tables.face.writing import ChangeSink
from headgate_tables.writing import BucketedRows, Sifted, sift
from headgate_writer.batch_list import bundled
from headgate_writer.buffers import Portion

THREADS: Final = 2
"""Threads that encode one flush. More: checkpoints end sooner if there are cores, and rows that come in get fewer of these."""


@dataclass(frozen=True, slots=True, eq=False)
class FlushedPortion:
    """What became of a portion. ``rest``: rows of other buckets; ``beaten``: rows that no file has, as others beat them."""

    statuses: list[wire.FileStatus]
    rest: list[BucketedRows]
    beaten: int


def flush(
    sink: ChangeSink,
    definition: Definition,
    instant: str,
    portion: Portion,
    log_versions: Sequence[int],
    *,
    block_format: BlockFormat,
    ordinal: int,
    progress: Callable[[], object] = lambda: None,
) -> FlushedPortion:
    """Writes one durable file per wanted bucket. Returns the files in the order of ``portion.codes``, and what else became of the
    portion.

    ``log_versions``: per bucket, in the same order. ``ordinal``: this process's number in the checkpoint. ``block_format`` and
    ``progress``: as in ``ChangeSink.write``. Raises as that does; then the checkpoint must not be committed, so no rows are put
    back.
    """
    sifted = take_apart(portion, definition)
    statuses = sink.write(
        instant,
        sifted.changes,
        log_versions,
        block_format=block_format,
        ordinal=ordinal,
        threads=THREADS,
        progress=progress,
    )
    return FlushedPortion([_on_the_wire(status) for status in statuses], sifted.rest, sifted.beaten)


def may_be_own(error: Exception) -> bool:
    """Whether the cause of an error may be this process (rule RO13). False for what every writer meets alike: a store that denies
    access or is full, a table that is gone or has another owner.
    """
    return not isinstance(error, StoreDeniedError | StoreFullError | ReopenTable)


def take_apart(portion: Portion, definition: Definition) -> Sifted:
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
