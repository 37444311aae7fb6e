"""Cases of files that `headgate load` reads or refuses."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class Read(NamedTuple):
    """A file, what is said of it, and the types and rows that it has."""

    file: str | bytes
    options: dict[str, Any]
    types: str
    rows: Sequence[object]


class Refused(NamedTuple):
    """A file, what is said of it, words of the error, and the option or the step that it names."""

    file: str | bytes
    options: dict[str, Any]
    words: str
    fix: str
