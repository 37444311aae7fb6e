"""Which values fit which column without loss."""

from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from headgate.errors import RowError

if TYPE_CHECKING:
    Array: TypeAlias = pa.Array[Any]
    Field: TypeAlias = pa.Field[Any]

_STORED_TIMES = {32: pa.int32(), 64: pa.int64()}
"""A table stores times of day as int32 milliseconds or int64 microseconds."""
_LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)


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


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether both types hold the same kind of value. The cast itself then refuses any value that would change."""
    if isinstance(source, pa.BaseExtensionType):
        return False
    if isinstance(source, pa.DictionaryType):
        return can_cast(source.value_type, target)
    if pat.is_null(source):
        return True
    if pat.is_nested(source) or pat.is_nested(target):
        return _can_cast_nested(source, target)
    if pat.is_time(source):
        return target == _STORED_TIMES.get(source.bit_width)
    if pat.is_floating(source) and pat.is_floating(target):
        return source.bit_width <= target.bit_width  # Arrow rounds silently
    if pat.is_date(source):
        return pat.is_date(target) or pat.is_timestamp(target)
    kinds = (_is_number, _is_text, _is_binary, pat.is_boolean, pat.is_timestamp, pat.is_decimal)
    return any(of_kind(source) and of_kind(target) for of_kind in kinds)


def cast_column(column: "Array", target: pa.DataType) -> "Array":
    """The column as ``target``. Raises pyarrow.ArrowException where a value would change."""
    if pat.is_time(column.type):  # stored as milliseconds or microseconds; Arrow would give the bare numbers of any unit
        column = column.cast(pa.time32("ms") if column.type.bit_width == 32 else pa.time64("us"))
    if pat.is_date64(column.type):
        column = column.cast(pa.date32())  # by way of a timestamp a time of day would be cut off
    fitted: Array = _in_order(column, target).cast(target)
    return fitted


def _in_order(column: "Array", target: pa.DataType) -> "Array":
    """Structs with their fields where the target has them. Before 22, Arrow does not cast them by name, nor those in lists."""
    if not (isinstance(column, pa.StructArray) and isinstance(target, pa.StructType)):
        return column
    children = [_in_order(column.field(field.name), field.type) for field in target]
    fields = [column.type.field(field.name).with_type(child.type) for field, child in zip(target, children, strict=True)]
    made: Array = pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())
    return made


def _can_cast_nested(source: pa.DataType, target: pa.DataType) -> bool:
    if isinstance(source, pa.StructType) and isinstance(target, pa.StructType):
        # Arrow would drop a field that the target lacks, and make one null that the source lacks.
        types = {field.name: field.type for field in source}
        return (
            len(types) == source.num_fields == target.num_fields
            and all(field.name in types and can_cast(types[field.name], field.type) for field in target)
        )  # fmt: skip
    if isinstance(source, pa.MapType) and isinstance(target, pa.MapType):
        return can_cast(source.key_type, target.key_type) and can_cast(source.item_type, target.item_type)
    if isinstance(source, _LISTS) and isinstance(target, _LISTS):
        return can_cast(source.value_type, target.value_type)
    return False


def _is_number(kind: pa.DataType) -> bool:
    # pandas makes float columns of integers with gaps.
    return pat.is_integer(kind) or pat.is_floating(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_binary_view(kind) or pat.is_fixed_size_binary(kind)


def value_error(row: int, field: "Field", what: str, fix: str = "") -> RowError:
    """The error that names row and column."""
    return RowError(
        f"row {row}, column {field.name!r}: {what}", fix=fix or f"Give a value of type {field.type}.", row=row, column=field.name
    )
