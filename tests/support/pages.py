"""Markdown pages as readers have them: their blocks, to copy, and what they quote."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """What stands between lines of three backticks. ``language``: the word behind the first ones, or ""."""

    page: str
    line: int
    language: str
    text: str


def pages() -> list[str]:
    """Every page for people who use or change this, from the root. The log of changes names what is gone, so it is none."""
    found = [path for where in (".", "docs", "lib", "examples") for path in _pages_in(ROOT / where, deep=where != ".")]
    return sorted(str(path.relative_to(ROOT)) for path in found if path.name != "CHANGELOG.md")


def _pages_in(folder: Path, *, deep: bool) -> Iterator[Path]:
    return folder.rglob("*.md") if deep else folder.glob("*.md")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in their order."""
    text = text_of(page)
    return [Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2]) for found in _FENCE.finditer(text)]


def fenced(page: str, language: str = "") -> list[str]:
    """The texts of a page's blocks of this language, or of none."""
    return [block.text for block in blocks(page) if block.language == language]


def quoted(page: str) -> list[str]:
    """What stands between single backticks, in the text and in tables."""
    return re.findall(r"`([^`\n]+)`", _FENCE.sub("", text_of(page)))


def cells_of(notebook: str) -> list[str]:
    """The code of a notebook in ``examples/``, cell by cell."""
    content = json.loads((ROOT / "examples" / notebook).read_text(encoding="utf-8"))
    assert (content["nbformat"], [cell for cell in content["cells"] if cell.get("outputs")]) == (4, []), "kept without outputs"
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]
