"""Files stay short: one thing each."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
LINES, LINES_OF_TESTS = 300, 450
"""CONTRIBUTING.md has them, too."""
SOURCES = ("coordinator", "writer", "compactor", "lib", "proto", "demo", "bench", "scripts")


def too_long(folder: Path, limit: int) -> list[str]:
    """Python files with more lines, but generated ones."""
    files = (path for path in sorted(folder.rglob("*.py")) if not path.stem.endswith(("_pb2", "_pb2_grpc")))
    counted = ((path.relative_to(ROOT), len(path.read_text().splitlines())) for path in files)
    return [f"{path}: {lines}" for path, lines in counted if lines > limit]


def test_no_file_has_more_lines_than_its_limit() -> None:
    assert [found for folder in SOURCES for found in too_long(ROOT / folder, LINES)] == []
    assert too_long(ROOT / "tests", LINES_OF_TESTS) == []
