"""Paths that metadata give: none may lead out of the table's folder. Pure."""

import os

from headgate_tables.errors import CorruptFileError


def check_path(path: str) -> None:
    """Raises CorruptFileError for a path, from the table's root, that no file of a table can have: with ``..`` or an empty part,
    NUL, or what is no text. Slots, commits and plans name files, and so may anybody who can write into the table's folder.
    """
    if not path.isascii():
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise _strange(path, "is not text") from error
    if "//" in path or "\0" in path or path[:1] == "/" or (".." in path and ".." in path.split("/")):
        raise _strange(path, "leads out of the table's folder, or nowhere")


def _strange(path: str, how: str) -> CorruptFileError:
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
    return CorruptFileError(
        f"{shown!r}, which the table's metadata names as a file, {how}",
        fix="No program that writes tables wrote that: find out which did, and restore `.hoodie` from a copy.",
    )


_SHOWN = 200


def folder_of(path: str) -> str:
    """The folder in which the file lies; "" for the root."""
    return path.rpartition("/")[0]
