"""Files of a cluster on this machine that no other user may read: passwords, keys, the socket of Redis."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError

_LOCK: Final = "lock"


class PrivateFolder:
    """A folder with mode 0700 whose files have mode 0600. Raises CommandError if others could look into it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def below(cls, state: Path, *names: str) -> "PrivateFolder":
        """``state/names…``; those that are not there are made."""
        folder = state
        _make_private(folder)
        for name in names:
            folder /= name
            _make_private(folder)
        return cls(folder)

    def write(self, name: str, content: str) -> Path:
        """Creates the file or replaces it at once; returns its path."""
        path, partial = self.path / name, self.path / f".{name}.partial"
        partial.unlink(missing_ok=True)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(content)
        partial.replace(path)
        return path

    @contextlib.contextmanager
    def locked(self, note: str) -> Iterator[str | None]:
        """None when this process has it locked, until the block or the process ends; the note of the one that has it otherwise.

        ``note``: what others read.
        """
        with os.fdopen(os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+", encoding="utf-8") as file:
            if not _lock(file):
                yield file.read()
                return
            file.truncate()
            file.write(note)
            file.flush()
            yield None

    def notes_below(self) -> list[str]:
        """The notes of processes that have folders in this one locked."""
        return [note for path in sorted(self.path.glob(f"*/{_LOCK}")) if (note := _note_in(path)) is not None]


def _note_in(lock: Path) -> str | None:
    with lock.open(encoding="utf-8") as file:
        return None if _lock(file) else file.read()


def _lock(file: IO[str]) -> bool:
    """Whether nobody else has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make_private(folder: Path) -> None:
    """Made if it is not there. One that is there has to be ours alone: what others can change, they can replace by a link."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
    except OSError as error:
        raise CommandError(
            f"{error.filename}: {error.strerror}",
            fix="The cluster's passwords and keys are kept there: set XDG_STATE_HOME to a folder that you can write to.",
            code=ExitCode.OPERATOR,
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise CommandError(
            f"{folder} is not a folder of yours that others cannot open",
            fix=f"The cluster's passwords and keys are kept there: chmod 700 {folder}, or set XDG_STATE_HOME to another folder.",
            code=ExitCode.OPERATOR,
        )
