"""Options of Spark's readers and writers, whose names have no case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from headgate_tables.errors import OptionError
from headgate_tables.near_names import did_you_mean

STORAGE: Final = "storage."
_T = TypeVar("_T", bound=str)


def in_small_letters(options: Mapping[str, str]) -> dict[str, str]:
    """The options by names in small letters."""
    return {name.lower(): value for name, value in options.items()}


def storage_options(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Settings of the storage, without what their names begin with; and all other options, by names in small letters."""
    lower = in_small_letters(options)
    storage = {name.removeprefix(STORAGE): lower.pop(name) for name in list(lower) if name.startswith(STORAGE)}
    return storage, lower


def given_options(options: Mapping[str, str], names: Sequence[str], others: str = "") -> dict[str, str]:
    """The values by the names as they are written here. ``others``: for the message, what else may be given.

    Raises OptionError for an unknown name.
    """
    known = {name.lower(): name for name in names}
    for name in options:
        if name.lower() not in known:
            raise OptionError(
                f"there is no option {name!r}", fix=f"{did_you_mean(name, names)}There are {', '.join(names)}{others}."
            )
    return {known[name.lower()]: value.strip() for name, value in options.items()}


def table_named(given: Mapping[str, str], fix: str) -> str:
    """The name or address of the table. Raises OptionError where there is none."""
    if not given.get("path"):
        raise OptionError("no table is named", fix=fix)
    return given["path"]


def one_of(name: str, text: str, values: tuple[_T, ...]) -> _T:
    """The value that an option's text is. Raises OptionError for another one."""
    for value in values:
        if text == value:
            return value
    raise OptionError(f"{name}={text!r}", fix=f"Give one of {', '.join(values)}.")
