"""A writer's ingest side: a batch of upserts and deletes is checked, keyed and told which bucket each of its rows belongs to.

Nothing is dropped or sorted: rows keep the order of their arrival, which decides between equal ordering values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array
from headgate_tables.errors import OptionError
from headgate_tables.hudi.batches import conform_to_keys, conform_to_mixed, conform_to_table
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.java_hash import Int32s
from headgate_tables.hudi.keys.partition_path import dense
from headgate_tables.hudi.routing import address


@dataclass(frozen=True, slots=True)
class Placed:
    """n rows in the order of their arrival, and where they go.

    ``rows``: the table's columns, one chunk each; a delete has values in the record key, partition and ordering columns only,
    and null in all others, even where the schema says that there is none. ``keys``: string[n]; ``deletes``: bool[n]; none null.
    ``group``: int32[n] into ``groups``, the (partition path, bucket) pairs that occur, each once.
    """

    rows: pa.Table
    keys: Array
    deletes: pa.BooleanArray
    group: Int32s
    groups: list[tuple[str, int]]


def place(table: pa.Table, deletes: pa.BooleanArray | None, definition: Definition) -> Placed:
    """``table`` has all of the definition's columns and no others; when all rows are deletes, those that a delete needs suffice
    and others are ignored. ``deletes``: bool[n] without null, in one chunk; None: there are none.

    Raises SchemaError, UnsupportedTypeError, NullKeyError, NullOrderingError, PartitionValueError, FixCall, OptionError.
    """
    count = _count(deletes, table.num_rows)
    if deletes is None or not count:
        rows = conform_to_table(table, definition)
        deletes = _none_of(table.num_rows)
    elif count == table.num_rows:
        rows = conform_to_keys(table, definition)
    else:
        rows = conform_to_mixed(table, deletes, definition)
    addressed = address(rows, definition)
    codes, used = dense(addressed.codes, len(addressed.paths) * definition.buckets)
    pairs = [divmod(code, definition.buckets) for code in used.tolist()]
    groups = [(addressed.paths[partition], bucket) for partition, bucket in pairs]
    return Placed(_widened(rows, definition.schema), addressed.keys, deletes, codes.astype(np.int32), groups)


def _none_of(rows: int) -> Any:
    return pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(bytes(-(-rows // 8)))])


def _count(deletes: pa.BooleanArray | None, rows: int) -> int:
    if deletes is None:
        return 0
    if deletes.type != pa.bool_() or len(deletes) != rows or deletes.null_count:
        raise OptionError(
            f"deletes do not say of each of {rows} rows whether it is one",
            fix="Pass a pyarrow boolean array without null, or None.",
        )
    return deletes.true_count


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns that a delete does not need, null."""
    if rows.num_columns == len(schema):
        return rows
    columns = [rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type) for field in schema]
    return pa.table(columns, schema=schema)
