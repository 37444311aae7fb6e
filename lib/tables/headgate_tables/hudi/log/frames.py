"""The blocks of a log file without their contents, and where those are, so that a large file can be read in pieces.

Only for files that are blocks from end to end. ``block.read_blocks`` finds those between damaged stretches.
"""

import io
import struct
from dataclasses import dataclass, field

import pyarrow as pa

from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.log.block import MAGIC, Block, BlockKind, HeaderKey, check_closing, check_content, decode_head

_I64 = struct.Struct(">q")
_SIZED_FROM = len(MAGIC) + _I64.size
_SMALLEST_BODY = 32
_HEAD_BYTES = 1 << 16
"""Read first; headers hold the table's schema, and seldom more."""
_TAIL_BYTES = 1 << 20
"""The most that may follow a content: an empty map in all files seen."""
_NOTHING = pa.py_buffer(b"")


@dataclass(slots=True)
class Frames:
    """``blocks``: in file order, without contents. ``contents``: start and length of each, by its block's offset."""

    blocks: list[Block] = field(default_factory=list)
    contents: dict[int, tuple[int, int]] = field(default_factory=dict)


def read_frames(file: pa.NativeFile, size: int, path: str) -> Frames | None:
    """None when anything in the file is not framed as a block. Raises as ``read_blocks`` for a block that is wrong inside."""
    found = Frames()
    at = 0
    while at + len(MAGIC) <= size:
        head = _read(file, at, min(_HEAD_BYTES, size - at))
        end = _framed_end(file, head, at, size)
        if end is None:
            return None
        where = f"{path} at byte {at}"
        limit = end - _I64.size
        kind, headers, start, length = _head(file, head, at, limit, where)
        check_content(start, length, limit, where)
        if limit - (start + length) > _TAIL_BYTES:
            return None
        tail = memoryview(_read(file, start + length, limit - (start + length)))
        check_closing(tail, 0, len(tail), where)
        found.blocks.append(Block(kind, headers, _NOTHING, at, end - at))
        found.contents[at] = (start, length)
        at = end
    return found


def _framed_end(file: pa.NativeFile, head: bytes, at: int, size: int) -> int | None:
    """As ``block._framed_end``, but None also for a missing magic."""
    if len(head) < _SIZED_FROM or not head.startswith(MAGIC):
        return None
    (body,) = _I64.unpack_from(head, len(MAGIC))
    end = int(at + _SIZED_FROM + body)
    if body < _SMALLEST_BODY or end > size:
        return None
    closing = _read(file, end - _I64.size, min(_I64.size + len(MAGIC), size - end + _I64.size))
    follows = closing[_I64.size :]
    if _I64.unpack_from(closing)[0] != body + len(MAGIC):
        return None
    return end if len(follows) < len(MAGIC) or follows == MAGIC else None


def _head(file: pa.NativeFile, head: bytes, at: int, limit: int, where: str) -> tuple[BlockKind, dict[HeaderKey, str], int, int]:
    """``decode_head`` with offsets in the file; reads on until the headers are complete."""
    while True:
        complete = len(head) >= limit - at
        try:
            kind, headers, start, length = decode_head(memoryview(head), 0, min(len(head), limit - at), where)
        except CorruptFileError:
            if complete:
                raise
            head = _read(file, at, min(len(head) * 4, limit - at))
            continue
        return kind, headers, at + start, length


class FilePart(io.RawIOBase):
    """Bytes ``start`` to ``start + length`` of an open file, as a file of its own. Moves the position of the other."""

    def __init__(self, file: pa.NativeFile, start: int, length: int) -> None:
        self._file = file
        self._start = start
        self._length = length
        self._position = 0

    def read(self, length: int = -1) -> bytes:
        """At most ``length`` bytes from here, all that are left when negative."""
        left = max(0, self._length - self._position)
        wanted = left if length < 0 else min(length, left)
        found = _read(self._file, self._start + self._position, wanted)
        self._position += len(found)
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _read(file: pa.NativeFile, start: int, length: int) -> bytes:
    file.seek(start)
    return file.read(length)
