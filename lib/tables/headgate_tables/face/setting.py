"""One setting of a table: its key, how its text is read, and what it is about."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | float | bool
"""Of a setting. One that has a smallest is a number."""


@dataclass(frozen=True, slots=True)
class Setting:
    """``key``: Hudi's, or ours under ``headgate.``. ``read`` turns text into the value; ``least``: the smallest sensible one;
    ``most``: the largest one that a float may be set to.
    """

    key: str
    read: Callable[[str], Value]
    about: str
    least: float | None = None
    most: float = math.inf


def flag(text: str) -> bool:
    """Reads true or false. Raises KeyError."""
    return {"true": True, "false": False}[text.strip().lower()]


def choice(*names: str) -> Callable[[str], str]:
    """Reads one of the names; what it returns raises KeyError for any other."""
    return {name: name for name in names}.__getitem__
