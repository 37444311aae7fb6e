"""A name that somebody probably meant, for messages."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The beginning of a fix, with a space at its end: the known name that is nearest; empty if none is near.

    >>> did_you_mean("Prise", ["id", "price"])
    "Did you mean 'price'? "
    >>> did_you_mean("gate", ["id", "price"])
    ''
    """
    by_folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.75)
    return f"Did you mean {by_folded[near[0]]!r}? " if near else ""
