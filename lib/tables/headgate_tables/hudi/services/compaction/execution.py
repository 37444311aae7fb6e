"""Executes one operation of a compaction plan: base file and logs of a slice become a new base file (rules W4, FI5).

Two passes. The first decides by keys and ordering values which rows stay (``survivors``). The second copies: kept rows of the
base file in their order, then the logs' winners in theirs, in batches, through a spool into the file; or sorted, if the settings
say so (``sorted_writer``). Memory holds a batch and a row group, however large the slice is, and what the first pass found.
Deletes end here: a base file keeps none (rule DE2).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array, mask_array, pc
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import CorruptFileError, StoreUnavailableError
from headgate_tables.face.operation import Operation, OperationResult
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.bloom import DynamicBloomFilter
from headgate_tables.hudi.data_files import layout_of
from headgate_tables.hudi.definition import Definition, Layout, avro_schema
from headgate_tables.hudi.entries import EntryReader, one_array
from headgate_tables.hudi.merge import Entries, Mask
from headgate_tables.hudi.parquet_checks import UNMERGEABLE, damaged
from headgate_tables.hudi.partial import MergeSource, merge_partial
from headgate_tables.hudi.schema.meta_columns import FILE_NAME, RECORD_KEY, with_meta
from headgate_tables.hudi.services.compaction.base_writer import BaseFileWriter
from headgate_tables.hudi.services.compaction.minor import Progress, compact_logs
from headgate_tables.hudi.services.compaction.parquet_batches import ParquetBatches
from headgate_tables.hudi.services.compaction.pinned_slice import PinnedSlice
from headgate_tables.hudi.services.compaction.sorted_writer import MergeSink, RowSink, SortedWriter
from headgate_tables.hudi.services.compaction.stored_output import Counts, stored_output
from headgate_tables.hudi.services.compaction.survivors import find_survivors
from headgate_tables.hudi.staged_names import staged_path
from headgate_tables.storage.scratch import scratch
from headgate_tables.storage.store import Outcome, Spool, SpooledBytes, Store


def compact_slice(
    store: Store,
    definition: Definition,
    layout: Layout,
    operation: Operation,
    instant: str,
    *,
    stage: str,
    settings: TableSettings,
    progress: Progress | None = None,
    attempt: str = "0",
) -> OperationResult:
    """Creates the operation's base file, or finds that another attempt has created it (then only that file is read). A minor
    compaction, where the operation allows one, creates its log file too (``minor``).

    ``stage``: a folder of this process, "" where files are created in place; ``attempt`` makes the staged name unique in it.
    ``progress`` gets the number of rows copied so far, also while it is 0; what it raises ends the operation.
    Only the finished file is left. Raises MissingFileError and CorruptFileError for inputs that are not as they were
    pinned, UnsupportedTableError, RetryLater, DeposedError when the stage was revoked, SyncFailedError.
    """
    staged = staged_path(stage, instant, operation.partition, operation.file_id, attempt)
    found = _found(store, operation)
    if found is not None:
        return found
    pinned = PinnedSlice(store, operation)
    if operation.merged_log:
        made = compact_logs(store, definition, layout, pinned, instant, staged=staged, progress=progress or _unheard)
        if made is not None:
            return made
    with store.spool(operation.path, staged) as spool:
        try:
            counts = _Merge(pinned, operation, definition, layout, settings, progress or _unheard).into(spool)
        except UNMERGEABLE as error:
            raise damaged(operation.path, f"an input of it holds what cannot be merged ({error})") from error
        outcome = spool.create()
        if outcome is Outcome.CREATED:
            return counts.compacted(operation, DataFile(operation.path, spool.file.size, spool.file.sha256, ""))
    found = stored_output(store, operation)
    if found is None:
        raise StoreUnavailableError(
            f"the store did not say whether {operation.path} was created", fix="Run the operation again once the store answers."
        )
    return found


def _found(store: Store, operation: Operation) -> OperationResult | None:
    """``stored_output``; None, too, for another file under the name of an operation that allows a minor compaction: it may be
    what that made, the slice's base file, and ``compact_logs`` finds out.
    """
    try:
        return stored_output(store, operation)
    except CorruptFileError:
        if operation.merged_log:
            return None
        raise


def merge_slice(
    store: Store,
    definition: Definition,
    layout: Layout,
    operation: Operation,
    sink: MergeSink,
    *,
    settings: TableSettings,
    progress: Progress,
) -> Counts:
    """Gives a pinned slice's rows, without their file's name, to a sink, which stays open. Raises as ``compact_slice``."""
    try:
        return _Merge(PinnedSlice(store, operation), operation, definition, layout, settings, progress).rows_into(sink)
    except UNMERGEABLE as error:
        raise damaged(operation.path, f"an input of it holds what cannot be merged ({error})") from error


@contextlib.contextmanager
def base_file_sink(
    file: SpooledBytes, name: str, definition: Definition, settings: TableSettings, beat: Callable[[], None]
) -> Iterator[RowSink]:
    """Writes a base file in the order that the settings want, with what these want in its footer."""
    schema = with_meta(definition.schema)
    order = settings.row_order.among(schema.names) if settings.row_order else None
    bloom = DynamicBloomFilter(settings.bloom_entries, settings.bloom_fpp) if settings.bloom else None
    # A layout of its own: one that other files have taught would change the bytes (rule W4).
    layout = layout_of(definition, order.columns if order else ())
    writer = BaseFileWriter(file, schema, name, avro_schema(definition, meta_columns=True), layout, bloom)
    if order is None:
        yield writer
        return
    with scratch() as waiting:
        yield SortedWriter(writer, schema.remove(schema.get_field_index(FILE_NAME)), order, waiting, beat)


def _unheard(rows: int) -> None:
    del rows


class _Merge:
    """One operation's merge."""

    def __init__(
        self,
        pinned: PinnedSlice,
        operation: Operation,
        definition: Definition,
        layout: Layout,
        settings: TableSettings,
        progress: Progress,
    ) -> None:
        self._pinned = pinned
        self._operation = operation
        self._definition = definition
        self._settings = settings
        self._progress = progress
        self._schema = with_meta(definition.schema)
        self._target = self._schema.remove(self._schema.get_field_index(FILE_NAME))
        self._reader = EntryReader(self._schema, layout.ordering)
        self._done = 0

    def into(self, spool: Spool) -> Counts:
        """Writes the whole file."""
        with base_file_sink(spool.file, self._operation.output, self._definition, self._settings, self._beat) as sink:
            counts = self.rows_into(sink)
            sink.close(counts.footer(self._operation))
        return counts

    def rows_into(self, sink: MergeSink) -> Counts:
        """Gives the sink all rows."""
        return self._partial(sink) if any(block.is_partial for block in self._pinned.blocks) else self._streamed(sink)

    def _streamed(self, writer: MergeSink) -> Counts:
        blocks, before = self._pinned.blocks, writer.rows
        with self._pinned.base() as base:
            survivors = find_survivors(base, blocks, self._reader, self._schema, self._beat)
            pa.default_memory_pool().release_unused()
            if base is not None:
                self._copy(self._base_rows(base, survivors.read), survivors.keep, writer, "the base file")
        for block, alive in zip(blocks, survivors.alive, strict=True):
            if alive.any():
                self._copy(block.rows(self._target), alive, writer, block.block.where)
        rows = int(survivors.keep.sum()) + sum(int(alive.sum()) for alive in survivors.alive)
        if writer.rows - before != rows:
            raise damaged(self._operation.path, f"{writer.rows - before} rows were written, and {rows} must survive")
        return Counts(rows, survivors.inserts, survivors.updates, survivors.deletes, survivors.log_rows, len(blocks))

    def _base_rows(self, base: ParquetBatches, read: pa.Table | None) -> Iterator[pa.Table]:
        """``read``: columns that were read before and need not be read again."""
        if read is None:
            yield from base.batches(self._target)
            return
        rest = pa.schema([field for field in self._target if field.name not in read.column_names])
        at = 0
        for rows in base.batches(rest):
            known = read.slice(at, rows.num_rows)
            at += rows.num_rows
            parts = [known if name in known.column_names else rows for name in self._target.names]
            columns = [part[name] for part, name in zip(parts, self._target.names, strict=True)]
            fields = [part.schema.field(name) for part, name in zip(parts, self._target.names, strict=True)]
            yield pa.table(columns, schema=pa.schema(fields))

    def _copy(self, batches: Iterator[pa.Table], chosen: Mask, writer: MergeSink, what: str) -> None:
        at = 0
        for rows in batches:
            mask = chosen[at : at + rows.num_rows]
            at += rows.num_rows
            if mask.all() and len(mask) == rows.num_rows:
                writer.write(rows)
            elif mask.any():
                writer.write(rows.filter(mask_array(mask)))
            self._done += rows.num_rows
            self._progress(self._done)
        if at != len(chosen):
            raise damaged(what, f"it had {len(chosen)} rows when they were counted, and then {at}")

    def _beat(self) -> None:
        self._progress(self._done)

    def _partial(self, writer: MergeSink) -> Counts:
        """Merges a slice with partial updates, which only Spark writes, in memory as readers do."""
        names = self._target.names
        sources: list[MergeSource] = []
        base_keys: list[Array] = []
        with self._pinned.base() as base:
            for rows in base.batches(self._target, dictionaries=False) if base is not None else ():
                none = np.zeros(rows.num_rows, dtype=bool)
                ordering = one_array(rows[self._reader.ordering]) if self._reader.ordering else None
                base_keys.append(one_array(rows[RECORD_KEY]))
                sources.append(MergeSource(Entries(base_keys[-1], ordering, none, none), rows))
        log_rows = 0
        log_keys: list[Array] = []
        for block in self._pinned.blocks:
            entries = self._reader.concatenate(list(block.entries(self._reader)))
            log_keys.append(entries.keys)
            log_rows += len(entries.keys) if block.has_rows else 0
            sources.append(MergeSource(entries, block.read_whole(names, self._schema) if block.has_rows else None))
            self._beat()
        merged = merge_partial(sources, self._target)
        writer.write(merged)
        had = pa.concat_arrays([*base_keys, pa.array([], pa.string())])
        shown = one_array(merged[RECORD_KEY])
        known = pc.is_in(shown, value_set=had)
        updates = pc.and_(known, pc.is_in(shown, value_set=pa.concat_arrays(log_keys)))
        kept, updated = (pc.sum(flags).as_py() or 0 for flags in (known, updates))
        return Counts(merged.num_rows, merged.num_rows - kept, updated, len(had) - kept, log_rows, len(self._pinned.blocks))
