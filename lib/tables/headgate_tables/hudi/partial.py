"""Slices whose logs hold partial updates (SQL MERGE): each column has a winner of its own.

A block with IS_PARTIAL has only the changed columns; the others keep their older value. Rare, written
by Spark only, so the whole slice is held in memory here instead of streamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, Field
from headgate_tables.hudi.merge import Entries, rank

Numbers = npt.NDArray[np.int64]
_NONE = -1


@dataclass(frozen=True, slots=True)
class MergeSource:
    """Entries of one base file or block, in merge order. ``rows``: their columns in the table's types; None for deletes."""

    entries: Entries
    rows: pa.Table | None


def merge_partial(sources: Sequence[MergeSource], schema: pa.Schema) -> pa.Table:
    """The rows that a snapshot shows, with the columns of ``schema``; a column that no entry of a key holds is null."""
    keys = pa.concat_arrays([source.entries.keys for source in sources]).dictionary_encode()
    codes = keys.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    deletes = np.concatenate([source.entries.deletes for source in sources])
    unconditional = np.concatenate([source.entries.unconditional for source in sources])
    sequence = _sequence(sources)
    count = len(keys.dictionary)
    cut = _largest(codes[unconditional], np.flatnonzero(unconditional), count)
    valid = np.arange(len(codes)) > cut[codes]
    reset = _largest(codes[valid & deletes], sequence[valid & deletes], count)
    counted = valid & ~deletes & (sequence > reset[codes])
    shown = np.flatnonzero(_largest(codes[counted], sequence[counted], count) != _NONE)
    position = np.empty(len(codes), dtype=np.int64)
    position[sequence] = np.arange(len(codes))
    columns = [_column(field, sources, _Winning(codes, counted, sequence, position, shown, count)) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class _Winning:
    """What choosing a column's entries takes; see ``merge_partial``."""

    codes: Numbers
    counted: npt.NDArray[np.bool_]
    sequence: Numbers
    position: Numbers
    shown: Numbers
    keys: int


def _column(field: Field, sources: Sequence[MergeSource], winning: _Winning) -> Array:
    """The value of each shown key in its last entry that has the column."""
    chunks: list[Array] = []
    at = np.full(len(winning.codes), _NONE, dtype=np.int64)
    start = filled = 0
    for source in sources:
        length = len(source.entries.keys)
        if source.rows is not None and field.name in source.rows.column_names:
            at[start : start + length] = np.arange(filled, filled + length)
            chunks += source.rows[field.name].chunks
            filled += length
        start += length
    having = winning.counted & (at != _NONE)
    last = _largest(winning.codes[having], winning.sequence[having], winning.keys)[winning.shown]
    taken = np.where(last == _NONE, _NONE, at[winning.position[last]])
    if not chunks:
        empty: Array = pa.nulls(len(taken), field.type)
        return empty
    return pa.concat_arrays(chunks).take(pa.array(taken, pa.int64(), mask=taken == _NONE))


def _sequence(sources: Sequence[MergeSource]) -> Numbers:
    """The rank of each entry, by ordering value, then position; the greatest wins."""
    ordering = [source.entries.ordering for source in sources if source.entries.ordering is not None]
    total = sum(len(source.entries.keys) for source in sources)
    if not ordering:
        return np.arange(total, dtype=np.int64)
    ranks = rank(pa.concat_arrays(ordering))
    sequence = np.empty(total, dtype=np.int64)
    sequence[np.lexsort((np.arange(total), ranks))] = np.arange(total)
    return sequence


def _largest(codes: Numbers, numbers: Numbers, keys: int) -> Numbers:
    largest = np.full(keys, _NONE, dtype=np.int64)
    np.maximum.at(largest, codes, numbers)
    return largest
