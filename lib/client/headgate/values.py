"""Which values may become which column, without losing anything on the way."""

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from headgate.errors import RowError


def plain(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """The values themselves: no dictionary, no extension type."""
    if isinstance(column, pa.ExtensionArray):
        stored: pa.Array[Any] = column.storage
        return plain(stored)
    if not isinstance(column, pa.DictionaryArray):
        return column
    values = column.dictionary
    if pat.is_string_view(values.type):  # polars' categories; Arrow 26 cannot take from views
        values = values.cast(pa.string())
    decoded: pa.Array[Any] = values.take(column.indices)
    return decoded


def rounded_kinds(kind: pa.DataType) -> tuple[type, ...]:
    """Python types of which Arrow makes this one, perhaps by leaving something out."""
    if pat.is_date(kind) or (pat.is_timestamp(kind) and kind.unit == "ms"):
        return (float, decimal.Decimal, datetime.datetime)
    return (float, decimal.Decimal) if pat.is_integer(kind) or pat.is_timestamp(kind) else ()


def is_rounded(value: Any, kind: pa.DataType) -> bool:
    """Whether Arrow would leave something of this value out."""
    if isinstance(value, datetime.datetime):
        return value.time() != datetime.time() if pat.is_date(kind) else bool(value.microsecond % 1000)
    return isinstance(value, (float, decimal.Decimal)) and value % 1 != 0


def may_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Other forms of the same kind of value; that a value is lost on the way, the cast itself refuses."""
    if pat.is_null(source) or (pat.is_nested(source) and pat.is_nested(target)):
        return True
    if pat.is_integer(target) and pat.is_time(source):
        return True
    if pat.is_floating(source) and pat.is_floating(target):
        return source.bit_width <= target.bit_width  # Arrow checkpoints without a word
    if pat.is_date(source):
        return pat.is_date(target) or pat.is_timestamp(target)
    kinds = (_is_number, _is_text, _is_binary, pat.is_timestamp, pat.is_decimal)
    return any(of_kind(source) and of_kind(target) for of_kind in kinds)


def _is_number(kind: pa.DataType) -> bool:
    # pandas makes float columns of integers with gaps.
    return pat.is_integer(kind) or pat.is_floating(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_binary_view(kind) or pat.is_fixed_size_binary(kind)


def bad_value(row: int, field: "pa.Field[Any]", what: str) -> RowError:
    """The error that names it."""
    return RowError(f"row {row}, column {field.name!r}: {what}", fix=f"Give a {field.type}.", row=row, column=field.name)
