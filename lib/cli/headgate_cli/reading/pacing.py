"""Keeps pyarrow's CSV reader close to the rows that are taken from it: its own thread would read 32 blocks ahead of them."""

import threading
from collections import deque
from collections.abc import Iterable, Iterator

import pyarrow as pa

from headgate_cli.reading.streams import TextStream

_AHEAD = 3  # the block that is parsed, the one that tells where its last row ends, and one that is ready
_PATIENCE_S = 1.0
_LEAST_PATIENCE_S = 0.01


class PacedStream:
    """The text of ``stream`` for ``pa_csv.open_csv``, whose thread calls ``read``; ``taken`` lets it go on.

    Only time tells that a block gave no batch. pyarrow 26 makes an empty one of a block without rows, but none before the first
    row of the file, and its handler of invalid rows hears neither of empty lines nor where a block ends.
    """

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream
        self._news = threading.Condition()
        self._ends: deque[int] = deque()  # for each block that no batch has come of yet, where it ends in the file
        self._done = 0
        self._is_waited_for = True  # pyarrow's constructor waits for the first batch, whose rows may come after many blocks
        self._patience_s = _PATIENCE_S
        self.closed = False

    def readable(self) -> bool:
        """Always: pyarrow asks."""
        return True

    def done(self) -> int:
        """Bytes of the file whose rows were taken."""
        return self._done

    def read(self, size: int = -1) -> bytes:
        """As ``TextStream.read``, as soon as the block is needed; nothing after ``close``."""
        with self._news:
            while not self.closed and len(self._ends) >= _AHEAD:
                waited_for = self._is_waited_for
                if not self._news.wait(self._patience_s) and waited_for and self._is_waited_for:
                    self._done = self._ends.popleft()  # no batch comes of a block whose rows are all left out
                    self._patience_s = max(self._patience_s / 2, _LEAST_PATIENCE_S)  # nor, probably, of the next one
            if self.closed:
                return b""
            block = self._stream.read(size)
            if block:
                self._ends.append(self._stream.done())
            return block

    def taken(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """``batches``, which are made of what is read here."""
        left = iter(batches)
        while True:
            self._is_waited_for = True
            batch = next(left, None)
            self._is_waited_for = False
            if batch is None:
                return
            with self._news:
                if self._ends:
                    self._done = self._ends.popleft()
                self._patience_s = _PATIENCE_S
                self._news.notify()
            yield batch

    def close(self) -> None:
        """Lets the reader's thread end."""
        with self._news:
            self.closed = True
            self._news.notify()
