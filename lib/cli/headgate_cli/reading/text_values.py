"""Texts become values of a type, a column at a time, and a text that has no equal value of this type is refused."""

import re
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from headgate_cli.reading.options import ReadOptions
from headgate_tables.arrow import pc

Array: TypeAlias = Any
"""A pyarrow Array of a type that is found at run time."""

LOCAL = pa.timestamp("us")
_ZONE = r"(?:[zZ]|[+-]\d{2}(?::?\d{2})?)$"


class MisfitError(Exception):
    """``index``: the first value of the column that does not fit; ``why``: what Arrow says."""

    def __init__(self, index: int, value: str, why: str) -> None:
        super().__init__(value)
        self.index = index
        self.value = value
        self.why = why


def convert(column: Array, kind: pa.DataType, options: ReadOptions) -> Array:
    """``column`` (string) as ``kind``. Raises MisfitError for the first text without an equal value.

    Texts that Arrow takes as they are need one pass; only the rest is trimmed and brought to Arrow's form. In a column of another
    type than text, an empty text in quotes is null.
    """
    if pat.is_string(kind):
        return column
    try:
        return _whole(column, kind, options)
    except pa.ArrowException as error:
        index = _first_misfit(column, kind, options)
        raise MisfitError(index, str(column[index]), str(error).partition("\n")[0]) from error


def fits(column: Array, kind: pa.DataType, options: ReadOptions) -> bool:
    """Whether ``convert`` takes all texts."""
    try:
        _whole(column, kind, options)
    except pa.ArrowException:
        return False
    return True


def _whole(column: Array, kind: pa.DataType, options: ReadOptions) -> Array:
    if is_bytes(kind):
        return _bytes(column, options.binary).cast(kind)
    if _has_arrows_form(kind, options):
        try:
            return _exact(column, kind)
        except pa.ArrowException:
            pass  # the general way decides
    return _general(column, kind, options)


def _has_arrows_form(kind: pa.DataType, options: ReadOptions) -> bool:
    numeric = options.decimal == "." and not options.thousands
    return (
        (numeric or not is_number(kind))
        and not (pat.is_date(kind) and options.date_format)
        and not (pat.is_timestamp(kind) and options.timestamp_format)
        and not (pat.is_boolean(kind) and (options.true_words or options.false_words))
    )


def _exact(column: Array, kind: pa.DataType) -> Array:
    values: Array = column.cast(kind)
    if pat.is_floating(kind):
        grown = pc.and_(pc.is_inf(values), pc.invert(pc.match_substring(column, "inf", ignore_case=True)))
        if pc.any(grown).as_py():
            raise pa.ArrowInvalid(f"too large for {kind}")
    return values


def _general(column: Array, kind: pa.DataType, options: ReadOptions) -> Array:
    texts = trimmed(column)
    if pat.is_nested(kind):
        return _without_values(texts, kind)
    if is_number(kind):
        return _exact(numbers(texts, kind, options), kind)
    if pat.is_boolean(kind):
        return _exact(_truth(texts, options), kind)
    if pat.is_date(kind):
        texts = pc.replace_substring_regex(texts, r"[T ]00:00(?::00(?:\.0+)?)?$", "")
        return _parsed(texts, options.date_format).cast(kind) if options.date_format else _exact(iso(texts), kind)
    if pat.is_timestamp(kind):
        return _times(texts, kind, options)
    return _exact(texts, kind)


def _without_values(texts: Array, kind: pa.DataType) -> Array:
    """Nulls, of a type that no text has values of."""
    if texts.null_count < len(texts):
        raise pa.ArrowInvalid("a text is neither a list nor a struct")
    return pa.array([None] * len(texts), kind)


def is_bytes(kind: pa.DataType) -> bool:
    """Whether ``kind`` is binary, of any or of a fixed size."""
    return pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind)


def _bytes(texts: Array, form: str) -> Array:
    """Bytes of texts (``form``: hex or utf-8). An empty text has none in both; without ``form``, others are refused."""
    if form == "hex":
        return _from_hexadecimal(texts)
    if not form and pc.any(pc.not_equal(texts, "")).as_py():
        raise pa.ArrowInvalid("may be hexadecimal, or a text whose own bytes count")
    return texts.cast(pa.binary())


def _from_hexadecimal(texts: Array) -> Array:
    if pc.all(pc.match_substring_regex(texts, r"^(?:[0-9a-fA-F]{2})*$")).as_py() is False:
        raise pa.ArrowInvalid("not hexadecimal")
    digits = pc.fill_null(texts, "").cast(pa.large_string())
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(digits)], pa.int64()), digits)
    data = bytes.fromhex(pc.binary_join(whole, pa.scalar("", pa.large_string()))[0].as_py())
    ends = pc.cumulative_sum(pc.divide(pc.binary_length(digits), 2))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    found = pa.Array.from_buffers(pa.large_binary(), len(digits), [None, offsets.buffers()[1], pa.py_buffer(data)])
    return pc.if_else(texts.is_valid(), found, pa.scalar(None, pa.large_binary()))


def is_number(kind: pa.DataType) -> bool:
    """Whether ``kind`` is an integer, a float or a decimal."""
    return pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind)


def trimmed(column: Array) -> Array:
    """Texts without the spaces around them; null for empty ones."""
    texts = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def numbers(texts: Array, kind: pa.DataType, options: ReadOptions) -> Array:
    """Texts of numbers as Arrow reads them. What has the wrong marks keeps or gets one that no number has."""
    if options.thousands:
        mark = re.escape(options.thousands)
        grouped = pc.match_substring_regex(texts, rf"^[+-]?\d{{1,3}}(?:{mark}\d{{3}})+(?:[^\d{mark}]\d*)?$")
        texts = pc.if_else(grouped, pc.replace_substring(texts, options.thousands, ""), texts)
    if options.decimal != ".":
        texts = pc.replace_substring(texts, ".", "?")  # else 1.500 would be read as 1.5
        texts = pc.replace_substring(texts, options.decimal, ".")
    if pat.is_integer(kind):
        texts = pc.replace_substring_regex(texts, r"\.0*$", "")
    return pc.replace_substring_regex(texts, r"^\+", "")


def _truth(texts: Array, options: ReadOptions) -> Array:
    lower = pc.utf8_lower(texts)
    for words, value in ((options.true_words, "true"), (options.false_words, "false")):
        same = pc.is_in(lower, value_set=pa.array([word.lower() for word in words], pa.string()))
        lower = pc.if_else(same, pa.scalar(value), lower)
    return lower


def iso(texts: Array) -> Array:
    """Dates with dots (day first) and with slashes after the year in ISO's form, alone or before a time."""
    texts = pc.replace_substring_regex(texts, r"^(\d{4})/(\d{1,2})/(\d{1,2})\b", r"\1-\2-\3")
    texts = pc.replace_substring_regex(texts, r"^(\d{1,2})\.(\d{1,2})\.(\d{4})\b", r"\3-\2-\1")
    texts = pc.replace_substring_regex(texts, r"^(\d{4})-(\d)-", r"\1-0\2-")
    return pc.replace_substring_regex(texts, r"^(\d{4})-(\d{2})-(\d)\b", r"\1-\2-0\3")


def clock(texts: Array) -> Array:
    """Times in ISO's form: a zone without a space before it, Z for UTC, and no zeros behind the microseconds."""
    texts = pc.replace_substring_regex(iso(texts), r"\s*(?:UTC|GMT)$", "Z")
    texts = pc.replace_substring_regex(texts, r"(\d)\s+([+-]\d{2}:?\d{2})$", r"\1\2")
    return pc.replace_substring_regex(texts, r"(\.\d{6})0+", r"\1")


def has_zone(texts: Array) -> Array:
    """Which of ``clock``'s texts name a zone. A date alone has none, although it ends like one."""
    return pc.match_substring_regex(texts, r":\d{2}(?:\.\d+)?" + _ZONE)


def _times(texts: Array, kind: Any, options: ReadOptions) -> Array:
    if options.timestamp_format:
        local = _parsed(texts, options.timestamp_format)
        return local.cast(kind) if kind.tz is None else _in_zone(local, kind, options)
    texts = clock(texts)
    if kind.tz is None or not options.timezone:
        return _exact(texts, kind)
    zoned = has_zone(texts)
    nothing = pa.scalar(None, pa.string())
    local = pc.if_else(zoned, nothing, texts).cast(pa.timestamp(kind.unit))
    return pc.coalesce(pc.if_else(zoned, texts, nothing).cast(kind), _in_zone(local, kind, options))


def _in_zone(local: Array, kind: Any, options: ReadOptions) -> Array:
    if not options.timezone and local.null_count < len(local):
        raise pa.ArrowInvalid("it has no time zone")
    return pc.assume_timezone(local, options.timezone or "UTC").cast(kind)


def _parsed(texts: Array, form: str) -> Array:
    """Times of strptime. A year of two digits read as %Y, which strptime takes for one of the first century, is refused."""
    found = pc.strptime(texts, format=form, unit="us")
    if pc.any(pc.less(pc.year(found), 1000)).as_py():
        raise pa.ArrowInvalid("the year has not four digits (%y reads two)")
    return found


def _first_misfit(column: Array, kind: pa.DataType, options: ReadOptions) -> int:
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _whole(column.slice(low, middle - low), kind, options)
            low = middle
        except pa.ArrowException:
            high = middle
    return low
