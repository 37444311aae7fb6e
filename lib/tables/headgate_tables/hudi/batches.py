"""Turns a caller's data into tables of the right columns and types, in chunks of bounded size."""

from collections.abc import Iterator

import pyarrow as pa

from headgate_tables.arrow import pc
from headgate_tables.errors import FixCall, OptionError
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.schema.conform import stored_rows
from headgate_tables.hudi.schema.meta_columns import IS_DELETED

FLUSH_BYTES = 256 * 1024 * 1024
"""Arrow bytes of a stream that become one set of files. More: fewer, larger files and as much more memory."""


def table_chunks(data: object) -> Iterator[pa.Table]:
    """Tables of about ``FLUSH_BYTES`` from anything with ``__arrow_c_stream__``; data in memory comes whole."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        yield data
        return
    if not hasattr(data, "__arrow_c_stream__"):
        raise OptionError(
            f"{type(data).__name__} cannot be read as Arrow data",
            fix="Pass a pyarrow Table or RecordBatchReader, a polars or pandas DataFrame, or a duckdb relation.",
        )
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise OptionError(
            f"{type(data).__name__} is not a stream of rows: {error}",
            fix="Pass a table, not a single column; give each of its columns a name of its own and values of one type.",
        ) from error
    batches: list[pa.RecordBatch] = []
    size = 0
    found = False
    for batch in reader:
        found = True
        batches.append(batch)
        size += batch.nbytes
        if size >= FLUSH_BYTES:
            yield _emptied(batches, reader.schema)
            size = 0
    if batches or not found:
        yield _emptied(batches, reader.schema)


def _emptied(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The batches as one table; empties the list, so that nothing else keeps their memory."""
    table = pa.Table.from_batches(batches, schema)
    batches.clear()
    return table


def needed_by_deletes(definition: Definition) -> set[str]:
    """The columns that a delete must have: record key, partition, ordering."""
    named = {*definition.record_key, *definition.partition_by}
    return named | {definition.ordering} if definition.ordering else named


def conform_to_table(table: pa.Table, definition: Definition) -> pa.Table:
    """All of the table's columns, in its order and types, one chunk each. Raises SchemaError, FixCall."""
    rows = _one_chunk(stored_rows(table, definition.schema))
    _refuse_marked(rows)
    return rows


def conform_to_keys(table: pa.Table, definition: Definition, *, as_seen: bool = False) -> pa.Table:
    """The columns that a delete needs: record key, partition, ordering; others are left out. Raises SchemaError, FixCall.

    ``as_seen``: these are the newest rows of their keys, so that a delete of whatever came before is what is wanted.
    """
    wanted = needed_by_deletes(definition)
    needed = pa.schema([field for field in definition.schema if field.name in wanted])
    # By position, because a name that occurs twice would hide the second column.
    given = table.select([at for at, name in enumerate(table.column_names) if name in wanted])
    keys = _one_chunk(stored_rows(given, needed))
    if not as_seen:
        _refuse_zero_ordering(keys, definition)
    return keys


def conform_to_mixed(table: pa.Table, deletes: pa.BooleanArray, definition: Definition) -> pa.Table:
    """``conform_to_table`` for rows of which some are deletes: of those only the columns that a delete needs are checked, and all
    others become null, even where the table forbids it. Raises as ``conform_to_table`` and ``conform_to_keys``.
    """
    rows = _one_chunk(stored_rows(table, definition.schema, deletes, needed_by_deletes(definition)))
    _refuse_zero_ordering(rows, definition, deletes)
    _refuse_marked(rows)
    return rows


def _refuse_marked(rows: pa.Table) -> None:
    """Refuses rows that a column of another program's table marks as deletes: readers obey the mark in a log file, but not in a
    base file (test_a_row_that_is_marked_as_deleted_is_refused).
    """
    if IS_DELETED not in rows.column_names:
        return
    row = pc.index(rows[IS_DELETED], True).as_py()
    if row >= 0:
        raise FixCall(f"the upsert in row {row} has {IS_DELETED} set", fix="Send the row's key as a delete.")


def zero_is_none(kind: pa.DataType) -> bool:
    """Whether the value 0 of an ordering column of this type stands in a delete record for none (fact HF5)."""
    return kind in (pa.int32(), pa.date32())


def _refuse_zero_ordering(keys: pa.Table, definition: Definition, deletes: pa.BooleanArray | None = None) -> None:
    """Hudi's delete records express "no ordering value" as 0 in 32 bits (fact HF5), so a delete with that value is refused.

    It would remove newer rows too (rule DE1; test_a_delete_that_hudi_would_take_for_one_without_ordering_is_refused).
    """
    if definition.ordering is None:
        return
    kind = definition.schema.field(definition.ordering).type
    if not zero_is_none(kind):
        return
    zero = pc.equal(keys[definition.ordering].cast(pa.int32()), pa.scalar(0, pa.int32()))
    row = pc.index(zero if deletes is None else pc.and_(zero, deletes), True).as_py()
    if row >= 0:
        raise FixCall(
            f"the delete in row {row} has the value 0 in its ordering column {definition.ordering!r} ({kind}), which Hudi "
            "takes for a delete of whatever came before, newer rows included",
            fix="Give the delete another value, or order the table by an int64 or a timestamp.",
        )


def _one_chunk(table: pa.Table) -> pa.Table:
    if all(column.num_chunks == 1 for column in table.columns):
        return table
    merged = table.combine_chunks()
    if merged.num_rows and any(column.num_chunks > 1 for column in merged.columns):
        raise OptionError(
            "a text column holds more than 2 GiB in one batch", fix="Write it in smaller batches, or pass a stream."
        )
    return merged
