"""The mutants: `*.toml` beside this file, one for each part of the code. A mutant replaces one piece of text of one file.

`name` says what goes wrong, `old` stands exactly once in `file`, `tests` are the ones that guard it, and `explained` says why no
test can tell the mutant from the right code, where that is so.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

FOLDER = Path(__file__).parent


class StaleError(Exception):
    """The text that a mutant replaces is not there, or there twice: the code has changed, and the mutant has to follow."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """``part``: the name of its file in the catalog. ``tests``: what pytest is given, from the root of the repository."""

    part: str
    name: str
    file: str
    old: str
    new: str
    tests: Sequence[str]
    explained: str = ""

    def __str__(self) -> str:
        return f"{self.part}: {self.name}"

    def applied_to(self, source: str) -> str:
        """The file's text with the mistake in it. Raises StaleError."""
        if source.count(self.old) != 1:
            raise StaleError(f"{self}: the text to replace is {source.count(self.old)} times in {self.file}")
        return source.replace(self.old, self.new)


def catalog(pattern: str = "*") -> list[Mutant]:
    """All whose part or name is like ``pattern``, by part and in the order of its file."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            mutant = Mutant(path.stem, **entry)
            if fnmatch(mutant.part, pattern) or fnmatch(mutant.name, pattern):
                found.append(mutant)
    return found
