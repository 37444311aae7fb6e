"""Names that a caller gives as a collection."""

from __future__ import annotations

from collections.abc import Iterable

from headgate_tables.errors import OptionError


def names_in(given: Iterable[str], what: str) -> list[str]:
    """All of them. Raises OptionError for one text, which would count as a list of its characters."""
    if isinstance(given, str):
        raise OptionError(f"{what}={given!r} is one text", fix=f"Pass a list: {what}=[{given!r}].")
    return list(given)
