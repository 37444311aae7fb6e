"""Writes the sifted changes of several buckets as the files of one instant, one durable file for each bucket.

A cluster writes log files only: a base file hides what an older instant that completes later puts beside it. A call of the
library may begin a group with one (``groups.GroupIds.claim``).
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
from headgate_tables.face.settings import BlockFormat
from headgate_tables.face.writing import Changes, Column
from headgate_tables.hudi.base_file import WRITE_TOKEN, encode_base_file
from headgate_tables.hudi.data_files import NewFile, encode_all, layout_of, write_files
from headgate_tables.hudi.definition import Definition, avro_schema
from headgate_tables.hudi.log.names import base_name, log_name
from headgate_tables.hudi.log.parquet_rows import ParquetLayout
from headgate_tables.hudi.log.writer import AvroRows, Deleted, encode_log_file
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.schema.meta_columns import sequence_numbers
from headgate_tables.hudi.small_blocks import AvroBlocks, BlockRows
from headgate_tables.storage.store import Buffers, Store

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Blocks: TypeAlias = "Sequence[BlockRows | AvroRows | Deleted]"
"""Of one log file, in order."""
Runs: TypeAlias = list[tuple[int, int, bool]]
"""Start and length of each run of upserts or of deletes, and whether it is one of deletes; each run becomes a block."""


class ChangeWriter:
    """Writes data files for one process of one epoch. One call of ``write`` at a time, never on an event loop.

    ``process``: the random id of the process (rule RO8). ``ordinal``: its number among the processes that write under the same
    instant, 0 to 2**31 - 1; it keeps their rows' ``_hoodie_commit_seqno`` apart. ``layout``: what earlier writers have learnt of
    the table's columns; this one adds to it.
    """

    def __init__(
        self,
        store: Store,
        definition: Definition,
        *,
        epoch: int,
        process: str,
        ordinal: int,
        layout: ParquetLayout | None = None,
    ) -> None:
        self._store = store
        self._definition = definition
        self._stage = LOG_LAYOUT.stage_folder(epoch, process) if store.stages else ""
        self._ordinal = ordinal
        self._layout = layout or layout_of(definition)
        self._avro = avro_schema(definition, meta_columns=True)
        self._avro_blocks = AvroBlocks(definition.schema)
        self._rows_written = 0

    def write(
        self,
        instant: str,
        changes: Sequence[Changes],
        log_versions: Sequence[int],
        *,
        block_format: BlockFormat,
        file_ids: Sequence[str] | None = None,
        ordinal: int | None = None,
        threads: int = 1,
        progress: Callable[[], object] = lambda: None,
    ) -> list[WriteStatus]:
        """Writes one file per ``Changes``, durable when this returns, and returns their statuses. All rows are written, each
        key's in the given order. None of the ``Changes`` may be empty.

        ``instant`` has been announced (rule P3). ``log_versions``: per ``Changes``, counting from 1 in the instant and bucket; 0
        stands for a base file, in which there can be no delete. ``block_format``: of rows in log files, the table's setting.
        ``file_ids``: instead of those that the definition gives. ``ordinal``: instead of the process's own, when it is another in
        this instant's checkpoint. ``threads``: for encoding. ``progress`` is called with each encoded file, from any of them.

        Raises RetryLater, OperatorNeeded, SyncFailedError; the instant must not be committed then (rule W1).
        """
        if len(log_versions) != len(changes) or not all(each.rows.num_rows for each in changes):
            raise ValueError(f"{len(log_versions)} log versions for {len(changes)} changes, or some of these are empty")
        groups = file_ids or [self._definition.file_id(each.partition, each.bucket) for each in changes]
        counts = [each.rows.num_rows - _one_chunk(each.deletes).true_count for each in changes]
        total = sum(counts)
        sequence = sequence_numbers(instant, total, self._rows_written + 1, self._ordinal if ordinal is None else ordinal)
        self._rows_written += total
        firsts = itertools.accumulate(counts, initial=0)
        files = [
            _File(instant, group, version, each, upserts, sequence.slice(first, upserts))
            for group, version, each, upserts, first in zip(groups, log_versions, changes, counts, firsts, strict=False)
        ]
        rows = sum(each.rows.num_rows for each in changes)

        def encode(file: tuple[_File, Blocks]) -> NewFile:
            encoded = self._encode(*file)
            progress()
            return encoded

        each = list(zip(files, self._avro_first(files, block_format), strict=True))
        return write_files(self._store, instant, self._stage, encode_all(encode, each, rows=rows, threads=threads))

    def _avro_first(self, files: Sequence[_File], form: BlockFormat) -> list[Blocks]:
        """The blocks of each log file, encoded already where they are Avro; none for a base file, and for one whose rows are too
        many for Avro: the threads that encode it put them in order.
        """
        wanted = [file.version and self._avro_blocks.may_be_used(form, file.changes.rows.num_rows) for file in files]
        blocks = [list(file.blocks(self._definition.ordering)) if want else [] for file, want in zip(files, wanted, strict=True)]
        made = iter(self._avro_blocks.encode([block for of in blocks for block in of if isinstance(block, BlockRows)], form))
        return [[(next(made) or block) if isinstance(block, BlockRows) else block for block in of] for of in blocks]

    def _encode(self, file: _File, blocks: Blocks) -> NewFile:
        name, content = self._base_file(file) if file.version == 0 else self._log_file(file, blocks)
        deletes = file.changes.rows.num_rows - file.upserts
        return NewFile(file.changes.partition, file.group, file.version, name, content, file.upserts, deletes)

    def _base_file(self, file: _File) -> tuple[str, Buffers]:
        if file.upserts != file.changes.rows.num_rows:
            raise ValueError(f"deletes for the base file of {file.group}")
        name, keys = base_name(file.group, WRITE_TOKEN, file.instant), _one_chunk(file.changes.keys)
        rows = file.block(file.changes.rows, keys, name).with_meta()
        return name, [encode_base_file(rows, keys, self._layout, self._avro)]

    def _log_file(self, file: _File, blocks: Blocks) -> tuple[str, Buffers]:
        name = log_name(file.group, file.instant, file.version, WRITE_TOKEN)
        given = blocks or file.blocks(self._definition.ordering)
        contents = [block.with_meta() if isinstance(block, BlockRows) else block for block in given]
        return name, encode_log_file(file.instant, self._avro, contents, self._layout)


@dataclass(frozen=True, slots=True)
class _File:
    """A file to write. ``upserts``: how many of the changes are; ``sequence``: string[upserts], their sequence numbers."""

    instant: str
    group: str
    version: int
    changes: Changes
    upserts: int
    sequence: ChunkedArray

    def blocks(self, ordering: str | None) -> Iterator[BlockRows | Deleted]:
        """The blocks of a log file, in order. ``ordering``: the name of that column."""
        rows, keys, size = self.changes.rows, _one_chunk(self.changes.keys), self.changes.rows.num_rows
        if self.upserts == size:
            yield self.block(rows, keys, self.group)
            return
        values = _one_chunk(rows[ordering]) if ordering is not None else None
        if self.upserts == 0:
            yield keys, self.changes.partition, values
            return
        batch = _Batch(rows, keys, values, _one_chunk(self.changes.deletes).to_numpy(zero_copy_only=False)).in_few_runs()
        taken = 0
        for start, length, deleted in batch.runs():
            keys = batch.keys.slice(start, length)
            if deleted:
                yield keys, self.changes.partition, batch.ordering.slice(start, length) if batch.ordering is not None else None
            else:
                yield self.block(batch.rows.slice(start, length), keys, self.group, taken)
                taken += length

    def block(self, rows: pa.Table, keys: Array, file_name: str, first: int = 0) -> BlockRows:
        """Some of the rows; their sequence numbers are those of the file from the ``first`` on."""
        whole = rows.num_rows == self.upserts
        sequence = self.sequence if whole else self.sequence.slice(first, rows.num_rows)
        return BlockRows(rows, keys, sequence, self.instant, self.changes.partition, file_name)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Upserts and deletes, with everything but the rows in one chunk. ``deletes``: bool[n]."""

    rows: pa.Table
    keys: Array
    ordering: Array | None
    deletes: Mask

    def in_few_runs(self) -> _Batch:
        """The same rows, each key's in the given order, in as few runs as the key that changes most often allows.

        Readers do not depend on the order between keys, and a block costs a quarter of a millisecond and 2 KB however few rows it
        has: 40,000 rows, every eighth of them a delete, took 4 s as 9,700 blocks.
        """
        if len(self.runs()) <= 2:
            return self
        order = np.argsort(_turns(self.keys, self.deletes), kind="stable")
        ordering = self.ordering.take(order) if self.ordering is not None else None
        return _Batch(self.rows.take(order), self.keys.take(order), ordering, self.deletes[order])

    def runs(self) -> Runs:
        """The stretches between changes from upserts to deletes and back."""
        bounds = [0, *(np.flatnonzero(self.deletes[1:] != self.deletes[:-1]) + 1).tolist(), self.deletes.size]
        return [(start, stop - start, bool(self.deletes[start])) for start, stop in itertools.pairwise(bounds)]


def _turns(keys: Array, deletes: Mask) -> Ints:
    """int64[n]: how often the row's key has changed between upsert and delete before it; even for upserts, odd for deletes."""
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
