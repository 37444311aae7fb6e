"""Docstrings as Markdown: an example behind two colons becomes a block of Python."""

import re
import textwrap
from typing import Any

import griffe

_EXAMPLE = re.compile(r"::\n\n((?:(?: {4}.*)?(?:\n|\Z))+)")
_TREE = re.compile(r"(?:^.*[├└│].*\n?)+", re.MULTILINE)
_INTERPRETED = re.compile(r"``([^`\n]+)``")


class Markdown(griffe.Extension):  # type: ignore[misc] # griffe is in .venv-docs alone
    """Changes what griffe has read, before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    text = _EXAMPLE.sub(lambda found: f":\n\n```python\n{textwrap.dedent(found[1]).strip()}\n```\n\n", text + "\n")
    text = _TREE.sub(lambda found: f"\n```text\n{found[0].rstrip()}\n```\n", text)
    return _INTERPRETED.sub(r"`\1`", text)
