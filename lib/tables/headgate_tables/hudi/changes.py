"""A writer's bucket side: the upserts and deletes that gathered for some buckets become one log file for each.

The cluster writes log files only: a base file hides what an older instant that completes later puts beside it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, ChunkedArray
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.writing import Changes, Column
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.data_files import NewFile, encode_all, layout_of, write_files
from headgate_tables.hudi.definition import Definition, avro_schema
from headgate_tables.hudi.log.names import log_name
from headgate_tables.hudi.log.writer import Deleted, encode_log_file
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.place import Placed, place
from headgate_tables.hudi.routing import order_by_group
from headgate_tables.hudi.schema.meta_columns import attach_meta, sequence_numbers
from headgate_tables.storage.store import Store

__all__ = ["ChangeWriter", "Changes", "Placed", "place", "split"]

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Runs: TypeAlias = list[tuple[int, int, bool]]
"""Start and length of each run of upserts or of deletes, and whether it is one of deletes: what becomes a block."""


def split(placed: Placed) -> list[Changes]:
    """One ``Changes`` per group, in the order of ``placed.groups``: slices that keep one copy of all rows alive."""
    rows, keys, deletes, bounds = placed.rows, placed.keys, placed.deletes, [0, len(placed.group)]
    if len(placed.groups) != 1:
        order = order_by_group(placed.group)
        rows, keys, deletes = rows.take(order), keys.take(order), deletes.take(order)
        bounds = np.searchsorted(placed.group[order], np.arange(len(placed.groups) + 1)).tolist()
    spans = [(start, stop - start) for start, stop in itertools.pairwise(bounds)]
    return [
        Changes(partition, bucket, rows.slice(*span), keys.slice(*span), deletes.slice(*span))
        for (partition, bucket), span in zip(placed.groups, spans, strict=True)
    ]


class ChangeWriter:
    """Writes log files for one process of one epoch. One call of ``write`` at a time; nothing here belongs to an event loop.

    ``process``: the random id of the process (rule RO8). ``ordinal``: its number among the processes that write under the same
    instant, 0 to 2**31 - 1; it keeps their rows' ``_hoodie_commit_seqno`` apart.
    """

    def __init__(self, store: Store, definition: Definition, *, epoch: int, process: str, ordinal: int) -> None:
        self._store = store
        self._definition = definition
        self._stage = LOG_LAYOUT.stage_folder(epoch, process) if store.stages else ""
        self._ordinal = ordinal
        self._layout = layout_of(definition)
        self._avro = avro_schema(definition, meta_columns=True)
        self._rows_written = 0

    def write(
        self,
        instant: str,
        changes: Sequence[Changes],
        log_versions: Sequence[int],
        *,
        ordinal: int | None = None,
        threads: int = 1,
        progress: Callable[[], object] = lambda: None,
    ) -> list[WriteStatus]:
        """One log file, and its status, per ``Changes``, durable when this returns. None of them may be empty.

        Every row is written, each key's in the order of arrival.
        ``instant`` has been announced (rule P3). ``log_versions``: per ``Changes``, counting from 1 in the instant and bucket.
        ``ordinal``: instead of the process's own, when it is another in this instant's checkpoint. ``threads``: for encoding.
        ``progress`` is called with each file that is encoded, from any of the threads.

        Raises RetryLater, OperatorNeeded, SyncFailedError; the instant must not be committed then (rule W1).
        """
        if len(log_versions) != len(changes) or not all(each.rows.num_rows for each in changes):
            raise ValueError(f"{len(log_versions)} log versions for {len(changes)} changes, or some of these are empty")
        batches = [_Batch.of(each, self._definition) for each in changes]
        counts = [batch.upserts for batch in batches]
        total = sum(counts)
        sequence = sequence_numbers(instant, total, self._rows_written + 1, self._ordinal if ordinal is None else ordinal)
        self._rows_written += total
        firsts = itertools.accumulate(counts, initial=0)
        files = [
            _File(instant, version, batch, sequence.slice(first, batch.upserts))
            for version, batch, first in zip(log_versions, batches, firsts, strict=False)
        ]
        rows = sum(batch.deletes.size for batch in batches)

        def encode(file: _File) -> NewFile:
            encoded = self._encode(file)
            progress()
            return encoded

        return write_files(self._store, instant, self._stage, encode_all(encode, files, rows=rows, threads=threads))

    def _encode(self, file: _File) -> NewFile:
        partition, bucket = file.batch.partition, file.batch.bucket
        group = self._definition.file_id(partition, bucket)
        blocks = list(self._blocks(file, group))
        content = encode_log_file(file.instant, self._avro, blocks, self._layout)
        name = log_name(group, file.instant, file.version, WRITE_TOKEN)
        upserts = file.batch.upserts
        return NewFile(partition, group, file.version, name, content, upserts, file.batch.deletes.size - upserts)

    def _blocks(self, file: _File, group: str) -> Iterator[pa.Table | Deleted]:
        batch, runs = file.batch.in_few_runs()
        taken = 0
        for start, length, deleted in runs:
            keys = batch.keys.slice(start, length)
            if deleted:
                yield keys, batch.partition, batch.ordering.slice(start, length) if batch.ordering is not None else None
            else:
                yield attach_meta(
                    batch.rows.slice(start, length),
                    keys,
                    file.sequence.slice(taken, length),
                    instant=file.instant,
                    partition=batch.partition,
                    file_name=group,
                )
                taken += length


@dataclass(frozen=True, slots=True)
class _Batch:
    """``Changes`` with everything but the rows in one chunk."""

    partition: str
    bucket: int
    rows: pa.Table
    keys: Array
    ordering: Array | None
    deletes: Mask
    upserts: int

    @classmethod
    def of(cls, changes: Changes, definition: Definition) -> _Batch:
        deletes = _one_chunk(changes.deletes).to_numpy(zero_copy_only=False)
        ordering = _one_chunk(changes.rows[definition.ordering]) if definition.ordering else None
        keys, upserts = _one_chunk(changes.keys), deletes.size - int(np.count_nonzero(deletes))
        return cls(changes.partition, changes.bucket, changes.rows, keys, ordering, deletes, upserts)

    def in_few_runs(self) -> tuple[_Batch, Runs]:
        """The same rows, each key's in the order in which they are, with no more runs than the key that changes most often needs,
        and these runs.

        Order between keys means nothing to any reader, and a block costs a quarter of a millisecond and 2 KB however few rows it
        has: 40,000 rows of which each eighth was a delete took 4 s as 9,700 blocks.
        """
        if len(runs := self.runs()) <= 2:
            return self, runs
        order = np.argsort(_turns(self.keys, self.deletes), kind="stable")
        ordering = self.ordering.take(order) if self.ordering is not None else None
        rows, keys, deletes = self.rows.take(order), self.keys.take(order), self.deletes[order]
        batch = _Batch(self.partition, self.bucket, rows, keys, ordering, deletes, self.upserts)
        return batch, batch.runs()

    def runs(self) -> Runs:
        size = self.deletes.size
        if self.upserts in (0, size):
            return [(0, size, not self.upserts)]
        bounds = [0, *(np.flatnonzero(self.deletes[1:] != self.deletes[:-1]) + 1).tolist(), size]
        return [(start, stop - start, bool(self.deletes[start])) for start, stop in itertools.pairwise(bounds)]


@dataclass(frozen=True, slots=True)
class _File:
    instant: str
    version: int
    batch: _Batch
    sequence: ChunkedArray


def _turns(keys: Array, deletes: Mask) -> Ints:
    """int64[n]: how often the key turned from upserts to deletes or back before the row; even for upserts, odd for deletes."""
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    by_key = np.argsort(codes, kind="stable")
    codes, deleted = codes[by_key], deletes[by_key]
    first = np.concatenate([[True], codes[1:] != codes[:-1]])
    turned = np.concatenate([[False], deleted[1:] != deleted[:-1]])
    steps = np.where(first, deleted, turned).astype(np.int64)
    sums = np.cumsum(steps)
    starts = np.flatnonzero(first)
    sums -= np.repeat(sums[starts] - steps[starts], np.diff(starts, append=len(codes)))
    turns = np.empty_like(sums)
    turns[by_key] = sums
    return turns


def _one_chunk(column: Column) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
