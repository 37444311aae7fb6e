"""The text of a JSON file in blocks of one object a line: lines as they are, arrays and objects over many lines rewritten."""

import codecs
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from headgate_cli.reading.source import BLOCK_BYTES, refused
from headgate_cli.reading.streams import TextStream

_SPACE = " \t\r\n"
_LONGEST_WORD = 16  # of a text that is cut off in a word or an escape, the decoder names the beginning of that
_DECODER = json.JSONDecoder()
_EXACT = json.JSONDecoder(parse_float=str, parse_int=str)


class JsonBlock(NamedTuple):
    """Whole lines of UTF-8. ``done``: bytes of the file that are read."""

    lines: bytes
    done: int


def json_blocks(path: Path, encoding: str, texts: Collection[str]) -> Iterator[JsonBlock]:
    """The file's objects, one a line. ``texts``: columns whose values become texts, each as the file has it.

    Takes JSON lines, an array of objects, and objects behind each other over any lines. Python's decoder finds the end of an
    object where a line does not tell; nothing here reads JSON. Raises CommandError for what is no JSON.
    """
    with TextStream(path, encoding) as stream:
        first = stream.read(BLOCK_BYTES)
        if _has_lines(first):
            yield from _with_texts_in(_lines(first, stream), texts) if texts else _lines(first, stream)
        else:
            yield from _objects(path, first, stream, texts)


def _has_lines(first: bytes) -> bool:
    """Whether the first line is an object: then lines are taken for rows, and one that is none is an error."""
    line, end, _ = first.lstrip().partition(b"\n")
    if not line.startswith(b"{") or not (end or len(first) < BLOCK_BYTES):
        return False
    try:
        json.loads(line)
    except ValueError:
        return line.rstrip().endswith(b"}") and len(line.rstrip()) > 1
    return True


def _lines(first: bytes, stream: TextStream) -> Iterator[JsonBlock]:
    rest, chunk = b"", first
    while chunk:
        whole, end, tail = chunk.rpartition(b"\n")
        if end:
            if (block := rest + whole).strip():
                yield JsonBlock(block, stream.done())
            rest = tail
        else:
            rest += chunk
        chunk = stream.read(BLOCK_BYTES)
    if rest.strip():
        yield JsonBlock(rest, stream.done())


def _with_texts_in(blocks: Iterator[JsonBlock], texts: Collection[str]) -> Iterator[JsonBlock]:
    for block in blocks:
        lines = [line for line in block.lines.decode().split("\n") if line.strip()]
        yield JsonBlock("\n".join(_line_with_texts(line, texts) for line in lines).encode(), block.done)


def _line_with_texts(line: str, texts: Collection[str]) -> str:
    """As ``_with_texts``; a line that is no object stays, for the reader to refuse."""
    try:
        found = _DECODER.decode(line)
    except (ValueError, RecursionError):
        return line
    return _with_texts(line.strip(), found, texts) if isinstance(found, dict) else line


def _objects(path: Path, first: bytes, stream: TextStream, texts: Collection[str]) -> Iterator[JsonBlock]:
    lines: list[str] = []
    size = 0
    for text, found in _Decoded(path, first, stream).objects():
        line = _with_texts(text, found, texts).replace("\r", " ").replace("\n", " ")
        lines.append(line)
        size += len(line)
        if size >= BLOCK_BYTES:
            yield JsonBlock("\n".join(lines).encode(), stream.done())
            lines, size = [], 0
    if lines:
        yield JsonBlock("\n".join(lines).encode(), stream.done())


def _with_texts(text: str, found: dict[str, Any], texts: Collection[str]) -> str:
    """The object with texts for the values of ``texts``: a number keeps its digits, an object or a list is JSON."""
    chosen = [name for name in texts if found.get(name) is not None and not isinstance(found[name], str)]
    if not chosen:
        return text
    exact, _ = _EXACT.raw_decode(text)
    for name in chosen:
        as_it_is = isinstance(exact[name], str)
        found[name] = exact[name] if as_it_is else json.dumps(found[name], ensure_ascii=False)
    return json.dumps(found)


class _Decoded:
    """The objects of a text that is read piece by piece; memory holds a block, or one object that is larger."""

    def __init__(self, path: Path, first: bytes, stream: TextStream) -> None:
        self._path = path
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = self._decoder.decode(first)
        self._at = 0
        self._rows = 0

    def objects(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each object's text and value."""
        in_array = self._next() == "["
        if in_array:
            self._at += 1
        while (mark := self._next()) and mark != "]":
            yield self._object()
            if in_array and self._next() == ",":
                self._at += 1
                if self._next() == "]":
                    raise self._wrong("a comma behind the last one")
            elif in_array and self._next() != "]":
                raise self._wrong("the array is not closed" if not self._next() else "no comma before it")
        if in_array and mark != "]":
            raise self._wrong("the array is not closed")
        if mark == "]":
            self._at += 1
            if not in_array or self._next():
                raise self._wrong("text behind the end of the array")

    def _next(self) -> str:
        """The next letter that is no space, where the text stands then; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(BLOCK_BYTES):
                return ""

    def _object(self) -> tuple[str, dict[str, Any]]:
        wanted = BLOCK_BYTES
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._text) - _LONGEST_WORD or error.msg.startswith("Unterminated")
                if cut and self._more(wanted):
                    wanted *= 2
                    continue
                raise self._wrong(error.msg) from error
            except RecursionError as error:
                raise self._wrong("too deep") from error
            if not isinstance(found, dict):
                raise self._wrong(f"{json.dumps(found)[:40]} is not an object")
            text = self._text[self._at : end]
            self._at = end
            self._rows += 1
            return text, found

    def _more(self, size: int) -> bool:
        """Reads on, and drops what was taken. False at the end of the file."""
        chunk = self._stream.read(size)
        self._text = self._text[self._at :] + self._decoder.decode(chunk)
        self._at = 0
        return bool(chunk)

    def _wrong(self, why: str) -> Exception:
        return refused(f"{self._path.name}: row {self._rows + 1}: {why}", "Correct the file: JSON lines, or an array of objects.")
