"""Files and functions stay short, one thing each, and types say what they are."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINES, LINES_OF_TESTS, LINES_OF_A_FUNCTION = 300, 450, 60
"""CONTRIBUTING.md has them, too."""
LINES_WITH_ANY = 198
SERVICES = ("coordinator", "writer", "compactor", "lib", "proto")
SOURCES = (*SERVICES, "demo", "bench", "scripts")


def files(*folders: str) -> Iterator[tuple[Path, str]]:
    """Python files and their text, but generated ones."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.stem.endswith(("_pb2", "_pb2_grpc")):
                yield path.relative_to(ROOT), path.read_text()


def too_long(folders: tuple[str, ...], limit: int) -> list[str]:
    counted = ((path, len(text.splitlines())) for path, text in files(*folders))
    return [f"{path}: {lines}" for path, lines in counted if lines > limit]


def test_no_file_has_more_lines_than_its_limit() -> None:
    assert too_long(SOURCES, LINES) == []
    assert too_long(("tests",), LINES_OF_TESTS) == []


def test_no_function_has_more_lines_than_its_limit() -> None:
    functions = (
        (f"{path}: {node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for path, text in files(*SOURCES, "tests")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert [f"{name}, {lines} lines" for name, lines in functions if lines > LINES_OF_A_FUNCTION] == []


def test_the_type_any_stays_at_the_edges() -> None:
    said = sum(bool(re.search(r"\bAny\b", line)) for _, text in files(*SERVICES) for line in text.splitlines())
    assert said <= LINES_WITH_ANY
