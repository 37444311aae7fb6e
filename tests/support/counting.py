"""A local store that notes what is asked of it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from headgate_tables import hudi
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.store import FolderListing
from headgate_tables.system import SystemIds
from support.handles import open_on


class CountingStore(LocalStore):
    """``opened``: files read whole or opened, ``ranges``: bytes read of opened ones, ``sized``: files whose size was asked for,
    ``listed``: folders; in order.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(str(root), SystemIds())
        self.opened: list[str] = []
        self.sized: list[str] = []
        self.listed: list[str] = []
        self.ranges: list[tuple[int, int]] = []

    def get(self, path: str) -> pa.Buffer:
        self.opened.append(path)
        return super().get(path)

    def open_input(self, path: str) -> pa.NativeFile:
        self.opened.append(path)
        return pa.PythonFile(_NotingFile(self._at(path), self.ranges), mode="r")

    def size(self, path: str) -> int | None:
        self.sized.append(path)
        return super().size(path)

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        self.listed.append(folder)
        return super().list_folder(folder, after=after, sizes=sizes)

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """Only what the block asks for is noted."""
        self.opened.clear()
        self.sized.clear()
        self.listed.clear()
        self.ranges.clear()
        yield

    def data_files(self) -> list[str]:
        """Of ``opened``."""
        return [path for path in self.opened if not path.startswith(".hoodie")]


class _NotingFile(io.RawIOBase):
    def __init__(self, path: str, ranges: list[tuple[int, int]]) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 - closed by close()
        self._ranges = ranges

    def read(self, length: int = -1) -> bytes:
        start = self._file.tell()
        content = self._file.read(length)
        self._ranges.append((start, start + len(content)))
        return content

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def counted(url: str) -> tuple[hudi.Table, CountingStore]:
    """A handle of its own on the table, and the store through which it reads."""
    store = CountingStore(Path(url.removeprefix("file://")))
    return open_on(store), store
