"""From a batch of rows to file groups: validated, keyed, partitioned, one row per key, sorted by file group.

Every step is a kernel over whole columns. The same code serves a writer of the cluster and the library's own upsert.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, pc
from headgate_tables.errors import NullOrderingError
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.duplicates import one_row_per_key
from headgate_tables.hudi.keys.bucket import Hashes, buckets_of_hashes, record_hashes
from headgate_tables.hudi.keys.partition_path import PartitionSpec, partition_paths
from headgate_tables.hudi.keys.record_key import KeySpec, read_keys
from headgate_tables.hudi.log.deletes import check_ordering_type

Ints = npt.NDArray[np.int64]
_SMALL = 1 << 16


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
    keys: Array
    groups: Sequence[Group]
    dropped: int


@dataclass(frozen=True, slots=True)
class Addressed:
    """Where each of n rows belongs. ``keys``: string[n]; ``ordering``: [n] or None; ``hashes``: uint32[n] of the keys.

    ``codes``: int64[n], partition number times buckets plus bucket; ``paths``: the partition paths by number.
    """

    keys: Array
    ordering: Array | None
    hashes: Hashes
    codes: Ints
    paths: Sequence[str]


def address(table: pa.Table, definition: Definition) -> Addressed:
    """``table`` has the definition's columns (for deletes: at least key, partition and ordering columns). Each partition has
    buckets of its own (rule DE4).

    Raises NullKeyError, NullOrderingError, PartitionValueError, UnsupportedTypeError.
    """
    key_spec = KeySpec(definition.record_key, definition.prefixed_keys)
    records = read_keys(table, key_spec)
    ordering = _ordering(table, definition)
    spec = PartitionSpec(definition.partition_by, definition.hive_style, definition.url_encode)
    partition_codes, paths, _ = partition_paths(table, spec)
    hashes = record_hashes(records, key_spec)
    codes = partition_codes.astype(np.int64) * definition.buckets + buckets_of_hashes(hashes, definition.buckets)
    return Addressed(records.keys, ordering, hashes, codes, paths)


def check_definition(definition: Definition) -> None:
    """Whether rows of such a table can be keyed, placed and ordered. Raises OptionError, SchemaError, UnsupportedTypeError."""
    definition.check()
    if definition.ordering:
        check_ordering_type(definition.schema.field(definition.ordering).type, definition.ordering)
    route(definition.schema.empty_table(), definition)


def route(table: pa.Table, definition: Definition) -> Routed:
    """``table`` and errors as in ``address``; nothing was written then."""
    rows = address(table, definition)
    keys, codes = rows.keys, rows.codes
    kept = one_row_per_key(keys, rows.ordering, codes, rows.hashes)
    order = order_by_group(codes if kept is None else codes[kept])
    picked = order if kept is None else kept[order]
    groups = list(_groups(codes[picked], rows.paths, definition.buckets))
    if kept is not None or len(groups) > 1:
        table, keys = table.take(picked), keys.take(picked)
    return Routed(table, keys, groups, len(codes) - len(picked))


def _ordering(table: pa.Table, definition: Definition) -> Array | None:
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


def order_by_group(codes: Ints | npt.NDArray[np.int32]) -> Ints:
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
