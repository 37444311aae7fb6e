"""Keeps a local table in its folder: its files are files, and no link below its root leads anywhere.

Who can write into a table's folder is not always who reads it: a link there would have a service show, or delete, what its own
user may read. The table's root itself, and what is above it, may be links.
"""

import contextlib
import os
import stat
from collections.abc import Iterator

from headgate_tables.errors import CorruptFileError
from headgate_tables.storage.paths import check_path

_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe would wait for somebody who writes
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC | os.O_DIRECTORY  # who may write in a folder may not always list it
_OPENED = "/proc/self/fd"
"""Where Linux says what a descriptor leads to; elsewhere the path is resolved once more."""


class Inside:
    """``root``: absolute, without a slash at its end."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._real = ""
        self._asks = os.path.isdir(_OPENED)

    def at(self, path: str) -> str:
        """Where a file lies. Raises CorruptFileError for a path that no file can have."""
        check_path(path)
        return f"{self._root}/{path}" if path else self._root or "/"

    def open(self, full: str) -> int:
        """A descriptor of a file. Raises OSError, CorruptFileError for what is no file or lies elsewhere."""
        descriptor = os.open(full, _FILE)
        try:
            self._check(descriptor, full)
            kind = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(kind):
                raise IsADirectoryError
            if not stat.S_ISREG(kind):
                raise CorruptFileError(
                    f"{full} is not a file but a pipe or a device", fix="Remove it, and restore it from a copy."
                )
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextlib.contextmanager
    def folder(self, full: str) -> Iterator[int]:
        """A descriptor of a folder, open meanwhile. Raises OSError, CorruptFileError for one that lies elsewhere."""
        descriptor = os.open(full, _FOLDER)
        try:
            self._check(descriptor, full)
            yield descriptor
        finally:
            os.close(descriptor)

    def check_folder(self, full: str) -> None:
        """Before something is made or deleted in a folder, which may be missing. Raises CorruptFileError, OSError."""
        try:
            descriptor = os.open(full, _PLACE)
        except FileNotFoundError:
            self._resolve(full)
            return
        try:  # not by ``folder``: each file of a commit comes by here, and a context manager costs more than the check
            self._check(descriptor, full)
        finally:
            os.close(descriptor)

    def again(self, descriptor: int, full: str) -> str:
        """A path by which the open file can be opened once more, whatever has become of its name."""
        return f"{_OPENED}/{descriptor}" if self._asks else full

    def _check(self, descriptor: int, full: str) -> None:
        if not self._asks or os.readlink(f"{_OPENED}/{descriptor}") != self._real + full[len(self._root) :]:
            self._resolve(full)

    def _resolve(self, full: str) -> None:
        """The slow way, which also sees that the root has another place since."""
        self._real = os.path.realpath(self._root or "/").rstrip("/")
        if os.path.realpath(full) != (self._real + full[len(self._root) :] or "/"):
            raise CorruptFileError(
                f"{full} is a link, or lies behind one",
                fix="A table's folder has no links in it: remove it, and put the file itself there.",
            )
