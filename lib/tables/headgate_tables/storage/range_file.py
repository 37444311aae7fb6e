"""Random access to one object with few requests, for columnar reads."""

import io
import os
from typing import Protocol

TAIL_BYTES = 256 * 1024
"""Fetched when the file is opened: size, footer, and the whole of a small log file in one request."""
AHEAD_BYTES = 2 * 1024 * 1024
"""The least that a later request fetches: about what arrives in the time of another round trip."""


class Ranges(Protocol):
    """The bytes of one object."""

    def tail(self, length: int) -> tuple[int, memoryview]:
        """The object's size and its last ``length`` bytes, or all of a shorter one."""

    def part(self, start: int, stop: int) -> memoryview:
        """Bytes ``start`` to ``stop`` (exclusive), within the object."""


class RangeFile(io.RawIOBase):
    """A readable file object for ``pyarrow.PythonFile`` (which calls it under a lock). Keeps the tail and the last part read."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._size, tail = ranges.tail(TAIL_BYTES)
        self._tail = (self._size - len(tail), tail)
        self._part = (0, memoryview(b""))
        self._position = 0

    def read(self, length: int = -1) -> memoryview:
        """At most ``length`` bytes from here, all that are left when negative; a memoryview."""
        start = min(self._position, self._size)
        stop = self._size if length < 0 else min(start + length, self._size)
        self._position = stop
        for first, kept in (self._tail, self._part):
            if first <= start and stop <= first + len(kept):
                return kept[start - first : stop - first]
        self._part = (start, self._ranges.part(start, min(max(stop, start + AHEAD_BYTES), self._size)))
        return self._part[1][: stop - start]

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves as ``io.IOBase.seek`` does."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """The position of the next read."""
        return self._position

    def close(self) -> None:
        """Releases the bytes."""
        self._tail = self._part = (0, memoryview(b""))
        super().close()

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True
