"""Options of Spark's readers and writers, whose names have no case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headgate_tables.errors import OptionError
from headgate_tables.near_names import did_you_mean

STORAGE: Final = "storage."


def storage_options(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Settings of the storage, without what their names begin with; and all other options, by names in small letters."""
    lower = {name.lower(): value for name, value in options.items()}
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
