"""The values of a condition in SQL, in the types of the columns that they are compared with."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa


def typed(text: str, kind: pa.DataType, *, is_text: bool) -> pa.Scalar[Any] | None:
    """``text`` as a value to compare with a column of ``kind``; None when it is none. ``is_text``: it stood in quotes.

    Of ``kind`` where that loses nothing; a number that a column of integers or decimals cannot hold stays a decimal of its own. A
    time without a zone is UTC where the column has a zone.
    """
    if pa.types.is_boolean(kind):
        return pa.scalar(text == "true", kind) if text in ("true", "false") and not is_text else None
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return _number(text, kind)
    if not is_text:
        return None
    if pa.types.is_string(kind):
        return pa.scalar(text, kind)
    if pa.types.is_timestamp(kind):
        return _time(text, kind)
    return _cast(text, kind) if pa.types.is_date(kind) else None


def _number(text: str, kind: pa.DataType) -> pa.Scalar[Any] | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if pa.types.is_floating(kind):
        return None if number.is_snan() else pa.scalar(float(number), kind)
    if not number.is_finite() or abs(number.adjusted()) > 37:
        return None
    own = _cast(format(number, "f"), kind) if pa.types.is_decimal(kind) else _whole(number, kind)
    if own is not None:
        return own
    try:
        return pa.scalar(Decimal(format(number, "f")))
    except pa.ArrowException:
        return None


def _whole(number: Decimal, kind: pa.DataType) -> pa.Scalar[Any] | None:
    if number != number.to_integral_value():
        return None
    try:
        return pa.scalar(int(number), kind)
    except (pa.ArrowException, OverflowError):
        return None


def _time(text: str, kind: pa.TimestampType[Any, Any]) -> pa.Scalar[Any] | None:
    text = text.strip()
    text = f"{text.removesuffix('UTC').rstrip()}Z" if text.endswith("UTC") else text
    own = _cast(text, kind)
    if own is not None or kind.tz is None:
        return own
    local = _cast(text, pa.timestamp(kind.unit))
    return None if local is None else pa.scalar(local.cast(pa.int64()).as_py(), kind)


def _cast(text: str, kind: pa.DataType) -> pa.Scalar[Any] | None:
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowException:
        return None
