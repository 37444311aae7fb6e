"""Reads one file slice merged: the winners of its logs first, then the base file past them, then the winning log rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import pc
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.base_reader import BaseFile, gone
from headgate_tables.hudi.definition import Layout
from headgate_tables.hudi.log.block import HeaderKey
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock, read_log_file
from headgate_tables.hudi.merge import Entries, Mask, Positions, Winners, merge_base, merge_logs
from headgate_tables.hudi.parquet_checks import check_columns, damaged
from headgate_tables.hudi.partial import Source, merge_partial
from headgate_tables.hudi.schema.conform import conform
from headgate_tables.hudi.schema.meta_columns import IS_DELETED, OPERATION, RECORD_KEY
from headgate_tables.hudi.timeline.active import Timeline
from headgate_tables.hudi.view import FileSlice, LogFile
from headgate_tables.storage.store import Store

_DELETE_OPERATION = "D"

Block = RowsBlock | DeleteBlock


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a scan asks of each slice. ``output``: names in order; ``read``: the columns that output and filter need.

    ``prune``: the filter, when rows may be ruled out by statistics; None when not.
    """

    output: Sequence[str]
    read: Sequence[str]
    filter: pc.Expression | None
    prune: pc.Expression | None


@dataclass(frozen=True, slots=True)
class LogRows:
    """The logs of a slice after the first pass: ``blocks`` and where each begins among the entries; who wins."""

    blocks: Sequence[Block]
    starts: Positions
    winners: Winners


class SliceReader:
    """Reads slices of one snapshot. ``schema`` has the meta columns first."""

    def __init__(self, store: Store, layout: Layout, schema: pa.Schema, timeline: Timeline) -> None:
        self._store = store
        self._ordering = layout.ordering
        self._schema = schema
        self._timeline = timeline

    def read(self, part: FileSlice, wanted: Wanted) -> Iterator[pa.Table]:
        """Tables of ``wanted.output`` columns, filtered. Raises CorruptFileError, MissingFileError, UnsupportedTableError."""
        blocks = drop_compacted([block for log in part.logs for block in self._blocks(part, log)])
        if any(isinstance(block, RowsBlock) and block.partial for block in blocks):
            yield self._finish(self._merge_partial(part, blocks, wanted), wanted)
            return
        logs = self._merge_logs(blocks) if blocks else None
        beaten: list[Positions] = []
        if part.base is not None:
            for rows in self._base_rows(part.path(part.base), logs, wanted, beaten):
                yield self._finish(rows, wanted)
        if logs is not None:
            for rows in self._log_rows(logs, beaten, wanted):
                yield self._finish(rows, wanted)

    def _finish(self, rows: pa.Table, wanted: Wanted) -> pa.Table:
        if wanted.filter is not None:
            rows = rows.filter(wanted.filter)
        return rows.select(list(wanted.output))

    # --- first pass: keys and ordering of the logs ---

    def _merge_partial(self, part: FileSlice, blocks: Sequence[Block], wanted: Wanted) -> pa.Table:
        names = list(dict.fromkeys([*wanted.read, *self._merge_columns(keyed=True)]))
        sources = []
        if part.base is not None:
            base = BaseFile(self._store, part.path(part.base))
            for rows in base.read(base.row_groups()[0], self._target(names)):
                none = np.zeros(rows.num_rows, dtype=bool)
                sources.append(Source(Entries(_one(rows[RECORD_KEY]), self._base_ordering(rows), none, none), rows))
        for block in blocks:
            held = None
            if isinstance(block, RowsBlock):
                held = block.read([name for name in names if name in block.column_names])
                held = conform(held, self._target(held.column_names), block.path)
            sources.append(Source(self._entries(block), held))
        return merge_partial(sources, self._target(wanted.read))

    def _merge_logs(self, blocks: Sequence[Block]) -> LogRows:
        entries = [self._entries(block) for block in blocks]
        starts = np.cumsum([0, *(len(entry.keys) for entry in entries)]).astype(np.int64)
        return LogRows(blocks, starts, merge_logs(_concatenate(entries, self._ordering_type())))

    # Files of ours are durable before any name of theirs is, so a torn one is damage; others' may end in a failed append.
    def _blocks(self, part: FileSlice, log: LogFile) -> Sequence[Block]:
        path = part.path(log.name)
        try:
            content = self._store.get(path)
        except FileNotFoundError as error:
            raise gone(path) from error
        if log.token != WRITE_TOKEN:
            return read_log_file(content, path, self._is_committed)
        blocks = read_log_file(content, path, lambda _: True, strict=True)
        for block in blocks:
            # A header has no checksum: under another instant the block would pass for one that was never committed.
            if block.instant != log.instant:
                raise damaged(path, f"a block of it carries the instant {block.instant}")
            if isinstance(block, RowsBlock) and block.parquet is not None:
                check_columns(block.column_names, block.block.headers.get(HeaderKey.SCHEMA, ""), path)
        return blocks

    def _is_committed(self, instant: str) -> bool:
        return instant in self._timeline.completed or instant < self._timeline.start

    def _ordering_type(self) -> pa.DataType | None:
        return self._schema.field(self._ordering).type if self._ordering else None

    def _entries(self, block: Block) -> Entries:
        """One block's keys and ordering values. A row may be a delete in disguise (spec hudi-format 8.3)."""
        if isinstance(block, DeleteBlock):
            return self._delete_entries(block)
        available = block.column_names
        names = [RECORD_KEY, *([self._ordering] if self._ordering else [])]
        names += [name for name in (IS_DELETED, OPERATION) if name in available and name not in names]
        rows = block.read(names)
        if not {*names} <= {*rows.column_names}:
            raise damaged(block.where, f"it lacks a column of {', '.join(names)}")
        ordering = None
        if self._ordering:
            target = self._target([self._ordering])
            ordering = _one(conform(rows.select([self._ordering]), target, block.path).column(0))
        none = np.zeros(rows.num_rows, dtype=bool)
        return Entries(_one(rows[RECORD_KEY]).cast(pa.string()), ordering, _row_deletes(rows), none)

    def _delete_entries(self, block: DeleteBlock) -> Entries:
        rows = block.rows
        deletes = np.ones(len(rows.keys), dtype=bool)
        kind = self._ordering_type()
        if kind is None or rows.ordering is None:
            return Entries(rows.keys, _nulls(len(deletes), kind) if kind is not None else None, deletes, deletes)
        target = pa.schema([pa.field(self._ordering or "", kind)])
        values = conform(pa.table({self._ordering: as_ordering(rows.ordering, kind)}), target, block.path).column(0)
        ordering = _one(values)
        return Entries(rows.keys, ordering, deletes, ordering.is_null().to_numpy(zero_copy_only=False))

    # --- second pass: the rows themselves ---

    def _base_rows(self, path: str, logs: LogRows | None, wanted: Wanted, beaten: list[Positions]) -> Iterator[pa.Table]:
        base = BaseFile(self._store, path)
        matching, others = base.row_groups(wanted.prune)
        keyed = logs is not None
        columns = list(dict.fromkeys([*wanted.read, *self._merge_columns(keyed=keyed)]))
        for rows in base.read(matching, self._target(columns)):
            if logs is None:
                yield rows.select(list(wanted.read))
                continue
            outcome = merge_base(logs.winners, _one(rows[RECORD_KEY]), self._base_ordering(rows))
            beaten.append(outcome.beaten)
            yield rows.filter(pa.array(outcome.keep)).select(list(wanted.read))
        if logs is not None and self._ordering:
            # Rows that the filter rules out are not shown, but still beat late log rows of the same key.
            for rows in base.read(others, self._target(self._merge_columns(keyed=True))):
                beaten.append(merge_base(logs.winners, _one(rows[RECORD_KEY]), self._base_ordering(rows)).beaten)

    def _merge_columns(self, *, keyed: bool) -> list[str]:
        return [RECORD_KEY, *([self._ordering] if self._ordering else [])] if keyed else []

    def _target(self, names: Sequence[str]) -> pa.Schema:
        return pa.schema([self._schema.field(name) for name in names])

    def _base_ordering(self, rows: pa.Table) -> pa.Array[Any] | None:
        return _one(rows[self._ordering]) if self._ordering else None

    def _log_rows(self, logs: LogRows, beaten: list[Positions], wanted: Wanted) -> Iterator[pa.Table]:
        alive = ~logs.winners.deletes
        for positions in beaten:
            alive[positions] = False
        shown = np.sort(logs.winners.positions[alive])
        target = self._target(wanted.read)
        for index, block in enumerate(logs.blocks):
            first, last = np.searchsorted(shown, logs.starts[index : index + 2])
            if first == last or isinstance(block, DeleteBlock):
                continue
            names = [name for name in wanted.read if name in block.column_names]
            rows = block.read(names)
            if last - first < rows.num_rows:
                rows = rows.take(shown[first:last] - logs.starts[index])
            yield conform(rows, target, block.path)


def drop_compacted(blocks: Sequence[Block]) -> list[Block]:
    """Log compaction: a block that replaces others stands where the newest of them stood (Hudi: scanInternalV2)."""
    replaced: dict[str, Block] = {instant: block for block in blocks for instant in block.compacted}
    if not replaced:
        return list(blocks)
    place = {id(block): max(block.compacted) for block in blocks if block.compacted}
    kept = [block for block in blocks if block.compacted or block.instant not in replaced]
    return sorted(kept, key=lambda block: place.get(id(block), block.instant))


def as_ordering(values: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """A delete's ordering values in the ordering column's type; the wrapper may be a wider or a plain number."""
    if values.type == kind:
        return values
    if pa.types.is_temporal(kind) and pa.types.is_integer(values.type):
        return values.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)
    return values.cast(kind)


def _row_deletes(rows: pa.Table) -> Mask:
    deletes: Any = np.zeros(rows.num_rows, dtype=bool)
    if IS_DELETED in rows.column_names:
        deletes |= pc.fill_null(_one(rows[IS_DELETED]), False).to_numpy(zero_copy_only=False)
    if OPERATION in rows.column_names:
        deletes |= pc.fill_null(pc.equal(_one(rows[OPERATION]), _DELETE_OPERATION), False).to_numpy(zero_copy_only=False)
    return deletes  # type: ignore[no-any-return]


def _concatenate(entries: Sequence[Entries], kind: pa.DataType | None) -> Entries:
    if not entries:
        nothing = np.zeros(0, dtype=bool)
        return Entries(pa.array([], pa.string()), pa.array([], kind) if kind is not None else None, nothing, nothing)
    ordering = pa.concat_arrays([e.ordering for e in entries if e.ordering is not None]) if kind is not None else None
    return Entries(
        pa.concat_arrays([entry.keys for entry in entries]),
        ordering,
        np.concatenate([entry.deletes for entry in entries]),
        np.concatenate([entry.unconditional for entry in entries]),
    )


def _one(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """One array; a column without chunks is an empty one."""
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else _nulls(0, column.type)


def _nulls(length: int, kind: pa.DataType) -> pa.Array[Any]:
    nulls: Any = pa.nulls
    made: pa.Array[Any] = nulls(length, kind)
    return made
