"""What callers give, checked before it becomes part of a message or of a channel. All raise InvalidArgumentError."""

import math
import operator
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import SupportsIndex, get_args

from headgate.acks import Level
from headgate.errors import InvalidArgumentError

Setting = str | int | float
"""A setting's value; a number or a bool stands for its text."""
Settings = Mapping[str, Setting]

_LEVELS: tuple[Level, ...] = get_args(Level)


def checked_text(given: object, what: str) -> str:
    """``given``, if it is text. ``what``: the argument's name."""
    if not isinstance(given, str):
        raise InvalidArgumentError(f"{what}={given!r:.80} is no text", fix=f"Pass {what} as a str.")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"{what}={given!r:.80} has half a surrogate pair", fix="Pass a str that UTF-8 can hold: Python reads other bytes so."
        ) from None
    return given


def checked_texts(given: object, what: str) -> list[str]:
    """One text or several, as a list; None: none."""
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [checked_text(given, what)]
    return [checked_text(each, what) for each in given]


def checked_integer(given: object, what: str) -> int:
    """``given`` as an int; numpy's integers count as Python's."""
    if type(given) is int:
        return given
    if isinstance(given, bool) or not isinstance(given, SupportsIndex):
        raise InvalidArgumentError(f"{what}={given!r:.80} is no integer", fix=f"Pass {what} as an int.")
    return operator.index(given)


def checked_level(level: object) -> Level:
    """``level``, if it says how safe rows are."""
    for known in _LEVELS:
        if level == known:
            return known
    raise InvalidArgumentError(f"{level!r:.80} is no level", fix=f"Use one of {', '.join(_LEVELS)}.")


def checked_seconds(given: object, what: str = "timeout") -> float:
    """``given``, if it is a number; numpy's count as Python's."""
    if isinstance(given, bool) or not isinstance(given, Real) or math.isnan(given):
        raise InvalidArgumentError(f"{what}={given!r:.80} is no number", fix="Pass a number of seconds.")
    return float(given)


def setting_texts(settings: object) -> dict[str, str]:
    """Settings as texts by name; None: none."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise InvalidArgumentError(f"{settings!r:.80} is no mapping of settings", fix='Pass names and values: {"name": "value"}.')
    return {checked_text(key, "a setting's name"): _setting_text(key, value) for key, value in settings.items()}


def _setting_text(key: object, value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return value
        case int() | float():
            return str(value)
        case _:
            raise InvalidArgumentError(f"{key}={value!r:.80} is no value of a setting", fix="Pass a str, a number or a bool.")
