"""A minor compaction: the logs of a slice become one log file, and the base file gets a second name (rules DE5, W4, FI5).

For slices whose logs are small beside their base file. Of each key the log file holds the row or the delete that no other log
entry beats; deletes stay, because the base file still has the rows. Rows keep their meta columns. What one file could not say, as
single changed columns, is left to an ordinary compaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from headgate_tables.arrow import Array, mask_array
from headgate_tables.commitlog.records import DataFile
from headgate_tables.errors import CorruptFileError, DeposedError, StoreUnavailableError, UnsupportedTableError
from headgate_tables.face.operation import Operation, OperationResult
from headgate_tables.hudi.data_files import layout_of
from headgate_tables.hudi.definition import Definition, Layout, avro_schema
from headgate_tables.hudi.entries import EntryReader
from headgate_tables.hudi.log.block import HeaderKey
from headgate_tables.hudi.log.frames import read_frames
from headgate_tables.hudi.log.writer import Deleted, encode_log_file
from headgate_tables.hudi.merge import Entries, Mask
from headgate_tables.hudi.parquet_checks import UNMERGEABLE, damaged
from headgate_tables.hudi.schema.meta_columns import with_meta
from headgate_tables.hudi.services.compaction.pinned_slice import PinnedSlice
from headgate_tables.hudi.services.compaction.stored_output import Counts, digest_of, taken
from headgate_tables.hudi.services.compaction.survivors import Survivors, find_survivors
from headgate_tables.storage.store import Outcome, Spool, Store

Progress = Callable[[int], None]

BLOCK_BYTES = 32 << 20
"""Arrow bytes of a block of rows, about. More: fewer blocks for readers to open, and as much more memory here."""
BLOCK_DELETES = 1 << 20


def compact_logs(
    store: Store, definition: Definition, layout: Layout, pinned: PinnedSlice, instant: str, *, staged: str, progress: Progress
) -> OperationResult | None:
    """Creates the log file and the base file of the slice's operation, durable; None when only an ordinary compaction will do,
    which depends on the pinned files and the definition. Files that another attempt has created must have the same bytes.

    ``staged``: where the log file waits, "" where files are created in place. Raises as ``execution.compact_slice``.
    """
    operation, merge = pinned.operation, _LogMerge(pinned, definition, layout, instant, progress)
    path = operation.at(operation.merged_log)
    try:
        if not merge.is_possible() or merge.is_outdated(store, path):
            return merge.finished_before(store, path)
        with _second_name(store, operation, staged) as name_base, store.spool(path, staged) as spool:
            survivors = merge.survivors()
            if survivors.unordered:
                return None
            counts = merge.into(spool, survivors)
            log = _created(store, spool, path)
            return counts.compacted(operation, name_base(), log)
    except UNMERGEABLE as error:
        raise damaged(path, f"an input of it holds what cannot be merged ({error})") from error


def _created(store: Store, spool: Spool, path: str) -> DataFile:
    file = DataFile(path, spool.file.size, spool.file.sha256, "")
    outcome = spool.create()
    if outcome is Outcome.CREATED:
        return file
    found = digest_of(store, path)
    if found is None:
        raise StoreUnavailableError(
            f"the store did not say whether {path} was created", fix="Run the operation again once the store answers."
        )
    if found != (file.size, file.sha256):
        raise taken(path, "it holds other bytes than the logs merged")
    return file


@contextlib.contextmanager
def _second_name(store: Store, operation: Operation, staged: str) -> Iterator[Callable[[], DataFile]]:
    """What it yields gives the base file its new name. On a local disk by way of a name in the stage, which is made first: none
    comes out of a stage that was revoked meanwhile (rule W2).
    """
    base, path = operation.base, operation.path
    if base is None:
        raise ValueError(f"the slice of {operation.file_id} has no base file")
    source = f"{staged}_base" if staged else operation.at(base.name)

    def name_it() -> DataFile:
        try:
            store.copy(source, path)
        except FileNotFoundError as error:
            raise DeposedError(
                f"{source} is gone: the table has got another owner since the operation was begun",
                fix="The new owner hands the work out again.",
            ) from error
        return _checked(store, path, base.size)

    try:
        if staged:
            store.copy(operation.at(base.name), source)
        yield name_it
    finally:
        if staged:
            store.delete([source])


def _checked(store: Store, path: str, size: int) -> DataFile:
    """Its checksum is that of the stored bytes (rule FI5)."""
    found = digest_of(store, path)
    if found is None:
        raise StoreUnavailableError(f"{path} was made and is not there", fix="Run the operation again.")
    if found[0] != size:
        raise taken(path, f"it has {found[0]} bytes, and the base file that it should be has {size}")
    return DataFile(path, *found, "")


class _LogMerge:
    """The merge of one slice's logs."""

    def __init__(self, pinned: PinnedSlice, definition: Definition, layout: Layout, instant: str, progress: Progress) -> None:
        self._pinned = pinned
        self._instant = instant
        self._progress = progress
        self._schema = with_meta(definition.schema)
        self._reader = EntryReader(self._schema, layout.ordering)
        self._avro = avro_schema(definition, meta_columns=True)
        # A layout of its own: one that other files have taught would change the bytes (rule W4).
        self._layout = layout_of(definition)
        self._base_rows = 0

    def is_possible(self) -> bool:
        """Whether one log file can say what the logs do, unless a delete of theirs is ``unordered``, and every reader takes the
        base file as it is.
        """
        blocks = self._pinned.blocks
        return bool(blocks) and not any(block.is_partial for block in blocks) and self._base_is_current()

    def _base_is_current(self) -> bool:
        """hudi-rs reads no older type of a column, until a compaction has brought it to the new one (fact HF14)."""
        with self._pinned.base() as base:
            if base is None:
                return False
            self._base_rows = base.rows
            stored = base.stored
            return all(field.name in stored.names and stored.field(field.name).type == field.type for field in self._schema)

    def is_outdated(self, store: Store, log_path: str) -> bool:
        """Whether another attempt has made the log file, before an alteration of the table: its bytes are others."""
        size = store.size(log_path)
        if size is None:
            return False
        with store.open_input(log_path) as source:
            try:
                frames = read_frames(source, size, log_path)
            except (CorruptFileError, UnsupportedTableError):
                return False  # no file of ours, of which the creation tells
        return frames is not None and any(block.headers.get(HeaderKey.SCHEMA) != self._avro for block in frames.blocks)

    def finished_before(self, store: Store, log_path: str) -> OperationResult | None:
        """What another attempt made before an alteration of the table; None when it did not come to the end."""
        operation = self._pinned.operation
        base, log = digest_of(store, operation.path), digest_of(store, log_path)
        if base is None or log is None or operation.base is None or base[0] != operation.base.size:
            return None
        counts = self._counts(self.survivors())
        return counts.compacted(operation, DataFile(operation.path, *base, ""), DataFile(log_path, *log, ""))

    def survivors(self) -> Survivors:
        """Of the logs alone."""
        return find_survivors(None, self._pinned.blocks, self._reader, self._schema, lambda: self._progress(0))

    def into(self, spool: Spool, survivors: Survivors) -> Counts:
        """Writes the file."""
        for content in self._contents(survivors):
            for piece in encode_log_file(self._instant, self._avro, [content], self._layout):
                spool.file.write(memoryview(piece))
        return self._counts(survivors)

    def _counts(self, survivors: Survivors) -> Counts:
        return Counts(self._base_rows, 0, 0, 0, survivors.log_rows, len(self._pinned.blocks))

    def _contents(self, survivors: Survivors) -> Iterator[pa.Table | Deleted]:
        yield from self._rows(survivors.alive)
        yield from self._deletes(survivors.deleting)

    def _rows(self, alive: Sequence[Mask]) -> Iterator[pa.Table]:
        waiting: list[pa.Table] = []
        nbytes = done = 0
        for block, mask in zip(self._pinned.blocks, alive, strict=True):
            at = 0
            for rows in block.rows(self._schema, dictionaries=False) if mask.any() else ():
                chosen = mask[at : at + rows.num_rows]
                at += rows.num_rows
                waiting.append(rows.filter(mask_array(chosen)))
                nbytes += waiting[-1].nbytes
                done += rows.num_rows
                self._progress(done)
                if nbytes >= BLOCK_BYTES:
                    yield pa.concat_tables(waiting)
                    waiting, nbytes = [], 0
            if mask.any() and at != len(mask):
                raise damaged(block.block.where, f"it had {len(mask)} rows when they were counted, and then {at}")
        if nbytes:
            yield pa.concat_tables(waiting)

    def _deletes(self, deleting: Sequence[Mask]) -> Iterator[Deleted]:
        found: list[Entries] = []
        for block, mask in zip(self._pinned.blocks, deleting, strict=True):
            at = 0
            for entries in block.entries(self._reader) if mask.any() else ():
                found.append(_chosen(entries, mask[at : at + len(entries.keys)]))
                at += len(entries.keys)
        merged = self._reader.concatenate(found)
        for start in range(0, len(merged.keys), BLOCK_DELETES):
            ordering = merged.ordering.slice(start, BLOCK_DELETES) if merged.ordering is not None else None
            yield merged.keys.slice(start, BLOCK_DELETES), self._pinned.operation.partition, ordering


def _chosen(entries: Entries, mask: Mask) -> Entries:
    chosen = mask_array(mask)
    ordering: Array | None = entries.ordering.filter(chosen) if entries.ordering is not None else None
    return Entries(entries.keys.filter(chosen), ordering, entries.deletes[mask], entries.unconditional[mask])
