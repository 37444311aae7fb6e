"""The text of a file as UTF-8: decompressed, checked, and decoded from other encodings, while it is read."""

import codecs
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from headgate_cli.failures import CommandError
from headgate_cli.reading.compression import DAMAGED, decompressed
from headgate_cli.reading.source import refused

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class TextStream:
    """A binary file object of UTF-8. Its ``read`` raises CommandError at the first byte that the encoding does not have.

    Without ``encoding`` a byte order mark decides, else it is UTF-8: a guess would turn bytes into wrong letters silently.
    """

    def __init__(self, path: Path, encoding: str) -> None:
        self._name = path.name
        self._file: IO[bytes] = path.open("rb")
        self._bytes = decompressed(self._file)
        try:
            self._first = self._chunk(4)
        except CommandError:
            self._file.close()
            raise
        found = next((name for mark, name in _MARKS if self._first.startswith(mark)), "utf-8")
        self.encoding = found if not encoding or codecs.lookup(encoding).name == "utf-8" else encoding
        self._decoder = codecs.getincrementaldecoder(self.encoding)()
        self._passes = self.encoding == "utf-8"
        self._ready = b""
        self._read = self._lines = 0
        self._ended = False
        self.quotes = 0
        """Quotation marks (``quote``) that were read."""
        self.quote = b""

    @property
    def closed(self) -> bool:
        return self._file.closed

    def readable(self) -> bool:
        """Always: pyarrow asks."""
        return True

    def done(self) -> int:
        """Bytes of the file that are read."""
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most ``size``; none at the end."""
        while not self._ready and not self._ended:
            self._ready = self._next(max(size, 4) if size >= 0 else 1 << 20)
        taken, self._ready = (self._ready[:size], self._ready[size:]) if 0 <= size < len(self._ready) else (self._ready, b"")
        return taken

    def _next(self, size: int) -> bytes:
        chunk, self._first = self._first + self._chunk(size - len(self._first)), b""
        self._ended = not chunk
        text = self._decoded(chunk)
        if b"\0" in text:
            raise self._wrong(self._read + chunk.find(b"\0"), text[: text.find(b"\0")].count(b"\n"), "is NUL, which no text has")
        self._read += len(chunk)
        self._lines += text.count(b"\n")
        self.quotes += text.count(self.quote) if self.quote else 0
        return text

    def _chunk(self, size: int) -> bytes:
        """``size`` bytes, fewer only at the end: pyarrow takes a short read for a whole block."""
        parts: list[bytes] = []
        try:
            while size > 0 and (part := self._bytes.read(size)):
                parts.append(part)
                size -= len(part)
            return b"".join(parts)
        except DAMAGED as error:
            raise refused(f"{self._name} is damaged or not complete: {error}", "Get the file again.") from error

    def _decoded(self, chunk: bytes) -> bytes:
        pending = self._decoder.getstate()[0]
        if self._passes and not pending and chunk.isascii():
            return chunk
        try:
            text = self._decoder.decode(chunk, final=self._ended)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(self.encoding, "ignore").count("\n")
            what = f"(0x{error.object[error.start]:02X}) is not {self.encoding.removesuffix('-sig').upper()}"
            raise self._wrong(self._read - len(pending) + error.start, before, what) from error
        return chunk if self._passes else text.encode()

    def _wrong(self, byte: int, lines: int, what: str) -> Exception:
        return refused(
            f"{self._name}: byte {byte} in line {self._lines + lines + 1} {what}",
            "Give the file's encoding, such as --encoding windows-1252, latin-1 or utf-16-le, or correct the file.",
        )

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def check_encoding(name: str) -> None:
    """Raises CommandError for an encoding that Python does not have."""
    try:
        known: Any = codecs.lookup(name) if name else None
    except LookupError as error:
        raise refused(
            f"--encoding {name}: unknown", "Use a name such as utf-8, windows-1252, latin-1, utf-16 or cp850."
        ) from error
    del known
