"""The files that the arguments of `headgate load` name: files, folders, patterns, addresses and standard input."""

import glob
import shutil
import sys
import tempfile  # noqa: TID251 - what is no file of this machine is read twice, for types and for rows, and has no store
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from headgate_cli.load.remote import RemoteFile, check_room, copy, is_remote, remote_files
from headgate_cli.output import Output
from headgate_cli.reading.source import refused
from headgate_cli.reading.sources import is_data

STDIN = "stdin"
"""The name of a file that standard input is kept in."""


@dataclass(frozen=True, slots=True)
class InputFiles:
    """``paths``: on this machine. ``addresses``: where those that were copied came from."""

    paths: list[Path]
    addresses: Mapping[Path, str]

    def address(self, path: Path) -> str:
        """The file as the user knows it."""
        return self.addresses.get(path, str(path))


@contextmanager
def input_files(output: Output, arguments: Sequence[str], storage: Mapping[str, str] | None = None) -> Iterator[InputFiles]:
    """The files, those of folders and patterns by name. Standard input (``-``), and files of buckets and web servers, are copied
    into a temporary folder, which goes at the end.

    Of a folder and the folders in it come the files whose suffix names a format, without hidden ones and those that begin with an
    underscore. ``storage``: settings of the object store. Raises CommandError for an argument that names no file; TablesError.
    """
    with tempfile.TemporaryDirectory(prefix="headgate-load-") as name:
        folder = Path(name)
        remote = {argument: remote_files(argument, storage) for argument in arguments if is_remote(argument)}
        addresses: dict[Path, str] = {}
        found: list[Path] = []
        check_room([file for files in remote.values() for file in files], folder)
        for argument in arguments:
            if argument in remote:
                addresses |= (copies := _copies(output, remote[argument], folder, len(addresses)))
                found += copies
            else:
                found += _files(argument, folder)
        yield InputFiles(found, addresses)


def _copies(output: Output, files: Sequence[RemoteFile], folder: Path, before: int) -> dict[Path, str]:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    found: dict[Path, str] = {}
    with Progress(*columns, console=console, disable=output.json or not console.is_terminal, transient=True) as bar:
        for at, file in enumerate(files, start=before):
            task = bar.add_task(f"copying {file.path.name}", total=file.size)
            path = copy(file, folder / str(at), partial(bar.advance, task))
            output.print_json({"event": "copied", "file": file.address, "bytes": path.stat().st_size})
            bar.remove_task(task)
            found[path] = file.address
    return found


def _files(argument: str, folder: Path) -> list[Path]:
    path = Path(argument)
    if argument == "-":
        kept = folder / STDIN
        with kept.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        return [kept]
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if each.is_file() and is_data(each.relative_to(path)))
        return found or _none(argument, "The folder has no file whose suffix names a format: name the files, with --format.")
    if path.exists():
        return [path]
    found = sorted(Path(each) for each in glob.glob(argument, recursive=True) if Path(each).is_file())
    return found or _none(argument, "Check the path.")


def _none(argument: str, fix: str) -> list[Path]:
    raise refused(f"{argument}: no such file", fix)
