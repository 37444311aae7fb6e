"""A column as one array, and as the text that Hudi makes of its values in keys and folder names.

Only types are accepted whose text is the same in both of Spark's write paths (records as Avro, and rows in bulk insert).
Seen with Hudi 1.2.0: integers, booleans, dates (ISO) and decimals agree. Timestamps do not (``1795136523456789`` and
``2026-11-20 01:02:03.456``), nor do binaries, and the text of a float depends on the Java release.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from headgate_tables.arrow import Array, pc
from headgate_tables.errors import FixCall, OptionError, SchemaError, UnsupportedTypeError


def column(table: pa.Table | pa.RecordBatch, name: str, use: str) -> Array:
    """The column as one array; dictionaries stay dictionaries. ``use``: what the column is for, in messages.

    Raises SchemaError if there is none or more than one, OptionError if its text passes 2 GiB.
    """
    found = table.schema.get_all_field_indices(name)
    if len(found) != 1:
        problem = "is not in the data" if not found else f"is in the data {len(found)} times"
        have = ", ".join(table.schema.names)
        raise SchemaError(f"the {use} column {name!r} {problem}, which has {have}", fix="Give each column of the table once.")
    values = table.column(found[0])
    if not isinstance(values, pa.ChunkedArray):
        return values
    try:
        return values.combine_chunks()
    except pa.ArrowInvalid as e:
        raise OptionError(f"the {use} column {name!r} is too large for one call: {e}", fix="Write it in smaller pieces.") from e


def text(values: Array, name: str, use: str) -> pa.StringArray:
    """The values as Hudi prints them (``toString`` in Java); null stays null.

    Types: string, int8 to int64, bool, date32 of the years 1 to 9999, decimal128, and dictionaries of these. Raises
    UnsupportedTypeError for others, FixCall for a date out of that range.
    """
    of = values.type
    if isinstance(values, pa.DictionaryArray):
        return text(values.dictionary, name, use).take(values.indices)
    if pa.types.is_string(of):
        return values  # type: ignore[return-value]
    if pa.types.is_date32(of):
        _check_years(values, name, use)
    elif not (_is_text(of) or pa.types.is_signed_integer(of) or pa.types.is_boolean(of) or pa.types.is_decimal128(of)):
        raise UnsupportedTypeError(
            f"{of} cannot be the type of {use} column {name!r}, because Hudi's own writers disagree about its text",
            fix="Cast the column to string or to an integer.",
        )
    try:
        return values.cast(pa.string())  # type: ignore[return-value]
    except pa.ArrowInvalid as e:
        raise OptionError(f"the {use} column {name!r} is too large for one call: {e}", fix="Write it in smaller pieces.") from e


def _is_text(of: pa.DataType) -> bool:
    return pa.types.is_large_string(of) or pa.types.is_string_view(of)


def _check_years(values: Array, name: str, use: str) -> None:
    """Java prints a sign before years past 9999 and Arrow does not; years before 1 have no common text either."""
    span: pa.StructScalar = pc.min_max(values.cast(pa.int32()))
    low, high = span["min"].as_py(), span["max"].as_py()
    if low is not None and (low < _day(dt.date.min) or high > _day(dt.date.max)):
        raise FixCall(f"{use} column {name!r} holds a date outside the years 1 to 9999", fix="Correct these dates.")


def _day(date: dt.date) -> int:
    return (date - dt.date(1970, 1, 1)).days
