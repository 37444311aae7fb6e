"""Which values fit which column without loss."""

import datetime
import decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from headgate.errors import RowError

if TYPE_CHECKING:
    Array: TypeAlias = pa.Array[Any]
    Field: TypeAlias = pa.Field[Any]


def plain(column: "Array") -> "Array":
    """The column's plain values: dictionaries decoded, extension types replaced by their storage."""
    if isinstance(column, pa.ExtensionArray):
        stored: Array = column.storage
        return plain(stored)
    if not isinstance(column, pa.DictionaryArray):
        return column
    values = column.dictionary
    if pat.is_string_view(values.type):  # polars' categories; Arrow 26 cannot take from views
        values = values.cast(pa.string())
    decoded: Array = values.take(column.indices)
    return decoded


def lossy_python_types(kind: pa.DataType) -> tuple[type, ...]:
    """Python types that Arrow converts to ``kind``, possibly cutting digits off."""
    if pat.is_date(kind) or (pat.is_timestamp(kind) and kind.unit == "ms"):
        return (float, decimal.Decimal, datetime.datetime)
    return (float, decimal.Decimal) if pat.is_integer(kind) or pat.is_timestamp(kind) else ()


def loses_digits(value: object, kind: pa.DataType) -> bool:
    """Whether Arrow would cut digits off this value."""
    if isinstance(value, datetime.datetime):
        return value.time() != datetime.time() if pat.is_date(kind) else bool(value.microsecond % 1000)
    return isinstance(value, (float, decimal.Decimal)) and value % 1 != 0


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether both types hold the same kind of value. The cast itself then refuses any value that would change."""
    if pat.is_null(source) or (pat.is_nested(source) and pat.is_nested(target)):
        return True
    if pat.is_integer(target) and pat.is_time(source):
        return True
    if pat.is_floating(source) and pat.is_floating(target):
        return source.bit_width <= target.bit_width  # Arrow rounds silently
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


def value_error(row: int, field: "Field", what: str) -> RowError:
    """The error that names row and column."""
    return RowError(
        f"row {row}, column {field.name!r}: {what}", fix=f"Give a value of type {field.type}.", row=row, column=field.name
    )
