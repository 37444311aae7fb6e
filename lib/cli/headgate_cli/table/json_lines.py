"""Rows as JSON lines, column by column: nothing here goes over the rows in Python."""

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headgate_tables.arrow import Array, Scalar, buffer_bytes, pc

_TEXT = pa.large_string()
_ESCAPES = {code: json.dumps(chr(code))[1:-1] for code in (ord("\\"), ord('"'), *range(32))}
"""What stands in JSON for a character. The backslash is first: what stands for the others begins with one."""
_HEXADECIMAL = pa.Array.from_buffers(pa.uint16(), 256, [None, pa.py_buffer(bytes(range(256)).hex().encode())])
"""The two digits of each byte."""
_PLACES_WITHOUT_EXPONENT = 6
_ZEROS: dict[str, list[str]] = {"s": [], "ms": [".000"], "us": ["000", ".000"], "ns": ["000", "000", ".000"]}


def json_lines(batch: pa.RecordBatch) -> bytes:
    """One JSON object a row. Decimals and times are text, binary values hexadecimal, NaN and infinity null: JSON lacks them."""
    _, lines = _flat(_objects(batch.schema.names, batch.columns, batch.num_rows, end="}\n"))
    return bytes(lines)


def _objects(names: Sequence[str], columns: Sequence[Array], count: int, end: str) -> Array:
    """As many objects, none of them null. The quotes of a column without nulls come with the names beside it."""
    parts: list[Array | Scalar] = [pa.repeat("{", count).cast(_TEXT)]
    between = ""
    for name, column in zip(names, columns, strict=True):
        opening, closing = _quotes(column.type)
        texts = _unquoted(column)
        if texts.null_count:
            opening, closing, texts = "", "", _quoted(texts, column.type)
        parts += [_text(f"{between}{json.dumps(name, ensure_ascii=False)}:{opening}"), texts]
        between = f"{closing},"
    return _join(*parts, _text(between.removesuffix(",") + end), nulls="replace")


def _values(column: Array) -> Array:
    """JSON values; null where the column has null, NaN or infinity."""
    return _quoted(_unquoted(column), column.type)


def _quoted(texts: Array, kind: pa.DataType) -> Array:
    """Takes a pass over the texts."""
    opening, closing = _quotes(kind)
    return _join(_text(opening), texts, _text(closing)) if opening else texts


def _quotes(kind: pa.DataType) -> tuple[str, str]:
    """What stands before and behind an unquoted value of the type."""
    if isinstance(kind, pa.DictionaryType):
        return _quotes(kind.value_type)
    if isinstance(kind, pa.TimestampType) and kind.tz:
        return '"', '+00:00"'
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return ("", "") if number or pa.types.is_nested(kind) else ('"', '"')


def _unquoted(column: Array) -> Array:
    kind, made = column.type, column
    if isinstance(column, pa.DictionaryArray):
        # Below a null struct the indices of an empty dictionary may be any.
        made = pc.take(_unquoted(column.dictionary), column.indices) if len(column.dictionary) else pa.nulls(len(column), _TEXT)
    elif pa.types.is_nested(kind):
        made = _where_valid(_nested(column), column)
    elif pa.types.is_floating(kind):
        made = _floats(column)
    elif pa.types.is_decimal(kind):
        made = _decimals(column)
    elif pa.types.is_timestamp(kind):
        made = _timestamps(column)
    elif pa.types.is_time(kind):
        made = _short_fractions(pc.cast(column, _TEXT), kind.unit)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        made = _escaped(pc.cast(column, _TEXT))
    elif is_binary(kind):
        made = _where_valid(_hexadecimal(pc.cast(column, pa.large_binary())), column)
    else:
        made = pc.cast(column, _TEXT)
    return made


def is_binary(kind: pa.DataType) -> bool:
    """Of any of Arrow's kinds of bytes."""
    some = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(is_it(kind) for is_it in some)


# --- kinds of values: anything may stand for a null ---


def _nested(column: Array) -> Array:
    kind = column.type
    if isinstance(column, pa.StructArray):
        members = [column.field(position) for position in range(kind.num_fields)]
        return _objects([kind.field(position).name for position in range(kind.num_fields)], members, len(column), end="}")
    if isinstance(column, pa.MapArray):
        entries = _entries(column)
        keys, values = pc.list_flatten(entries).flatten()
        pairs = _join(_values(keys), _text(":"), _values(values), nulls="replace")
        return _grouped("{", pairs, "}", pc.list_value_length(entries))
    items = pc.fill_null(_values(pc.list_flatten(column)), "null")
    return _grouped("[", items, "]", pc.list_value_length(column))


def _entries(column: "pa.MapArray[Any, Any]") -> Array:
    """As lists of structs. Arrow's cast refuses the nulls that a null list of a fixed size has below it."""
    pairs = pa.StructArray.from_arrays([column.keys, column.items], names=["key", "value"])
    buffers = column.buffers()[:2]
    made: Array = pa.Array.from_buffers(pa.list_(pairs.type), len(column), buffers, offset=column.offset, children=[pairs])
    return made


def _grouped(opening: str, items: Array, closing: str, lengths: Array) -> Array:
    """The items in groups, with commas: as many in each as its length says, none where that is null."""
    ends = pc.cumulative_sum(pc.cast(pc.fill_null(lengths, 0), pa.int64()))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    groups = pc.binary_join(pa.LargeListArray.from_arrays(offsets, items), _text(","))
    return _join(_text(opening), groups, _text(closing))


def _floats(column: Array) -> Array:
    """The shortest digits that give the value again. Arrow's have no point where the value is whole and below 10**10."""
    texts = pc.if_else(pc.is_finite(column), pc.cast(column, _TEXT), pa.scalar(None, _TEXT))
    whole = pc.equal(pc.trunc(column), column)
    return _changed(texts, whole, lambda some: pc.if_else(pc.match_substring(some, "e"), some, _join(some, _text(".0"))))


def _decimals(column: Array) -> Array:
    """All digits, and no exponent, which Arrow gives to small values of many places."""
    kind = column.type
    texts: Array = pc.cast(column, _TEXT)
    if kind.scale <= _PLACES_WITHOUT_EXPONENT:
        return texts
    wide = pc.cast(column, pa.decimal256(76, kind.scale))
    whole = pa.Array.from_buffers(pa.decimal256(76, 0), len(wide), wide.buffers(), offset=wide.offset)
    digits = pc.utf8_lpad(pc.cast(pc.abs(whole), _TEXT), kind.scale + 1, "0")
    signs = pc.if_else(pc.less(whole, 0), _text("-"), _text(""))
    return _join(signs, pc.utf8_replace_slice(digits, -kind.scale, -kind.scale, "."))


def _timestamps(column: Array) -> Array:
    """In UTC where the type has a zone: what ``_quotes`` puts behind says so."""
    kind = column.type
    if not kind.tz:
        return _short_fractions(pc.cast(column, _TEXT), kind.unit)
    texts = pc.cast(pc.cast(column, pa.timestamp(kind.unit)), _TEXT)  # with the zone Arrow takes 25 times longer
    return _short_fractions(pc.replace_substring(texts, " ", "T"), kind.unit)


def _short_fractions(texts: Array, unit: str) -> Array:
    """Times with 0, 3, 6 or 9 digits of a second, the fewest that hold it."""
    for zeros in _ZEROS[unit]:
        cut = functools.partial(pc.utf8_slice_codeunits, start=0, stop=-len(zeros))
        texts = _changed(texts, pc.ends_with(texts, zeros), cut)
    return texts


def _escaped(texts: Array) -> Array:
    _, data = _flat(texts)
    found = set(pc.unique(_bytes(data)).to_pylist())
    for code, escape in _ESCAPES.items():
        if code in found:
            texts = pc.replace_substring(texts, chr(code), escape)
    return texts


def _hexadecimal(column: Array) -> Array:
    """Two digits a byte, at twice the offsets; a null is an empty text."""
    offsets, data = _flat(column)
    digits = pc.take(_HEXADECIMAL, _bytes(data)).buffers()[1]
    doubled = pc.multiply(pc.subtract(offsets, offsets[0]), 2)
    return pa.LargeStringArray.from_buffers(len(column), doubled.buffers()[1], digits)


# --- parts of arrays ---


def _text(text: str) -> Scalar:
    return pa.scalar(text, _TEXT)


def _join(*parts: Array | Scalar, nulls: str = "emit_null") -> Array:
    joined: Array = pc.binary_join_element_wise(*parts, _text(""), null_handling=nulls, null_replacement="null")
    return joined


def _where_valid(texts: Array, column: Array) -> Array:
    made: Array = pc.if_else(column.is_valid(), texts, pa.scalar(None, _TEXT)) if column.null_count else texts
    return made


def _changed(texts: Array, which: Array, change: Callable[[Array], Array]) -> Array:
    """Only those texts are made anew: most often they are few, or none."""
    made: Array = pc.replace_with_mask(texts, which, change(texts.filter(which))) if pc.any(which).as_py() else texts
    return made


def _flat(texts: Array) -> tuple[Array, memoryview]:
    """The offsets, which are large ones, and the bytes from the first of them to the last."""
    offsets: Array = pa.Array.from_buffers(pa.int64(), len(texts) + 1, [None, texts.buffers()[1]], offset=texts.offset)
    return offsets, buffer_bytes(texts, 2)[offsets[0].as_py() : offsets[-1].as_py()]


def _bytes(data: memoryview) -> Array:
    made: Array = pa.Array.from_buffers(pa.uint8(), len(data), [None, pa.py_buffer(data)])
    return made
