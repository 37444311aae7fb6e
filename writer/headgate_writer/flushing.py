"""Some buckets of a checkpoint become log files and write statuses. CPU and disk: everything here runs in an executor.

Which rows are beaten is found out from keys and ordering values alone; then each batch is taken apart once: the rows to be
written, by bucket, and those of other buckets, which go back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.face.definition import Definition
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.writing import Changes, ChangeSink
from headgate_tables.writing import one_row_per_record
from headgate_writer.buffers import Portion
from headgate_writer.heap import Filed, bundled, concatenated

THREADS: Final = 2
"""That encode one flush. More make a checkpoint's end shorter where there are cores, and leave less to the rows that come in."""

_FEW_ROWS: Final = 100
"""Rows of a bucket and batch from which a slice of them is cheaper than to sort all batches as one."""

Ints = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.int32]


def flush(
    sink: ChangeSink,
    definition: Definition,
    instant: str,
    portion: Portion,
    log_versions: Sequence[int],
    *,
    ordinal: int,
    progress: Callable[[], object] = lambda: None,
) -> tuple[list[wire.FileStatus], list[Filed]]:
    """One durable file per wanted bucket, in the order of ``portion.codes``, and what else was in the portion.

    ``log_versions``: per bucket, in the same order. ``ordinal``: this process's number in the checkpoint.
    ``progress``: as of ``ChangeSink.write``. Raises as that; the checkpoint must not be committed then, so nothing is put back.
    """
    changes, rest = take_apart(portion, definition)
    statuses = sink.write(instant, changes, log_versions, ordinal=ordinal, threads=THREADS, progress=progress)
    return [_on_the_wire(status) for status in statuses], rest


def take_apart(portion: Portion, definition: Definition) -> tuple[list[Changes], list[Filed]]:
    """One row of each record in the wanted buckets, upserts before deletes, in the order of ``portion.codes``; and the batches
    that remain. ``portion.batches`` is emptied.
    """
    bundles = bundled(portion.batches)
    ranks = [_ranks(bundle, portion) for bundle in bundles]
    chosen = _winners(bundles, ranks, [np.flatnonzero(each >= 0) for each in ranks], definition)
    pieces: list[Filed] = []
    rest: list[Filed] = []
    bundles.reverse()
    for each, positions in zip(ranks, chosen, strict=True):
        bundle = bundles.pop()  # what is copied out of it is freed at once
        if len(positions):
            pieces.append(_by_rank(bundle, each, positions))
        others = np.flatnonzero(each < 0)
        if len(others):
            rest.append(bundle if len(others) == len(each) else bundle.take(others))
    return _changes(pieces, portion), rest


def _ranks(bundle: Filed, portion: Portion) -> Ranks:
    """int32[n]: the order in which the rows are to be written; -1 for those of other buckets.

    Each bucket of the portion has two ranks, an even one for its upserts and an odd one for its deletes.
    """
    number = np.full(len(portion.groups), -1, np.int32)
    number[portion.codes] = np.arange(len(portion.codes), dtype=np.int32) * 2
    ranks = number[bundle.codes]
    return ranks + (bundle.deletes.to_numpy(zero_copy_only=False) & (ranks >= 0))


def _winners(bundles: Sequence[Filed], ranks: Sequence[Ranks], chosen: Sequence[Ints], definition: Definition) -> list[Ints]:
    """Of the chosen positions those whose rows no other row of the same record beats."""
    keys = pa.concat_arrays([_some(bundle.keys, positions) for bundle, positions in zip(bundles, chosen, strict=True)])
    ordering = None
    if definition.ordering is not None:
        columns = [bundle.rows[definition.ordering].chunk(0) for bundle in bundles]
        ordering = pa.concat_arrays([_some(column, positions) for column, positions in zip(columns, chosen, strict=True)])
    buckets = np.concatenate([each[positions] >> 1 for each, positions in zip(ranks, chosen, strict=True)])
    kept = one_row_per_record(keys, ordering, buckets.astype(np.int64))
    if kept is None:
        return list(chosen)
    stops = np.cumsum([len(positions) for positions in chosen])
    parts = np.split(kept, np.searchsorted(kept, stops[:-1]))
    return [positions[part - (stop - len(positions))] for positions, part, stop in zip(chosen, parts, stops, strict=True)]


def _some(column: Any, positions: Ints) -> Any:
    return column if len(positions) == len(column) else column.take(positions)


def _by_rank(bundle: Filed, ranks: Ranks, positions: Ints) -> Filed:
    """Copies of these rows in the order of their ranks, which become their codes."""
    wanted = ranks[positions]
    order = np.argsort(wanted.astype(np.uint16) if wanted.max() < 1 << 16 else wanted, kind="stable")
    taken = bundle.take(positions[order])
    return Filed(taken.rows, taken.keys, taken.deletes, wanted[order])


def _changes(pieces: list[Filed], portion: Portion) -> list[Changes]:
    """Each bucket's slices of all pieces, rank by rank."""
    ranks = 2 * len(portion.codes)
    if len(pieces) * ranks * _FEW_ROWS > sum(len(piece.codes) for piece in pieces):
        together = concatenated(pieces)
        pieces = [_by_rank(together, together.codes, np.arange(len(together.codes)))]
    bounds = [np.searchsorted(piece.codes, np.arange(ranks + 1)).tolist() for piece in pieces]
    found: list[Changes] = []
    for at, code in enumerate(portion.codes.tolist()):
        parts: list[Filed] = []
        for rank in (2 * at, 2 * at + 1):
            spans = zip(pieces, bounds, strict=True)
            parts += [piece.slice(each[rank], each[rank + 1]) for piece, each in spans if each[rank] < each[rank + 1]]
        rows = pa.concat_tables([part.rows for part in parts])
        keys, deletes = pa.chunked_array([part.keys for part in parts]), pa.chunked_array([part.deletes for part in parts])
        partition, bucket = portion.groups[code]
        found.append(Changes(partition, bucket, rows, keys, deletes))
    return found


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
