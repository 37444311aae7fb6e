"""A file without a name on this machine's disk: what is too much for memory waits in it, and a killed process leaves none."""

from __future__ import annotations

import contextlib
import mmap
import tempfile  # noqa: TID251 - for a file without a name: there is none to make up, and nothing to sweep
from collections.abc import Iterator
from io import BufferedRandom

import pyarrow as pa

from headgate_tables.storage.local_files import errors_of_writes


class Scratch:
    """Is written first and then read, where it lies."""

    def __init__(self, file: BufferedRandom) -> None:
        self._file = file

    @contextlib.contextmanager
    def writing(self) -> Iterator[BufferedRandom]:
        """The file, buffered, because a raw one may take less than it is given. Raises StoreFullError or StoreUnavailableError
        where the body met an OSError.
        """
        with errors_of_writes(tempfile.gettempdir()):
            yield self._file

    def read(self) -> pa.Buffer:
        """All of it, mapped: the system loads what is looked at, and drops that again when memory is short."""
        with self.writing():
            self._file.flush()
        return pa.py_buffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))


@contextlib.contextmanager
def scratch() -> Iterator[Scratch]:
    """A new file, which is gone at the end. Raises StoreFullError, StoreUnavailableError."""
    with contextlib.ExitStack() as opened:
        with errors_of_writes(tempfile.gettempdir()):
            file = opened.enter_context(tempfile.TemporaryFile())
        yield Scratch(file)
