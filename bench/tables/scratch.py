"""Folders for the tables under test, on the disk of the repository, each in a part of the disk that nobody else uses.

ext4 keeps a folder's files in its parent's block group and never hands out an inode again that was deleted in the last
minutes: it reads past each of them, for every file created. Where some thousand files were deleted (a test run, an earlier
round), creating one costs 0.25 to 0.65 ms of CPU instead of 0.015, and small commits measure that. Below a folder that is
marked as the top of a hierarchy (``chattr +T``) new folders are spread over the disk instead.
"""

import array
import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.tables import CACHE

_GET_FLAGS, _SET_FLAGS, _TOP_OF_HIERARCHY = 0x80086601, 0x40086602, 0x20000
_SCRATCH = CACHE / "scratch"


@contextlib.contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """A new folder, deleted at the end."""
    _SCRATCH.mkdir(parents=True, exist_ok=True)
    _spread_below(_SCRATCH)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_SCRATCH))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _spread_below(folder: Path) -> None:
    """Does nothing where the file system has no such mark: macOS, XFS, tmpfs."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            flags = array.array("l", [0])
            fcntl.ioctl(descriptor, _GET_FLAGS, flags)
            flags[0] |= _TOP_OF_HIERARCHY
            fcntl.ioctl(descriptor, _SET_FLAGS, flags)
    finally:
        os.close(descriptor)
