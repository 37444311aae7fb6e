"""Names that a caller gives as a collection."""

from __future__ import annotations

from collections.abc import Iterable

from headgate_tables.errors import OptionError


def names_in(given: object, what: str) -> list[str]:
    """All of them. Raises OptionError for one text, which would count as a list of its characters, and for what is no text."""
    if isinstance(given, str):
        raise OptionError(f"{what}={given!r} is one text", fix=f"Pass a list: {what}=[{given!r}].")
    names: list[str] = []
    for each in given if isinstance(given, Iterable) else [given]:
        if not isinstance(each, str):
            raise OptionError(f"{what} has {each!r}, which is no name", fix="Pass each name as a text, such as 'city'.")
        names.append(each)
    return names
