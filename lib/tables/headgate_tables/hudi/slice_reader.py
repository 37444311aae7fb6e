"""Reads one file slice merged: the winners of its logs first, then the base file past them, then the winning log rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array, pc
from headgate_tables.errors import OptionError, UnsupportedTableError
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.base_reader import BaseFile, gone
from headgate_tables.hudi.definition import Layout
from headgate_tables.hudi.entries import EntryReader, one_array
from headgate_tables.hudi.log.block import HeaderKey
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock, read_log_file
from headgate_tables.hudi.log.together import read_together
from headgate_tables.hudi.merge import Entries, Positions, Winners, merge_base, merge_logs
from headgate_tables.hudi.parquet_checks import UNMERGEABLE, check_columns, damaged
from headgate_tables.hudi.partial import MergeSource, merge_partial
from headgate_tables.hudi.schema.conform import conform
from headgate_tables.hudi.schema.meta_columns import COMMIT_TIME, RECORD_KEY
from headgate_tables.hudi.timeline.active import Timeline
from headgate_tables.hudi.view import FileSlice, LogFile
from headgate_tables.storage.store import Store

Block = RowsBlock | DeleteBlock
AnyBlock = TypeVar("AnyBlock", bound="Dated")


class Dated(Protocol):
    """What decides the order of blocks."""

    @property
    def instant(self) -> str:
        """The delta commit that wrote the block."""

    @property
    def compacted(self) -> Sequence[str]:
        """Instants whose blocks this one replaces."""


@dataclass(frozen=True, slots=True)
class ScanColumns:
    """What a scan wants of each slice. ``output``: names in order; ``read``: the columns that output and filters need.

    ``prune``: the filter, when statistics may rule rows out; None when not. ``commits``: only the rows of these commits are
    shown, and base rows of others do not even take part in the merge.
    """

    output: Sequence[str]
    read: Sequence[str]
    filter: pc.Expression | None
    prune: pc.Expression | None
    commits: pc.Expression | None = None


@dataclass(frozen=True, slots=True)
class LogRows:
    """The logs of a slice after the first pass: ``blocks``, where each begins among the entries, and the winners."""

    blocks: Sequence[Block]
    starts: Positions
    winners: Winners


class SliceReader:
    """Reads slices of one snapshot. ``schema`` has the meta columns first. ``as_of``: blocks of commits that completed later do
    not count; old versions of Hudi put those of several commits into one file.
    """

    def __init__(self, store: Store, layout: Layout, schema: pa.Schema, timeline: Timeline, as_of: str | None = None) -> None:
        self._store = store
        self._ordering = layout.ordering
        self._as_text = layout.shown_as_text
        self._schema = schema
        self._reader = EntryReader(schema, layout.ordering)
        self._timeline = timeline
        self._as_of = as_of

    def read(self, part: FileSlice, wanted: ScanColumns) -> Iterator[pa.Table]:
        """Tables of ``wanted.output`` columns, filtered. Raises CorruptFileError, MissingFileError, UnsupportedTableError."""
        merged = self._merged(part, wanted)
        while (rows := _next_of(merged, part)) is not None:
            # Out of that: what a caller's filter raises says nothing of the files.
            yield self._finish(rows, wanted)

    def _merged(self, part: FileSlice, wanted: ScanColumns) -> Iterator[pa.Table]:
        blocks = drop_compacted(read_together([block for log in part.logs for block in self._blocks(part, log)]))
        if any(isinstance(block, RowsBlock) and block.partial for block in blocks):
            if wanted.commits is not None:
                raise UnsupportedTableError(
                    "these commits changed single columns (SQL MERGE), so their files hold no whole rows",
                    fix="Read the table with as_of=..., or the changes with Spark.",
                )
            yield self._merge_partial(part, blocks, wanted)
            return
        logs = self._merge_logs(blocks) if blocks else None
        beaten: list[Positions] = []
        if part.base is not None:
            yield from self._base_rows(part.path(part.base), logs, wanted, beaten)
        if logs is not None:
            yield from self._log_rows(logs, beaten, wanted)

    def _finish(self, rows: pa.Table, wanted: ScanColumns) -> pa.Table:
        for expression in (wanted.commits, wanted.filter):
            if expression is None:
                continue
            try:
                rows = rows.filter(expression)
            except pa.ArrowException as error:
                raise OptionError(f"the filter fails for some row: {error}", fix="Let it leave such rows out.") from error
        return rows.select(list(wanted.output))

    # --- first pass: keys and ordering of the logs ---

    def _merge_partial(self, part: FileSlice, blocks: Sequence[Block], wanted: ScanColumns) -> pa.Table:
        names = list(dict.fromkeys([*wanted.read, *self._merge_columns(keyed=True)]))
        sources = []
        if part.base is not None:
            base = BaseFile(self._store, part.path(part.base))
            for rows in base.read(base.row_groups()[0], self._target(names), self._as_text):
                none = np.zeros(rows.num_rows, dtype=bool)
                sources.append(MergeSource(Entries(one_array(rows[RECORD_KEY]), self._base_ordering(rows), none, none), rows))
        for block in blocks:
            changed = None
            if isinstance(block, RowsBlock):
                changed = block.read([name for name in names if name in block.column_names])
                changed = conform(changed, self._target(changed.column_names), block.path, self._as_text)
            sources.append(MergeSource(self._entries(block), changed))
        return merge_partial(sources, self._target(wanted.read))

    def _merge_logs(self, blocks: Sequence[Block]) -> LogRows:
        entries = [self._entries(block) for block in blocks]
        starts = np.cumsum([0, *(len(entry.keys) for entry in entries)]).astype(np.int64)
        return LogRows(blocks, starts, merge_logs(self._reader.concatenate(entries)))

    # Our files are durable before they get a name, so a torn one is damage; files of others may end in a failed append.
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
            # A header has no checksum: under another instant the block would look like one that was never committed.
            if block.instant != log.instant:
                raise damaged(path, f"a block of it carries the instant {block.instant}")
            if isinstance(block, RowsBlock) and block.parquet is not None:
                check_columns(block.column_names, block.block.headers.get(HeaderKey.SCHEMA, ""), path)
        return blocks

    def _is_committed(self, instant: str) -> bool:
        completion = self._timeline.completion(instant)
        if completion is None:
            return instant < self._timeline.start
        return self._as_of is None or completion <= self._as_of

    def _entries(self, block: Block) -> Entries:
        """One block's keys and ordering values."""
        if isinstance(block, DeleteBlock):
            return self._reader.of_deletes(block)
        return self._reader.of_rows(block.read(self._reader.names(block.column_names, block.where)), block.path)

    # --- second pass: the rows themselves ---

    def _base_rows(self, path: str, logs: LogRows | None, wanted: ScanColumns, beaten: list[Positions]) -> Iterator[pa.Table]:
        base = BaseFile(self._store, path)
        matching, others = base.row_groups(wanted.prune)
        if wanted.commits is not None:
            of_commits, _ = base.row_groups(wanted.commits)
            matching, others = [g for g in matching if g in of_commits], [g for g in others if g in of_commits]
        keyed = logs is not None
        columns = list(dict.fromkeys([*wanted.read, *self._merge_columns(keyed=keyed)]))
        for rows in _counted(base.read(matching, self._target(columns), self._as_text), wanted):
            if logs is None:
                yield rows.select(list(wanted.read))
                continue
            outcome = merge_base(logs.winners, one_array(rows[RECORD_KEY]), self._base_ordering(rows))
            beaten.append(outcome.beaten)
            yield rows.filter(pa.array(outcome.keep)).select(list(wanted.read))
        if logs is not None and self._ordering:
            # Rows that the filter rules out are not shown, but still beat late log rows of the same key.
            columns = [*self._merge_columns(keyed=True), *([COMMIT_TIME] if wanted.commits is not None else [])]
            for rows in _counted(base.read(others, self._target(columns), self._as_text), wanted):
                beaten.append(merge_base(logs.winners, one_array(rows[RECORD_KEY]), self._base_ordering(rows)).beaten)

    def _merge_columns(self, *, keyed: bool) -> list[str]:
        return [RECORD_KEY, *([self._ordering] if self._ordering else [])] if keyed else []

    def _target(self, names: Sequence[str]) -> pa.Schema:
        return pa.schema([self._schema.field(name) for name in names])

    def _base_ordering(self, rows: pa.Table) -> Array | None:
        return one_array(rows[self._ordering]) if self._ordering else None

    def _log_rows(self, logs: LogRows, beaten: list[Positions], wanted: ScanColumns) -> Iterator[pa.Table]:
        alive = ~logs.winners.deletes
        for positions in beaten:
            alive[positions] = False
        shown = np.sort(logs.winners.positions[alive])
        target = self._target(wanted.read)
        for index, block in enumerate(logs.blocks):
            first, last = np.searchsorted(shown, logs.starts[index : index + 2])
            if first == last or isinstance(block, DeleteBlock):
                continue
            # Of rows without a column, Arrow's take leaves none.
            names = [name for name in wanted.read if name in block.column_names] or [RECORD_KEY]
            rows = block.read(names)
            if last - first < rows.num_rows:
                rows = rows.take(shown[first:last] - logs.starts[index])
            yield conform(rows, target, block.path, self._as_text)


def _next_of(merged: Iterator[pa.Table], part: FileSlice) -> pa.Table | None:
    """None at the end."""
    try:
        return next(merged, None)
    except UNMERGEABLE as error:
        raise damaged(part.path(part.names[0]), f"it, or a log file on it, holds what cannot be merged ({error})") from error


def _counted(batches: Iterator[pa.Table], wanted: ScanColumns) -> Iterator[pa.Table]:
    return batches if wanted.commits is None else (rows.filter(wanted.commits) for rows in batches)


def drop_compacted(blocks: Sequence[AnyBlock]) -> list[AnyBlock]:
    """Log compaction: a block that replaces others takes the place of the newest of them; one that replaces such a block takes it
    of what that replaced (fact HF15). A younger log may be older than a log compaction's own instant.
    """
    by = {instant: block.instant for block in blocks for instant in block.compacted if instant < block.instant}
    if not by:
        return list(blocks)
    place: dict[str, str] = {}
    for block in blocks:
        if not block.compacted:
            last = _last(block.instant, by)
            place[last] = max(place.get(last, ""), block.instant)
    kept = [block for block in blocks if block.instant not in by]
    return sorted(kept, key=lambda block: place.get(block.instant) or max(block.compacted, default=block.instant))


def _last(instant: str, by: Mapping[str, str]) -> str:
    """Of the log compaction that has its rows in the end. It ends: ``by`` leads to younger instants."""
    while instant in by:
        instant = by[instant]
    return instant
