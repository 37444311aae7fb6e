"""Small file systems of a test's own, and programs that run as somebody without rights."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.processes import READY_S

PAGE = os.sysconf("SC_PAGESIZE")


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of ``size`` bytes in memory, which gives space out in pages. Skips where nothing may be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def remount(folder: Path, how: str) -> None:
    """``ro`` or ``rw``."""
    _remount(folder, how).check_returncode()


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Whoever opens a file below the folder finds a read-only file system, although others still write files of theirs there.

    A mount that has such files cannot be made read-only, so another one of the same folder is laid over it. Who opens a file for
    writing just then keeps that one from it, too, so it is tried again.
    """
    until_done(lambda: _laid_over(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """The file system (of ``small_disk``) is as small as what its files take.

    The kernel refuses where these have grown since, and is asked again.
    """
    size = _bytes(folder, used=False)
    until_done(lambda: _remount(folder, f"size={_bytes(folder, used=True)}"))
    try:
        yield
    finally:
        remount(folder, f"size={size}")


def until_done(attempt: Callable[[], subprocess.CompletedProcess[str]], limit: float = READY_S) -> None:
    """Again and again, as others use the file system meanwhile. Raises TimeoutError with what the command said last."""
    deadline = time.monotonic() + limit
    while (done := attempt()).returncode != 0:
        if time.monotonic() > deadline:
            raise TimeoutError(f"refused for {limit:g} s: {shlex.join(done.args)}: {done.stderr.strip()}")


def _laid_over(folder: Path) -> subprocess.CompletedProcess[str]:
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    done = _remount(folder, "bind,ro")
    if done.returncode != 0:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    return done


def _remount(folder: Path, how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], capture_output=True, text=True, check=False)


def _bytes(folder: Path, *, used: bool) -> int:
    """That the file system has, or that its files take."""
    found = os.statvfs(folder)
    return (found.f_blocks - (found.f_bfree if used else 0)) * found.f_frsize


@contextmanager
def immutable(folder: Path) -> Iterator[None]:
    """Root, too, may change nothing in it. Skips where the file system knows no such thing."""
    if subprocess.run(["chattr", "+i", str(folder)], capture_output=True, check=False).returncode != 0:
        pytest.skip("a folder cannot be made immutable here")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(folder)], check=True)


def free_pages(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize // PAGE


def fill(folder: Path, leave: int) -> Path:
    """A file that takes all pages but ``leave``; deleting it frees them."""
    filler = folder / "filler"
    filler.write_bytes(b"x" * ((free_pages(folder) - leave) * PAGE))
    assert free_pages(folder) == leave
    return filler


def fill_up(folder: Path) -> Path:
    """A file that takes all that is left, also while others write; deleting it frees that."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for piece in (1 << 20, PAGE):
            with suppress(OSError):
                while True:
                    file.write(bytes(piece))
    return filler


def run_as_nobody(script: str, *arguments: str) -> str:
    """What the program prints when it has given up root's rights (root may do everything). Skips for others."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    become = "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    first = "import _strptime, headgate_tables.hudi\n"  # while the interpreter's own files can be read
    command = [sys.executable, "-c", first + become + script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
