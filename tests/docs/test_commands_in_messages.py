"""The commands that messages of programs name are there, with the options that messages give them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.pages import ROOT
from support.shown_commands import VALUE, Shown, parse, simple_commands

FOLDERS = ("lib", "coordinator", "writer", "compactor")
QUOTED = re.compile(r"`headgate ([^`]+)`")


def texts_of(path: Path) -> Iterator[str]:
    """Its texts, with a placeholder for each value that is put in; docstrings have them, too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.value


def named() -> dict[str, Shown]:
    found: dict[str, Shown] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for text in texts_of(path):
                for command in QUOTED.findall(text):
                    words = next(simple_commands(command), [])
                    found[command] = Shown(str(path.relative_to(ROOT)), words, whole=False)
    return found


NAMED = named()


@pytest.mark.parametrize("command", NAMED)
def test_the_real_command_line_takes_what_a_message_names(command: str) -> None:
    parse(NAMED[command])


def test_messages_are_read() -> None:
    assert len(NAMED) > 50
    assert "writer --coordinator VALUE" in NAMED
