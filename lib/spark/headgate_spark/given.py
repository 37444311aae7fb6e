"""Options of Spark's readers and writers, whose names have no case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate_tables.errors import OptionError
from headgate_tables.near_names import did_you_mean


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
