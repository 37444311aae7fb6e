"""Examples of Markdown pages, as readers copy them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def fenced(page: str, language: str = "") -> list[str]:
    """The blocks of a page between lines of three backticks, of those that name this language, or none."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def quoted(page: str) -> list[str]:
    """What stands between single backticks, in the text and in tables."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", text)
