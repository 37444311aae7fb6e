"""From a batch of rows to file groups: validated, keyed, partitioned, one row per key, sorted by file group.

Every step is a kernel over whole columns. The same code serves a writer of the cluster and the library's own upsert.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import pc
from headgate_tables.errors import NullOrderingError
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import buckets_of_hashes, record_hashes
from headgate_tables.hudi.keys.partition_path import PartitionSpec, partition_paths
from headgate_tables.hudi.keys.record_key import KeySpec, read_keys
from headgate_tables.hudi.merge import latest_rows

Ints = npt.NDArray[np.int64]
_SMALL = 1 << 16
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Fibonacci hashing: the high bits of a product with it depend on all bits of the mark."""


@dataclass(frozen=True, slots=True)
class Group:
    """The rows ``start`` to ``stop`` of a routed batch belong to one bucket of one partition."""

    partition: str
    bucket: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Routed:
    """A batch in file-group order. ``rows``: the table's columns; ``keys``: string[n] record keys of those rows.

    ``dropped``: rows of the batch that another row of the same key beat.
    """

    rows: pa.Table
    keys: pa.Array[Any]
    groups: Sequence[Group]
    dropped: int


def route(table: pa.Table, definition: Definition) -> Routed:
    """``table`` has the definition's columns (for deletes: at least key, partition and ordering columns).

    Raises NullKeyError, NullOrderingError, PartitionValueError, UnsupportedTypeError; nothing was written then.
    """
    key_spec = KeySpec(definition.record_key)
    records = read_keys(table, key_spec)
    keys = records.keys
    ordering = _ordering(table, definition)
    spec = PartitionSpec(definition.partition_by, definition.hive_style, definition.url_encode)
    partition_codes, paths, _ = partition_paths(table, spec)
    hashes = record_hashes(records, key_spec)
    group_codes = partition_codes.astype(np.int64) * definition.buckets + buckets_of_hashes(hashes, definition.buckets)
    kept = _one_row_per_key(keys, ordering, group_codes, hashes)
    order = _by_group(group_codes if kept is None else group_codes[kept])
    picked = order if kept is None else kept[order]
    groups = list(_groups(group_codes[picked], paths, definition.buckets))
    if kept is not None or len(groups) > 1:
        table, keys = table.take(picked), keys.take(picked)
    return Routed(table, keys, groups, len(group_codes) - len(picked))


def _ordering(table: pa.Table, definition: Definition) -> pa.Array[Any] | None:
    """The ordering column; refuses nulls (rule DE1: Spark could not read the table any more)."""
    if definition.ordering is None:
        return None
    column = table[definition.ordering].combine_chunks()
    if column.null_count:
        first = pc.index(column.is_null(), True).as_py()
        raise NullOrderingError(
            f"column {definition.ordering!r} orders the rows and is null in {column.null_count} of them, first in row {first}",
            fix="Give every row (and every delete) an ordering value, or leave these rows out.",
        )
    return column


def _one_row_per_key(
    keys: pa.Array[Any], ordering: pa.Array[Any] | None, groups: Ints, hashes: npt.NDArray[np.uint32]
) -> Ints | None:
    """Positions of the rows that stand for their key, ascending; None when every key stands once.

    Keys are compared only among rows whose group and hash may occur twice; all others are known to be alone.
    """
    suspects = _suspects((groups << 32) | hashes.astype(np.int64))
    if not len(suspects):
        return None
    codes = _codes(keys.take(suspects))
    identity = codes if groups.max() == groups.min() else _codes(pa.array((groups[suspects] << 32) | codes))
    winners = latest_rows(identity, ordering.take(suspects) if ordering is not None else None)
    if len(winners) == len(suspects):
        return None
    keep = np.ones(len(groups), dtype=bool)
    keep[suspects] = False
    keep[suspects[winners]] = True
    return np.flatnonzero(keep)


def _suspects(marks: Ints) -> Ints:
    """Positions of all rows whose mark occurs more than once, and of a few others; ascending.

    Each row writes its position into a table slot of its mark; who finds another's there shares the slot.
    """
    bits = max(8, (8 * len(marks)).bit_length())
    slots = ((marks.astype(np.uint64) * _ODD) >> np.uint64(64 - bits)).astype(np.int64)
    positions = np.arange(len(marks), dtype=np.int32)
    last = np.empty(1 << bits, dtype=np.int32)
    last[slots] = positions
    overwritten = slots[last[slots] != positions]
    if not len(overwritten):
        return np.empty(0, dtype=np.int64)
    shared = np.zeros(1 << bits, dtype=bool)
    shared[overwritten] = True
    found: Ints = np.flatnonzero(shared[slots])
    return found


def _codes(values: pa.Array[Any]) -> Ints:
    """Equal values, equal numbers from 0 on."""
    numbers: Ints = values.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _by_group(codes: Ints) -> Ints:
    """Stable order by group; 16-bit codes sort by radix."""
    narrow = codes.astype(np.uint16) if not len(codes) or codes.max() < _SMALL else codes
    return np.argsort(narrow, kind="stable")


def _groups(sorted_codes: Ints, paths: Sequence[str], buckets: int) -> Iterator[Group]:
    if not len(sorted_codes):
        return
    edges = np.flatnonzero(np.diff(sorted_codes)) + 1
    bounds = [0, *edges.tolist(), len(sorted_codes)]
    for start, stop in itertools.pairwise(bounds):
        partition, bucket = divmod(int(sorted_codes[start]), buckets)
        yield Group(paths[partition], bucket, start, stop)
