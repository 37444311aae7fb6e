"""The merge kernel: which row of each key a snapshot shows. Keys and ordering values in, positions out; nothing else is read.

Rules (facts HF3, HF5; each seen with real Hudi): with event time the larger ordering value wins, a tie goes
to the later row; with commit time the later row wins. A delete obeys its ordering value like a row; one without
(``unconditional``) beats everything before it, the base row included, and nothing after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, index_array, pc

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Ranks = npt.NDArray[np.int64]
_LOWEST = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Entries:
    """Rows and deletes of a slice's logs in merge order; all of one length n.

    ``keys``: string[n]. ``ordering``: any orderable type[n], null where ``unconditional``; None with commit time.
    ``deletes``, ``unconditional``: bool[n] (an unconditional delete is set in both).
    """

    keys: Array
    ordering: Array | None
    deletes: Mask
    unconditional: Mask


@dataclass(frozen=True, slots=True)
class Winners:
    """The winning entry of each distinct key; all of one length u.

    ``positions``: int64[u] into the entries. ``ordering``: the winners' ordering values, None with commit time.
    """

    keys: Array
    positions: Positions
    deletes: Mask
    unconditional: Mask
    ordering: Array | None


def merge_logs(entries: Entries) -> Winners:
    """One winner per key, among the logs alone."""
    encoded = entries.keys.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    winning = winning_entries(codes, len(encoded.dictionary), entries)
    return winners_of(entries, encoded.dictionary, winning)


def winning_entries(codes: Codes, keys: int, entries: Entries) -> Positions:
    """int64[keys]: the position of each key's winning entry. ``codes``: int[n], the number of each entry's key."""
    positions = np.arange(len(codes), dtype=np.int64)
    return _last(codes, positions, keys) if entries.ordering is None else _largest(codes, positions, keys, entries)


def winners_of(entries: Entries, keys: Array, winning: Positions) -> Winners:
    """``winning``: the position of the entry of each of ``keys``."""
    ordering = entries.ordering.take(index_array(winning)) if entries.ordering is not None else None
    return Winners(keys, winning, entries.deletes[winning], entries.unconditional[winning], ordering)


def _last(codes: Codes, positions: Positions, keys: int) -> Positions:
    """Position of each key's last entry, -1 for a key without any (of a repeated index, the last assignment counts)."""
    last = np.full(keys, -1, dtype=np.int64)
    last[codes] = positions
    return last


def _largest(codes: Codes, positions: Positions, keys: int, entries: Entries) -> Positions:
    assert entries.ordering is not None  # noqa: S101 - narrows the type for the checker
    ranks = rank(entries.ordering)
    if not entries.unconditional.any():
        return _last_of_largest(codes, positions, ranks, keys)
    cut = _last(codes[entries.unconditional], positions[entries.unconditional], keys)
    after = ~entries.unconditional & (positions > cut[codes])
    winning = _last_of_largest(codes[after], positions[after], ranks[after], keys)
    return np.where(winning >= 0, winning, cut)


def _last_of_largest(codes: Codes, positions: Positions, ranks: Ranks, keys: int) -> Positions:
    largest = np.full(keys, _LOWEST, dtype=np.int64)
    np.maximum.at(largest, codes, ranks)
    top = ranks == largest[codes]
    return _last(codes[top], positions[top], keys)


def latest_rows(identity: Positions, ordering: Array | None) -> Positions:
    """Positions of the winning rows of one batch, ascending; ``identity`` numbers the keys 0..u-1."""
    positions = np.arange(len(identity), dtype=np.int64)
    keys = int(identity.max()) + 1 if len(identity) else 0
    if ordering is None:
        return np.sort(_last(identity, positions, keys))
    return np.sort(_last_of_largest(identity, positions, rank(ordering), keys))


def rank(values: Array) -> Ranks:
    """int64 numbers in the order of ``values`` (nulls: any number). Ranks of fixed-width types compare between calls; those of
    text, binary and decimals only within one (see ``beats``).

    Floats as Java's Double.compareTo: -0.0 below 0.0, NaN above all.
    """
    kind = values.type
    if pa.types.is_floating(kind):
        bits = _float_bits(values)
        return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
    if comparable_ranks(kind):
        if pa.types.is_temporal(kind):
            values = values.view(pa.int64() if kind.bit_width == 64 else pa.int32())
        plain: Ranks = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        return plain
    ranked = pc.rank(values, sort_keys="ascending", tiebreaker="dense")
    ranks: Ranks = ranked.to_numpy(zero_copy_only=False).astype(np.int64)
    return ranks


def comparable_ranks(kind: pa.DataType) -> bool:
    """Whether ``rank`` gives numbers that compare between calls."""
    return pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind) or pa.types.is_floating(kind)


def _float_bits(values: Array) -> npt.NDArray[np.int64]:
    numbers = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    return np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)


@dataclass(frozen=True, slots=True)
class BaseOutcome:
    """Base rows against the winners of the logs. ``keep``: bool[rows]; ``beaten``: int64, winners that a base row beats;
    ``beating``: winners that replace or delete a base row.
    """

    keep: Mask
    beaten: Positions
    beating: Positions


def merge_base(winners: Winners, keys: Array, ordering: Array | None) -> BaseOutcome:
    """Compares base rows (string[rows], ordering[rows]) with the logs' winners of the same keys.

    The log wins when base <= log; a base row without an ordering value loses.
    """
    found = pc.index_in(keys, value_set=winners.keys)
    at = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    candidates = pc.drop_null(found).to_numpy(zero_copy_only=False).astype(np.int64)
    return settle(winners, len(keys), at, candidates, ordering)


def settle(winners: Winners, rows: int, at: Positions, candidates: Positions, ordering: Array | None) -> BaseOutcome:
    """``merge_base`` of ``rows`` base rows, when those ``at`` have the keys of the winners ``candidates``, one each."""
    keep = np.ones(rows, dtype=bool)
    keep[at] = False
    if winners.ordering is None or ordering is None:
        return BaseOutcome(keep, np.empty(0, dtype=np.int64), candidates)
    base_wins = _exceeds(ordering.take(index_array(at)), winners.ordering.take(index_array(candidates)))
    base_wins &= ~winners.unconditional[candidates]
    keep[at[base_wins]] = True
    return BaseOutcome(keep, candidates[base_wins], candidates[~base_wins])


def _exceeds(left: Array, right: Array) -> Mask:
    """Left > right, False where either is null."""
    known: Mask = pc.and_(left.is_valid(), right.is_valid()).to_numpy(zero_copy_only=False)
    larger: Mask
    if comparable_ranks(left.type):
        larger = rank(left) > rank(right)
    else:
        larger = pc.fill_null(pc.greater(left, right), False).to_numpy(zero_copy_only=False)
    return larger & known
