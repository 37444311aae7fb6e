"""A file on its way into a store: written piece by piece, of any size, then created under its name or given up.

A base file may be larger than memory, so it cannot be handed over whole as other files are.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headgate_tables.errors import DeposedError
from headgate_tables.storage.local_files import errors_of_writes, publish, sync_open, unlink_if_there
from headgate_tables.storage.store import Outcome

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class HashedFile(io.RawIOBase):
    """Writes through a descriptor (not owned) and knows the size and the SHA-256 of all of it. ``path``: for messages.

    Unbuffered: Parquet comes in pages, and what a buffer still held could be written after the descriptor's number was reused.
    """

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path
        self._digest = hashlib.sha256()
        self._size = 0
        self._ended = False

    def write(self, data: ReadableBuffer) -> int:
        """All of ``data``. Raises the library's own errors for those of the disk."""
        whole = memoryview(data).cast("B")
        if self._ended:
            return len(whole)
        with errors_of_writes(self._path):
            written = os.write(self._descriptor, whole)
            while written < len(whole):
                written += os.write(self._descriptor, whole[written:])
        self._digest.update(whole)
        self._size += written
        return written

    def end(self) -> None:
        """Discards all that is written from now on: an abandoned Parquet writer finishes its file when it is collected,
        and the descriptor's number may be another file's by then.
        """
        self._ended = True

    def tell(self) -> int:
        return self._size

    def writable(self) -> bool:
        return True

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._size

    @property
    def sha256(self) -> str:
        """Of the bytes so far, as hex digits."""
        return self._digest.hexdigest()


class LocalSpool:
    """See ``store.Spool``. ``staged``, ``target``: full paths in one file system; ``make_target`` makes the target's folder,
    ``sync_target`` makes that durable.
    """

    def __init__(
        self, descriptor: int, staged: str, target: str, make_target: Callable[[], None], sync_target: Callable[[], None]
    ) -> None:
        self.file = HashedFile(descriptor, staged)
        self._descriptor = descriptor
        self._staged = staged
        self._target = target
        self._make_target = make_target
        self._sync_target = sync_target

    def create(self) -> Outcome:
        sync_open(self._descriptor, self._staged)
        with errors_of_writes(self._target):
            if not os.path.exists(self._staged):
                # Rule W2: a successor renames the stages of older epochs, so that nothing more comes out of them.
                raise DeposedError(
                    f"{self._staged} is gone: the table has got another owner since the file was begun",
                    fix="Nothing was created. The new owner hands the work out again.",
                )
            if not os.path.isdir(os.path.dirname(self._target)):
                self._make_target()
            outcome = publish(self._staged, self._target)
        # Also when the name was taken: its creator may not have synced the folder yet.
        self._sync_target()
        return outcome


@contextlib.contextmanager
def local_spool(
    staged: str, target: str, make_target: Callable[[], None], sync_target: Callable[[], None]
) -> Iterator[LocalSpool]:
    """The staged name is gone when this ends, whatever happened. Raises FileExistsError when it is taken, FileNotFoundError
    when its folder is not there.
    """
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    spool = LocalSpool(descriptor, staged, target, make_target, sync_target)
    try:
        yield spool
    finally:
        spool.file.end()
        os.close(descriptor)
        # The outcome is what counts; a name that stays is in the stage, where its instant's sweep finds it.
        with contextlib.suppress(OSError):
            unlink_if_there(staged)
