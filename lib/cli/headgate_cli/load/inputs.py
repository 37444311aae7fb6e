"""The files that the arguments of `headgate load` name: files, folders, patterns and standard input."""

import glob
import shutil
import sys
import tempfile  # noqa: TID251 - standard input is read twice, for types and for rows, and has no store
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headgate_cli.reading.source import refused
from headgate_cli.reading.sources import is_known

STDIN = "stdin"
"""The name of a file that standard input is kept in."""


@contextmanager
def input_files(arguments: Sequence[str]) -> Iterator[list[Path]]:
    """The files, those of folders and patterns by name. ``-`` is standard input, kept in a file until the end.

    Of a folder and the folders in it come the files whose suffix names a format, without hidden ones and those that begin with an
    underscore. Raises CommandError for an argument that names no file.
    """
    with tempfile.TemporaryDirectory(prefix="headgate-load-") as folder:
        yield [path for argument in arguments for path in _files(argument, Path(folder))]


def _files(argument: str, folder: Path) -> list[Path]:
    path = Path(argument)
    if argument == "-":
        kept = folder / STDIN
        with kept.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        return [kept]
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if each.is_file() and _is_data(each.relative_to(path)))
        return found or _none(argument, "The folder has no file whose suffix names a format: name the files, with --format.")
    if path.exists():
        return [path]
    found = sorted(Path(each) for each in glob.glob(argument, recursive=True) if Path(each).is_file())
    return found or _none(argument, "Check the path.")


def _is_data(path: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in path.parts) and is_known(path)


def _none(argument: str, fix: str) -> list[Path]:
    raise refused(f"{argument}: no such file", fix)
