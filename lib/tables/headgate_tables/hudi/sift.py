"""Sifts rows that gathered for many buckets: keeps one row of each record, and sorts these by bucket.

A call of the library sifts its batch at once; a writer sifts some of the buckets that wait, and gets the other rows back.
Keys and ordering values alone decide which rows are beaten; then each batch is split once, into the rows to write, by bucket,
and those of other buckets.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array
from headgate_tables.face.writing import Changes
from headgate_tables.hudi.duplicates import one_row_per_key
from headgate_tables.hudi.keys.bucket import Hashes
from headgate_tables.hudi.keys.java_hash import Int32s, java_string_hash
from headgate_tables.hudi.place import Placed

_FEW_ROWS: Final = 100
"""Rows of a bucket in a batch from which a slice of them is cheaper than sorting all batches as one."""

_LONG_SLICE: Final = 32 << 10
"""The same by bytes, for each column: to sort long values as one batch copies them twice more."""

Ints = npt.NDArray[np.int64]


@dataclass(eq=False)
class BucketedRows:
    """n rows with the code of each row's bucket, int32[n]. One chunk a column."""

    rows: pa.Table
    keys: Array
    deletes: pa.BooleanArray
    codes: Int32s

    @cached_property
    def nbytes(self) -> int:
        """Arrow bytes, counted when they are first asked for, unless a caller that knows them has set them: Arrow takes 5 us a
        column to count them, a tenth of what a small batch of 100 columns costs.
        """
        return self.rows.nbytes + self.keys.nbytes + self.deletes.nbytes + self.codes.nbytes

    def slice(self, start: int, stop: int) -> BucketedRows:
        """Rows ``start`` to ``stop``, without a copy."""
        n = stop - start
        return BucketedRows(
            self.rows.slice(start, n), self.keys.slice(start, n), self.deletes.slice(start, n), self.codes[start:stop]
        )

    def take(self, positions: Ints) -> BucketedRows:
        """The rows at these positions, copied."""
        return BucketedRows(
            self.rows.take(positions), self.keys.take(positions), self.deletes.take(positions), self.codes[positions]
        )


class Sifted(NamedTuple):
    """``changes``: what is to be written; ``rest``: the batches that remain; ``beaten``: how many rows are in neither."""

    changes: list[Changes]
    rest: list[BucketedRows]
    beaten: int


def sift_batch(placed: Placed, ordering: str | None) -> list[Changes]:
    """One row of each record of a batch, by group in the order of ``placed.groups``; see ``sift``."""
    if not placed.rows.num_rows:
        return []  # its columns may have no chunk at all
    batches = [BucketedRows(placed.rows, placed.keys, placed.deletes, placed.group)]
    return sift(batches, np.arange(len(placed.groups)), placed.groups, ordering, hashes=placed.hashes).changes


def sift(
    batches: list[BucketedRows],
    wanted: Ints,
    groups: Sequence[tuple[str, int]],
    ordering: str | None,
    *,
    hashes: Hashes | None = None,
) -> Sifted:
    """One row of each record in the wanted buckets, upserts before deletes, in the order of ``wanted``; and the batches that
    remain. Empties ``batches``.

    Of a record's rows the one with the largest value in the column ``ordering`` stays, of equal ones the last; without ordering
    the last. ``wanted``: int64, codes of buckets that have rows, each once; ``groups``: partition path and bucket of each code.
    ``hashes``: uint32 of all rows, equal for equal keys, when the caller has them and wants all buckets.
    """
    ranks = [_ranks(batch, wanted, len(groups)) for batch in batches]
    candidates = [np.flatnonzero(each >= 0) for each in ranks]
    chosen = _winners(batches, ranks, candidates, ordering, hashes)
    beaten = sum(map(len, candidates)) - sum(map(len, chosen))
    del candidates
    pieces: list[BucketedRows] = []
    rest: list[BucketedRows] = []
    width = _width(batches) if len(batches) > 1 else 0.0
    batches.reverse()
    for each, positions in zip(ranks, chosen, strict=True):
        batch = batches.pop()  # its memory is freed as soon as its rows are copied
        if len(positions):
            pieces.append(_by_rank(batch, each, positions))
        others = np.flatnonzero(each < 0)
        if len(others):
            rest.append(batch if len(others) == len(each) else batch.take(others))
    return Sifted(_changes(pieces, [groups[code] for code in wanted.tolist()], width), rest, beaten)


def concatenated(batches: Sequence[BucketedRows]) -> BucketedRows:
    """All of them in one batch, one chunk a column."""
    if len(batches) == 1:
        return batches[0]
    return BucketedRows(
        pa.concat_tables([batch.rows for batch in batches]).combine_chunks(),
        pa.concat_arrays([batch.keys for batch in batches]),
        pa.concat_arrays([batch.deletes for batch in batches]),
        np.concatenate([batch.codes for batch in batches]),
    )


def _ranks(batch: BucketedRows, wanted: Ints, groups: int) -> Int32s:
    """int32[n]: the order in which the rows are to be written; -1 for those of other buckets.

    Each wanted bucket has two ranks, an even one for its upserts and an odd one for its deletes.
    """
    number = np.full(groups, -1, np.int32)
    number[wanted] = np.arange(len(wanted), dtype=np.int32) * 2
    ranks: Int32s = number[batch.codes]
    if batch.deletes.true_count:
        ranks += batch.deletes.to_numpy(zero_copy_only=False) & (ranks >= 0)
    return ranks


def _winners(
    batches: Sequence[BucketedRows], ranks: Sequence[Int32s], chosen: Sequence[Ints], ordering: str | None, hashes: Hashes | None
) -> list[Ints]:
    """The chosen positions whose rows no other row of the same record beats."""
    if not batches:
        return []
    keys = _joined([_some(batch.keys, positions) for batch, positions in zip(batches, chosen, strict=True)])
    values = None
    if ordering is not None:
        columns = [batch.rows[ordering].chunks[0] for batch in batches]
        values = _joined([_some(column, positions) for column, positions in zip(columns, chosen, strict=True)])
    buckets = np.concatenate([each[positions] >> 1 for each, positions in zip(ranks, chosen, strict=True)])
    if hashes is None:
        hashes = java_string_hash(keys).view(np.uint32)
    kept = one_row_per_key(keys, values, buckets.astype(np.int64), hashes)
    if kept is None:
        return list(chosen)
    stops = np.cumsum([len(positions) for positions in chosen])
    parts = np.split(kept, np.searchsorted(kept, stops[:-1]))
    return [positions[part - (stop - len(positions))] for positions, part, stop in zip(chosen, parts, stops, strict=True)]


def _some(column: Array, positions: Ints) -> Array:
    return column if len(positions) == len(column) else column.take(positions)


def _joined(columns: Sequence[Array]) -> Array:
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def _by_rank(batch: BucketedRows, ranks: Int32s, positions: Ints) -> BucketedRows:
    """These rows in the order of their ranks, which become their codes. Copies, unless the batch is as wanted already."""
    wanted = ranks if len(positions) == len(ranks) else ranks[positions]
    if len(wanted) == len(ranks) and not (wanted[1:] < wanted[:-1]).any():
        return BucketedRows(batch.rows, batch.keys, batch.deletes, wanted)
    # 16-bit numbers sort by radix.
    order = np.argsort(wanted.astype(np.uint16) if wanted.max() < 1 << 16 else wanted, kind="stable")
    taken = batch.take(order if len(wanted) == len(ranks) else positions[order])
    return BucketedRows(taken.rows, taken.keys, taken.deletes, wanted[order])


def _width(batches: Sequence[BucketedRows]) -> float:
    """Bytes of a row for each of its columns."""
    rows = sum(len(batch.codes) for batch in batches)
    return sum(batch.nbytes for batch in batches) / max(1, rows * batches[0].rows.num_columns)


def _changes(pieces: list[BucketedRows], groups: Sequence[tuple[str, int]], width: float) -> list[Changes]:
    """Each bucket's slices of all pieces, rank by rank. ``width``: of the rows (``_width``), if there are several pieces."""
    rows, slices = sum(len(piece.codes) for piece in pieces), len(pieces) * len(groups)
    if len(pieces) > 1 and rows < slices * 2 * _FEW_ROWS and rows * width < slices * _LONG_SLICE:
        together = concatenated(pieces)
        pieces = [_by_rank(together, together.codes, np.arange(len(together.codes)))]
    if len(pieces) == 1:
        return _slices(pieces[0], groups)
    bounds = [np.searchsorted(piece.codes, np.arange(2 * len(groups) + 1)).tolist() for piece in pieces]
    found: list[Changes] = []
    for at, (partition, bucket) in enumerate(groups):
        parts = [
            piece.slice(bound[rank], bound[rank + 1])
            for rank in (2 * at, 2 * at + 1)
            for piece, bound in zip(pieces, bounds, strict=True)
            if bound[rank] < bound[rank + 1]
        ]
        table = pa.concat_tables([part.rows for part in parts])
        keys, deletes = pa.chunked_array([part.keys for part in parts]), pa.chunked_array([part.deletes for part in parts])
        found.append(Changes(partition, bucket, table, keys, deletes))
    return found


def _slices(piece: BucketedRows, groups: Sequence[tuple[str, int]]) -> list[Changes]:
    """Each bucket's upserts and deletes, which are adjacent."""
    rows, keys, deletes = piece.rows, piece.keys, piece.deletes
    bounds = np.searchsorted(piece.codes, np.arange(0, 2 * len(groups) + 1, 2)).tolist()
    return [
        Changes(*group, rows.slice(start, stop - start), keys.slice(start, stop - start), deletes.slice(start, stop - start))
        for group, (start, stop) in zip(groups, itertools.pairwise(bounds), strict=True)
    ]
