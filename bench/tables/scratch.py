"""Folders for the tables under test, on the disk of the repository, each in a part of the disk that nobody else uses.

ext4 keeps a folder's files in its parent's block group and hands out no inode that was deleted in the last minutes: for every
file created it reads past all of them. Where thousands were deleted (a test run, an earlier round), creating one costs 0.25 to
0.65 ms of CPU instead of 0.015, and benchmarks of small commits measure that. Below a folder that is marked as the top of a
hierarchy (``chattr +T``) new folders are spread over the disk, and here one is taken only when creating files in it is cheap.
"""

import array
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import CACHE

_GET_FLAGS, _SET_FLAGS, _TOP_OF_HIERARCHY = 0x80086601, 0x40086602, 0x20000
_SCRATCH = CACHE / "scratch"
_CHEAP = 0.00004
_ATTEMPTS = 24


@contextlib.contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """A new folder, deleted at the end; of some places the first, or else the best, where creating a file is cheap."""
    _SCRATCH.mkdir(parents=True, exist_ok=True)
    _spread_below(_SCRATCH)
    tried: list[tuple[float, Path]] = []
    try:
        while len(tried) < _ATTEMPTS and (not tried or tried[-1][0] > _CHEAP):
            folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_SCRATCH))
            tried.append((_cost_of_a_file(folder / "probe"), folder))
        yield min(tried)[1]
    finally:
        for _, folder in tried:
            shutil.rmtree(folder, ignore_errors=True)


def _cost_of_a_file(folder: Path, files: int = 30) -> float:
    """CPU seconds. The files stay until the end: deleting them would make the place dearer."""
    folder.mkdir()
    begin = time.thread_time()
    for number in range(files):
        (folder / str(number)).touch(exist_ok=False)
    return (time.thread_time() - begin) / files


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
