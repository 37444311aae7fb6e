"""Which rows of a slice go into its new base file: the first pass of a compaction, over keys and ordering values alone.

For each entry of a *share* of the logs, memory holds key, ordering value and place in the hash tables: keys are divided by
their hash into as many shares as it takes, and each share is a pass of its own over the keys of logs and base. Beside that
it holds one byte for each row and entry of the slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array, index_array
from headgate_tables.hudi.entries import EntryReader, one_array
from headgate_tables.hudi.keys.fingerprint import fingerprints
from headgate_tables.hudi.merge import Entries, Mask, Positions
from headgate_tables.hudi.schema.meta_columns import RECORD_KEY
from headgate_tables.hudi.services.compaction.key_index import KeyIndex
from headgate_tables.hudi.services.compaction.parquet_batches import ParquetBatches
from headgate_tables.hudi.services.compaction.pinned_slice import PinnedBlock

SHARE_ENTRIES = 1_500_000
"""Entries of a share, about. More: fewer passes, and 130 bytes of memory for each (with keys of 21 bytes)."""
SHARE_KEY_BYTES = 64 * 1024 * 1024
_MOST_SHARES = 256
_KEPT_KEY_BYTES = 64 * 1024 * 1024
"""Base keys and ordering values of at most so many bytes are kept, and not read again when the rows are copied."""


@dataclass(frozen=True, slots=True)
class Survivors:
    """Rows of a slice for its new base file. ``keep``: bool[base rows]; ``alive``: bool[entries] for each block.
    ``deleting``: the same, of deletes that no log entry beats. ``unordered``: whether a delete lacks the ordering value.

    The counts are those of ``OperationResult``. ``read``: columns of the base file that were read already, whole; None when they
    are too large to keep.
    """

    keep: Mask
    read: pa.Table | None
    alive: Sequence[Mask]
    deleting: Sequence[Mask]
    unordered: bool
    inserts: int
    updates: int
    deletes: int
    log_rows: int


def find_survivors(
    base: ParquetBatches | None, blocks: Sequence[PinnedBlock], reader: EntryReader, schema: pa.Schema, beat: Callable[[], None]
) -> Survivors:
    """Finds the survivors of a slice without partial updates. ``beat`` is called now and then, and may raise."""
    return _Search(base, blocks, reader, schema, beat).result()


class _Search:
    def __init__(
        self,
        base: ParquetBatches | None,
        blocks: Sequence[PinnedBlock],
        reader: EntryReader,
        schema: pa.Schema,
        beat: Callable[[], None],
    ) -> None:
        self._base = base
        self._blocks = blocks
        self._reader = reader
        self._target = pa.schema([schema.field(name) for name in reader.key_names])
        self._beat = beat
        self._keep: Mask = np.ones(base.rows if base is not None else 0, dtype=bool)
        self._counts: list[int] = []
        self._alive: Mask = np.zeros(0, dtype=bool)
        self._deleting: Mask = np.zeros(0, dtype=bool)
        self._unordered = False
        self._updates = 0
        self._deletes = 0
        self._read: list[pa.Table] | None = None

    def result(self) -> Survivors:
        shares = max(1, -(-sum(block.about_entries() for block in self._blocks) // SHARE_ENTRIES))
        while not self._search(0, shares):
            shares *= 2
        for share in range(1, shares):
            self._search(share, shares)
        alive, deleting = (
            np.split(mask, np.cumsum(self._counts)[:-1]) if self._counts else [] for mask in (self._alive, self._deleting)
        )
        rows = sum(count for count, block in zip(self._counts, self._blocks, strict=True) if block.has_rows)
        shown = int(self._alive.sum())
        read = pa.concat_tables(self._read) if self._read else None
        inserts = shown - self._updates
        return Survivors(self._keep, read, alive, deleting, self._unordered, inserts, self._updates, self._deletes, rows)

    def _search(self, share: int, shares: int) -> bool:
        """False when the keys of the first share are so long that more shares are needed."""
        made = self._entries(share, shares)
        if made is None:
            return False
        entries, positions = made
        del made
        index = KeyIndex(entries)
        winners = index.winners
        del entries
        at = winners.positions if positions is None else positions[winners.positions]
        del positions
        beaten = np.zeros(len(at), dtype=bool)
        beating = np.zeros(len(at), dtype=bool)
        if self._base is not None and len(at):
            for keys, ordering, first in self._base_keys(self._base, alone=shares == 1):
                outcome = index.merge_base(keys, ordering)
                self._keep[first : first + len(keys)] &= outcome.keep
                beaten[outcome.beaten] = True
                beating[outcome.beating] = True
                self._beat()
        self._alive[at[~winners.deletes & ~beaten]] = True
        self._deleting[at[winners.deletes]] = True
        self._updates += int((beating & ~winners.deletes).sum())
        self._deletes += int((beating & winners.deletes).sum())
        return True

    def _entries(self, share: int, shares: int) -> tuple[Entries, Positions | None] | None:
        """Entries of this share, and their positions among all (None for the only share); None when they are too many bytes."""
        found: list[Entries] = []
        positions: list[Positions] = []
        counts: list[int] = []
        start = key_bytes = 0
        for block in self._blocks:
            begin = start
            for entries in block.entries(self._reader):
                length = len(entries.keys)
                self._unordered = self._unordered or _has_unordered(entries)
                if shares > 1:
                    chosen = np.flatnonzero(fingerprints(entries.keys) % np.uint64(shares) == np.uint64(share))
                    entries = _taken(entries, chosen)
                    positions.append(chosen + start)
                found.append(entries)
                start += length
                key_bytes += entries.keys.nbytes
                if share == 0 and key_bytes > SHARE_KEY_BYTES and shares < _MOST_SHARES:
                    return None
            counts.append(start - begin)
            self._beat()
        if share == 0:
            self._counts = counts
            self._alive, self._deleting = np.zeros(start, dtype=bool), np.zeros(start, dtype=bool)
        return self._reader.concatenate(found), np.concatenate(positions) if shares > 1 else None

    def _base_keys(self, base: ParquetBatches, *, alone: bool) -> Iterator[tuple[Array, Array | None, int]]:
        """Keys, ordering values and the number of the first row, batch by batch.

        ``alone``: no other share reads them, so there is room to keep them.
        """
        kept: list[pa.Table] | None = [] if alone else None
        first = nbytes = 0
        for batch in base.batches(self._target, dictionaries=False):
            ordering = one_array(batch[self._reader.ordering]) if self._reader.ordering else None
            yield one_array(batch[RECORD_KEY]), ordering, first
            first += batch.num_rows
            nbytes += batch.nbytes
            if kept is not None:
                kept = [*kept, batch] if nbytes <= _KEPT_KEY_BYTES else None
        self._read = kept


def _has_unordered(entries: Entries) -> bool:
    if entries.ordering is None or not entries.ordering.null_count:
        return False
    return bool((entries.deletes & entries.ordering.is_null().to_numpy(zero_copy_only=False)).any())


def _taken(entries: Entries, chosen: Positions) -> Entries:
    at = index_array(chosen)
    ordering = entries.ordering.take(at) if entries.ordering is not None else None
    return Entries(entries.keys.take(at), ordering, entries.deletes[chosen], entries.unconditional[chosen])
