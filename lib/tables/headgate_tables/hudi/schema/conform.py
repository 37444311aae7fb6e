"""Converts rows of other schemas to the table's: those of older files, and those of callers.

Columns and struct fields go by name, lists and maps by shape (so Spark's two-level lists, whose child is called
``array``, fit), missing nullable ones become null. Whole columns at a time; a column that fits already is not touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.arrow import Array, ChunkedArray, Field, pc
from headgate_tables.errors import SchemaError, UnsupportedTableError
from headgate_tables.hudi.schema.required import without_forbidden_nulls
from headgate_tables.near_names import did_you_mean

_LISTS: Final = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)

Allowed = Callable[[pa.DataType, pa.DataType], bool]


class _MisfitError(Exception):
    """Internal: ``path`` cannot be converted to the wanted type."""

    def __init__(self, path: str, how: str) -> None:
        super().__init__(path, how)
        self.path = path
        self.how = how


def conform(rows: pa.Table, target: pa.Schema, where: str, as_text: Collection[str] = ()) -> pa.Table:
    """Rows read from a file, in the order, names and types of ``target``; other columns of ``rows`` are dropped.
    ``as_text``: columns whose integers become text if ``target`` has text.

    Promotions as Hudi's writers allow them: int to long, float, double; long to float, double; float to double; string
    and bytes into each other, bytes to bytes of a fixed size; a decimal of more digits; timestamps to another unit or zone
    of the same instant.
    Raises UnsupportedTableError, with ``where`` in its message, for any other change of type.
    """
    try:
        return _conform(_written_out(rows, target, as_text), target, _promotes)
    except (_MisfitError, pa.ArrowInvalid) as error:
        how = f"column {error.path!r} {error.how}" if isinstance(error, _MisfitError) else str(error)
        raise UnsupportedTableError(f"{where}: {how}", fix="Read this table with the program that changed its schema.") from error


def _written_out(rows: pa.Table, target: pa.Schema, names: Collection[str]) -> pa.Table:
    for name in names:
        at = rows.schema.get_field_index(name)
        if at >= 0 and name in target.names and pat.is_string(target.field(name).type) and pat.is_integer(rows.schema.types[at]):
            rows = rows.set_column(at, name, pc.cast(rows.column(at), pa.string()))
    return rows


def stored_rows(
    rows: pa.Table, target: pa.Schema, deletes: pa.BooleanArray | None = None, needed: Collection[str] = ()
) -> pa.Table:
    """A caller's rows as the table stores them; ``target`` is a schema made by ``canonical.table_schema``.

    Rows that are ``deletes`` (bool[n]) have values in the columns ``needed`` only; their other columns become null.
    Raises SchemaError for a column that is missing (nullable ones too: a forgotten column would erase values), that the
    table lacks (at any depth of structs), whose values do not store as the table's without loss, or that holds null where the
    table forbids it.
    """
    _check_names(rows.column_names, target.names)
    if not rows.schema.equals(target):
        for field in target:
            _check_fields(rows.schema.field(field.name).type, field.type, field.name)
    try:
        stored = _conform(rows, target, _stores_as)
    except _MisfitError as error:
        raise SchemaError(f"Column {error.path!r} {error.how}", fix="Cast the column before writing.") from error
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"A value does not fit its column: {error}", fix="Correct the value, or use a wider type when creating the table."
        ) from error
    return without_forbidden_nulls(stored) if deletes is None else _without_deleted_values(stored, deletes, needed)


def _check_names(given: Sequence[str], wanted: Sequence[str], struct: str = "") -> None:
    """Raises SchemaError for names of columns, or of fields of this ``struct``, that are not the table's, each once. A field may
    be missing, and is null: a producer may have begun before the table got it (rule C7).
    """
    if given == wanted or (len(given) == len(wanted) and set(given) == set(wanted)):
        return
    counts, known = Counter(given), set(wanted)
    unknown = [name for name in given if name not in known]
    problems = {
        "missing": [name for name in wanted if name not in counts and not struct],
        "unknown": unknown,
        "more than once": sorted(name for name, count in counts.items() if count > 1),
    }
    found = "; ".join(f"{what}: {', '.join(names)}" for what, names in problems.items() if names)
    if found and not struct:
        raise SchemaError(f"The columns are not the table's ({found})", fix=f"Send exactly these: {', '.join(wanted)}.")
    if found:
        near = did_you_mean(unknown[0], wanted) if unknown else ""
        raise SchemaError(f"The fields of {struct} are not the table's ({found})", fix=f"{near}It has {', '.join(wanted)}.")


def _check_fields(given: pa.DataType, wanted: pa.DataType, path: str) -> None:
    """Raises SchemaError for a field of a struct that the table's has not: its values would be gone."""
    if isinstance(given, pa.BaseExtensionType):
        given = given.storage_type
    if isinstance(given, pa.DictionaryType):
        given = given.value_type
    if isinstance(given, pa.StructType) and isinstance(wanted, pa.StructType):
        _check_names([field.name for field in given], [field.name for field in wanted], path)
        for field in given:
            _check_fields(field.type, wanted.field(field.name).type, f"{path}.{field.name}")
    elif isinstance(given, pa.MapType) and isinstance(wanted, pa.MapType):
        _check_fields(given.key_type, wanted.key_type, f"{path}.key")
        _check_fields(given.item_type, wanted.item_type, f"{path}.value")
    elif isinstance(wanted, pa.ListType) and isinstance(given, _LISTS):
        _check_fields(given.value_type, wanted.value_type, f"{path}.element")


def _without_deleted_values(rows: pa.Table, deletes: pa.BooleanArray, needed: Collection[str]) -> pa.Table:
    shown = ~deletes.to_numpy(zero_copy_only=False)
    columns: list[ChunkedArray] = []
    for at, field in enumerate(rows.schema):
        column = rows.select([at])
        if field.name in needed:
            columns.append(without_forbidden_nulls(column).column(0))
        else:
            values = without_forbidden_nulls(column, shown).column(0)
            columns.append(pc.if_else(deletes, pa.scalar(None, field.type), values))
    return pa.table(columns, schema=rows.schema)


def _conform(rows: pa.Table, target: pa.Schema, allowed: Allowed) -> pa.Table:
    if rows.schema.equals(target, check_metadata=True):
        return rows
    columns = [_column(rows, field, allowed) for field in target]
    return pa.table(columns, schema=target)


def _column(rows: pa.Table, field: Field, allowed: Allowed) -> ChunkedArray:
    at = rows.schema.get_field_index(field.name)
    if at < 0:
        _require_nullable(field, field.name)
        return pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
    column = rows.column(at)
    if column.type == field.type:
        return column
    return pa.chunked_array([_array(chunk, field.type, field.name, allowed) for chunk in column.chunks], type=field.type)


def _array(array: Array, target: pa.DataType, path: str, allowed: Allowed) -> Array:
    source = array.type
    if source == target:
        return array
    if isinstance(array, pa.ExtensionArray):
        return _array(array.storage, target, path, allowed)
    if isinstance(array, pa.DictionaryArray):
        return _array(_decoded(array), target, path, allowed)
    if isinstance(target, pa.StructType) and isinstance(array, pa.StructArray):
        return _struct(array, target, path, allowed)
    if isinstance(target, pa.MapType) and isinstance(array, pa.MapArray):
        entries = pa.StructArray.from_arrays(
            [
                _array(array.keys, target.key_type, f"{path}.key", allowed),
                _array(array.items, target.item_type, f"{path}.value", allowed),
            ],
            fields=[target.key_field, target.item_field],
        )
        return _with_children(array, target, entries)
    if isinstance(target, pa.ListType):
        array = _plain_list(array)
        if isinstance(array, pa.ListArray):
            return _with_children(array, target, _array(array.values, target.value_type, f"{path}.element", allowed))
    if not allowed(source, target):
        raise _MisfitError(path, f"is {source} and cannot become {target}")
    # Hudi promotes integers to floating point as Java does, with rounding; a checked cast would fail beyond 2**53.
    fitted: Array = pc.cast(array, target, safe=not (pat.is_integer(source) and pat.is_floating(target)))
    return fitted


def _struct(array: pa.StructArray, target: pa.StructType, path: str, allowed: Allowed) -> Array:
    source = array.type
    children: list[Array] = []
    fields = [target.field(i) for i in range(target.num_fields)]
    for field in fields:
        at = source.get_field_index(field.name)
        if at < 0:
            _require_nullable(field, f"{path}.{field.name}")
            children.append(pa.nulls(len(array), field.type))
        else:
            children.append(_array(array.field(at), field.type, f"{path}.{field.name}", allowed))
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


_VIEWS = {pa.string_view().id: pa.string(), pa.binary_view().id: pa.binary()}
"""As polars has its categories; Arrow 26 takes nothing from views."""


def _decoded(array: Array) -> Array:
    """The values of a dictionary; any other array unchanged.

    Under a null struct an index may point past the dictionary; what stands there does not matter.
    """
    if not isinstance(array, pa.DictionaryArray):
        return array
    values, indices = array.dictionary, array.indices
    if (kind := _VIEWS.get(values.type.id)) is not None:
        values = values.cast(kind)
    inside: pa.BooleanArray = pc.less(indices, len(values))
    if pc.all(inside).as_py() is False:
        indices = pc.if_else(inside, indices, pa.scalar(None, indices.type))
    return values.take(indices)


def _plain_list(array: Array) -> Array:
    """Lists of any layout with 32-bit offsets; any other array unchanged.

    Not a cast: Arrow 26 makes empty or damaged lists of views, and checks nulls of parts that nothing shows
    (test_odd_arrow.py).
    """
    if not isinstance(array, pa.LargeListArray | pa.FixedSizeListArray | pa.ListViewArray | pa.LargeListViewArray):
        return array
    lengths: Array = pc.fill_null(pc.list_value_length(array), 0)
    ends = pc.cumulative_sum_checked(lengths.cast(pa.int64())).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    known = pa.array(offsets.to_numpy())  # without a bitmap: before Arrow 24, one whose nulls nobody has counted yet is refused
    return pa.ListArray.from_arrays(known, array.flatten(), type=pa.list_(array.type.value_field), mask=array.is_null())


def _with_children(array: Array, target: pa.DataType, children: Array) -> Array:
    """The same offsets and validity over other values (``values`` of a sliced list are the whole list's)."""
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], offset=array.offset, children=[children])


def _require_nullable(field: Field, path: str) -> None:
    if not field.nullable:
        raise _MisfitError(path, "is missing, and the table does not allow null in it")


def _promotes(source: pa.DataType, target: pa.DataType) -> bool:
    if pat.is_integer(source):
        return pat.is_signed_integer(source) and (
            _wider_integer(source, target) or pat.is_float32(target) or pat.is_float64(target)
        )
    if pat.is_timestamp(source):
        return pat.is_timestamp(target)
    if pat.is_decimal(source):
        return (
            pat.is_decimal(target)
            and target.scale >= source.scale
            and target.precision - target.scale >= source.precision - source.scale
        )
    if pat.is_float32(source):
        return pat.is_float64(target)
    # Spark, which has no binary of fixed size, compacts such a column to plain binary.
    return _is_text(source) and (_is_text(target) or pat.is_fixed_size_binary(target))


def _stores_as(source: pa.DataType, target: pa.DataType) -> bool:
    """Widening that loses nothing, and the other Arrow forms of the same values."""
    if pat.is_null(source) or _wider_integer(source, target):
        return True
    if pat.is_signed_integer(source):  # a double holds every integer of 32 bits, which a column of before its widening sends
        return pat.is_float64(target) and source.bit_width <= 32
    if pat.is_time(source):
        return target == (pa.int32() if pat.is_time32(source) and source.unit == "ms" else pa.int64()) and source.unit in (
            "ms",
            "us",
        )
    if pat.is_timestamp(source):
        return pat.is_timestamp(target)  # the cast refuses a value that would lose digits
    if pat.is_date(source):
        return pat.is_date32(target)
    if pat.is_decimal(source):
        return (
            pat.is_decimal(target)
            and target.scale >= source.scale
            and target.precision - target.scale >= source.precision - source.scale
        )
    if pat.is_floating(source):
        return pat.is_float64(target)
    if _is_string(source):
        return pat.is_string(target)
    return _is_text(source) and (pat.is_binary(target) or pat.is_fixed_size_binary(target))


def _wider_integer(source: pa.DataType, target: pa.DataType) -> bool:
    return pat.is_signed_integer(source) and target in (pa.int32(), pa.int64()) and source.bit_width < target.bit_width


def _is_string(kind: pa.DataType) -> bool:
    return pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind)


def _is_text(kind: pa.DataType) -> bool:
    return _is_string(kind) or pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_binary_view(kind)
