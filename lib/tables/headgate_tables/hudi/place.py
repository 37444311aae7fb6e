"""One pass over a batch of upserts and deletes that finds the place of each row: record key, partition, bucket.

Every step is a kernel over whole columns. It drops and sorts nothing: rows keep the order of their arrival, which decides
between equal ordering values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array, pc
from headgate_tables.errors import NullOrderingError, OptionError
from headgate_tables.hudi.batches import conform_to_keys, conform_to_mixed, conform_to_table
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import Hashes, buckets_of_hashes, record_hashes
from headgate_tables.hudi.keys.java_hash import Int32s
from headgate_tables.hudi.keys.partition_path import PartitionSpec, dense, partition_paths
from headgate_tables.hudi.keys.record_key import KeySpec, read_keys
from headgate_tables.hudi.log.deletes import check_ordering_type
from headgate_tables.hudi.schema.values import check_values


@dataclass(frozen=True, slots=True)
class Placed:
    """n rows in the order of their arrival, and their places.

    ``rows``: the table's columns, one chunk each; a delete has values in the record key, partition and ordering columns only,
    and null in all others, even where the schema forbids it. ``keys``: string[n]; ``deletes``: bool[n]; none null.
    ``hashes``: uint32[n], equal for equal keys. ``group``: int32[n] into ``groups``, the (partition path, bucket) pairs that
    occur, each once.
    """

    rows: pa.Table
    keys: Array
    hashes: Hashes
    deletes: pa.BooleanArray
    group: Int32s
    groups: list[tuple[str, int]]


def place(table: pa.Table, deletes: pa.BooleanArray | None, definition: Definition) -> Placed:
    """``table`` has exactly the definition's columns; when all rows are deletes, those that a delete needs suffice, and others
    are ignored. ``deletes``: bool[n] without null, in one chunk; None: there are none.

    Raises SchemaError, UnsupportedTypeError, NullKeyError, NullOrderingError, PartitionValueError, FixCall, OptionError.
    """
    count = _count(deletes, table.num_rows)
    if deletes is None or not count:
        rows = conform_to_table(table, definition)
        deletes = _same(table.num_rows, value=False)
    elif count == table.num_rows:
        rows = conform_to_keys(table, definition)
    else:
        rows = conform_to_mixed(table, deletes, definition)
    placed = _place(rows, deletes, definition)
    if rows.num_columns == len(definition.schema):
        return placed
    return replace(placed, rows=_widened(rows, definition.schema))


def place_upserts(table: pa.Table, definition: Definition) -> Placed:
    """``place`` of upserts whose values nobody has looked at. Raises SchemaError, too, for those that are none of their type."""
    check_values(table)
    return place(table, None, definition)


def place_deletes(keys: pa.Table, definition: Definition, *, as_seen: bool = False) -> Placed:
    """``place`` of deletes alone, whose ``rows`` have the record key, partition and ordering columns and no others.

    ``as_seen``: see ``conform_to_keys``.
    """
    rows = conform_to_keys(keys, definition, as_seen=as_seen)
    return _place(rows, _same(rows.num_rows, value=True), definition)


def check_definition(definition: Definition) -> None:
    """Checks that rows of such a table can be keyed and ordered. Raises OptionError, SchemaError, UnsupportedTypeError."""
    definition.check()
    if definition.ordering:
        check_ordering_type(definition.schema.field(definition.ordering).type, definition.ordering)
    place(definition.schema.empty_table(), None, definition)


def partitions_of(rows: pa.Table, definition: Definition) -> tuple[Int32s, list[str]]:
    """int32[n] into the partition paths that occur, each once. ``rows`` has the partition columns; others are ignored.

    Raises PartitionValueError, SchemaError, UnsupportedTypeError.
    """
    spec = PartitionSpec(definition.partition_by, definition.hive_style, definition.url_encode)
    codes, paths, _ = partition_paths(rows, spec)
    return codes, paths


def _place(rows: pa.Table, deletes: pa.BooleanArray, definition: Definition) -> Placed:
    """Each partition has buckets of its own (rule DE4)."""
    key_spec = KeySpec(definition.record_key, definition.prefixed_keys)
    records = read_keys(rows, key_spec)
    _check_ordering(rows, definition)
    partitions, paths = partitions_of(rows, definition)
    hashes = record_hashes(records, key_spec)
    counts = [definition.buckets_in(path) for path in paths] if definition.bucket_rules else [definition.buckets]
    most = max(counts, default=1)
    of_rows = most if min(counts, default=most) == most else np.array(counts, np.uint32)[partitions]
    codes = partitions.astype(np.int64) * most + buckets_of_hashes(hashes, of_rows)
    group, used = dense(codes, len(paths) * most)
    pairs = [divmod(code, most) for code in used.tolist()]
    groups = [(paths[partition], bucket) for partition, bucket in pairs]
    return Placed(rows, records.keys, hashes, deletes, group.astype(np.int32), groups)


def _check_ordering(rows: pa.Table, definition: Definition) -> None:
    """Refuses nulls in the ordering column (rule DE1: Spark could not read the table any more)."""
    if definition.ordering is None or not (nulls := rows[definition.ordering].null_count):
        return
    first = pc.index(rows[definition.ordering].is_null(), True).as_py()
    raise NullOrderingError(
        f"column {definition.ordering!r} orders the rows and is null in {nulls} of them, first in row {first}",
        fix="Give every row (and every delete) an ordering value, or leave these rows out.",
    )


def _same(rows: int, *, value: bool) -> pa.BooleanArray:
    bits = (b"\xff" if value else b"\0") * -(-rows // 8)
    return cast(pa.BooleanArray, pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(bits)]))


def _count(deletes: pa.BooleanArray | None, rows: int) -> int:
    if deletes is None:
        return 0
    if deletes.type != pa.bool_() or len(deletes) != rows or deletes.null_count:
        raise OptionError(
            f"deletes has no value for some of {rows} rows, or is of another type",
            fix="Pass a pyarrow boolean array without null, or None.",
        )
    return deletes.true_count


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with null in the columns that a delete does not need."""
    columns = [rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type) for field in schema]
    return pa.table(columns, schema=schema)
