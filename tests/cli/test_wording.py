"""Errors of the libraries, as commands print them, speak of options and commands, never of Python calls."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate_cli.wording import for_command_line

ROOT = Path(__file__).parents[2]
PYTHON = re.compile(
    r"\b[a-z_.]+\([^)]*\)(?!\w)|(?<![-.\w])[a-z_]+=(?![\w-]*://)|\b(?:open|create)_table\b|\bcommitted_offset\b|`async with`"
)
PROGRAMS_ONLY = (
    "`async with`", "channel.open()", "headgate.aio.connect(",  # headgate.aio alone
    "columns=", "partitions=", "filter=", "mode=", "metadata_table=",  # commands build these themselves
)  # fmt: skip


OF_PYTHON_ROWS = ("fitting.py", "nested_fitting.py", "time_fitting.py")
"""Commands send Arrow data alone."""


def said() -> Iterator[str]:
    """Messages and fixes of every error that the libraries raise; a value that is put in is shown as 4."""
    for folder in ("lib/tables", "lib/client"):
        for path in sorted(path for path in (ROOT / folder).rglob("*.py") if path.name not in OF_PYTHON_ROWS):
            for call in ast.walk(ast.parse(path.read_text())):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "").endswith("Error"):
                    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("fix", "message"))]
                    yield from filter(None, map(text_of, given))


def text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "4" for part in parts)


def python_left(shown: str) -> list[str]:
    python = re.sub(r"--[a-z-]+ \w+=", "", shown)
    return [found for found in PYTHON.findall(python) if not found.startswith(PROGRAMS_ONLY)]


@pytest.mark.slow
def test_every_error_of_a_library_speaks_of_options() -> None:
    spoken_in_python = [text for text in set(said()) if PYTHON.search(text)]
    assert len(spoken_in_python) > 30
    left = {shown: found for shown in map(for_command_line, spoken_in_python) if (found := python_left(shown))}
    assert not left, "headgate_cli/wording.py has no rule for these"


def test_a_reworded_message_is_a_sentence_that_names_the_command() -> None:
    assert for_command_line("Stop the other program, then call adopt().") == (
        "Stop the other program, then run `headgate table adopt TABLE`."
    )
    assert for_command_line("since='3' is later than as_of='2'") == "--since 3 is later than --as-of 2"
    assert for_command_line("Leave buckets=... out.") == "Leave --buckets out."
    assert for_command_line("Restore the file from a copy; verify() names every damaged file.") == (
        "Restore the file from a copy; `headgate verify TABLE` names every damaged file."
    )
    assert for_command_line("Name it: tls=headgate.Tls(ca=...).") == "Name it: --tls-ca FILE."
    assert for_command_line("wants one: headgate.Tls(certificate=..., key=...).") == (
        "wants one: --client-cert FILE --client-key FILE."
    )
    assert for_command_line("Pass exist_ok=True, or go_on=True to go on.") == "Pass --exist-ok, or --go-on to go on."
    assert for_command_line("Order by an integer.") == "Order by an integer."


def test_a_setting_keeps_its_name() -> None:
    setting = "`headgate configure ops hoodie.clustering.plan.strategy.sort.columns=COLUMN`"
    assert for_command_line(f"Set one first: {setting}.") == f"Set one first: {setting}."
