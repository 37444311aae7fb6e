"""Framing of a log file: a plain sequence of blocks, each magic, size, headers, content, and its size again at the end.

Hudi: HoodieLogFormatWriter, HoodieLogFileReader. All integers
big-endian and signed. Content is never copied: written in pieces, read as slices.
"""

import enum
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headgate_tables.errors import CorruptFileError, UnsupportedTableError

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1
CHECKSUM = "crc32:"

BlockBytes = bytes | memoryview | pa.Buffer

_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_MAGIC_SEARCH = re.compile(re.escape(MAGIC))
_SIZED_FROM = len(MAGIC) + _I64.size
_SMALLEST_BODY = 4 + 4 + 4 + 8 + 4 + 8
"""Format version, kind, empty headers, content length, empty footers, reverse pointer."""


class BlockKind(enum.IntEnum):
    """Ordinals of Hudi's HoodieLogBlockType. CORRUPT is never written: it stands for bytes that could not be read."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(enum.IntEnum):
    """Ordinals of Hudi's HeaderMetadataType. hudi-rs refuses a file with any other, so we cannot add one of our own."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True)
class Block:
    """One block. ``offset`` is that of its magic; ``size`` counts from there to the next block, or magic after damage."""

    kind: BlockKind
    headers: Mapping[HeaderKey, str]
    content: pa.Buffer
    offset: int
    size: int


def encode_block(kind: BlockKind, headers: Mapping[HeaderKey, str], content: Sequence[BlockBytes]) -> list[BlockBytes]:
    """The block in pieces, to be written one after the other; ``content`` is not copied."""
    length = sum(len(piece) if isinstance(piece, bytes) else _nbytes(piece) for piece in content)
    head = b"".join((_I32.pack(FORMAT_VERSION), _I32.pack(kind), _encode_map(headers), _I64.pack(length)))
    footers = _encode_map({})
    body = len(head) + length + len(footers) + _I64.size
    front = b"".join((MAGIC, _I64.pack(body), head))
    return [front, *content, footers + _I64.pack(body + len(MAGIC))]


def checksum(headers: Mapping[HeaderKey, str], content: Sequence[BlockBytes]) -> str:
    """What our blocks of Avro rows carry as BLOCK_IDENTIFIER, because Avro itself has no checksum: readers that look find a
    flipped bit, as in Parquet's pages. It covers the other headers, too, as the rows mean what the schema says.

    Hudi has ignored that header since 1.0, and has none that is meant for this.
    """
    others: dict[HeaderKey, str] = {key: text for key, text in sorted(headers.items()) if key is not HeaderKey.BLOCK_IDENTIFIER}
    crc = zlib.crc32(_encode_map(others))
    for piece in content:
        crc = zlib.crc32(piece, crc)
    return f"{CHECKSUM}{crc:08x}"


def read_blocks(buf: pa.Buffer, path: str) -> Iterator[Block]:
    """All blocks of a file in order, damaged stretches among them as CORRUPT with the bytes up to the next magic as content.

    A block is damaged when its end lies outside the file, when the size at its end differs, or when something other
    than the end of the file or a magic follows it; fewer than six bytes after a block count as the end.

    Raises CorruptFileError when the file does not begin with a block, or when a correctly framed block is wrong
    inside; UnsupportedTableError for a block kind, header or format version that this library does not know.
    """
    view = memoryview(buf).cast("B")
    at = 0
    while at + len(MAGIC) <= len(view):
        if view[at : at + len(MAGIC)] != MAGIC:
            raise CorruptFileError(
                f"{path} does not begin with a log block",
                fix="Restore the file from a copy, or remove it if its instant never committed.",
            )
        end = _framed_end(view, at)
        if end is None:
            found = _MAGIC_SEARCH.search(view, at + len(MAGIC))
            end = found.start() if found else len(view)
            yield Block(BlockKind.CORRUPT, {}, buf.slice(at, end - at), at, end - at)
        else:
            yield _decode_body(buf, view, at, end, path)
        at = end


def _framed_end(view: memoryview, at: int) -> int | None:
    """Where the block at ``at`` ends, or None when it is damaged."""
    if at + _SIZED_FROM > len(view):
        return None
    (body,) = _I64.unpack_from(view, at + len(MAGIC))
    end = int(at + _SIZED_FROM + body)
    if body < _SMALLEST_BODY or end > len(view):
        return None
    (reverse,) = _I64.unpack_from(view, end - _I64.size)
    if reverse != body + len(MAGIC):
        return None
    follows = view[end : end + len(MAGIC)]
    return end if len(follows) < len(MAGIC) or follows == MAGIC else None


def _decode_body(buf: pa.Buffer, view: memoryview, at: int, end: int, path: str) -> Block:
    where = f"{path} at byte {at}"
    limit = end - _I64.size
    kind, headers, start, length = decode_head(view, at, limit, where)
    check_content(start, length, limit, where)
    check_closing(view, start + length, limit, where)
    return Block(kind, headers, buf.slice(start, length), at, end - at)


def decode_head(view: memoryview, at: int, limit: int, where: str) -> tuple[BlockKind, dict[HeaderKey, str], int, int]:
    """What precedes a block's content: kind, headers, where the content begins, and its declared length.

    ``at``: of the block's magic in ``view``; ``limit``: where its headers must end. Raises as ``read_blocks``.
    """
    version, ordinal = struct.unpack_from(">ii", view, at + _SIZED_FROM)
    if version != FORMAT_VERSION:
        raise UnsupportedTableError(f"{where}: log format version {version}", fix=_NEWER)
    if ordinal not in _KINDS:
        raise UnsupportedTableError(f"{where}: log block of unknown kind {ordinal}", fix=_NEWER)
    headers, position = _decode_map(view, at + _SIZED_FROM + 8, limit, where)
    length = _read_i64(view, position, limit, where)
    return BlockKind(ordinal), headers, position + _I64.size, length


def check_content(start: int, length: int, limit: int, where: str) -> None:
    """Raises CorruptFileError for a content that does not end before ``limit``, where the block's last number is."""
    if not 0 <= length <= limit - start:
        raise _broken(where, "its content is longer than the block")


def check_closing(view: memoryview, position: int, limit: int, where: str) -> None:
    """Raises CorruptFileError when what follows the content (at ``position``) does not reach to ``limit``."""
    _, closing = _decode_map(view, position, limit, where)
    if closing != limit:
        raise _broken(where, "its parts do not fill the block")


def _encode_map(entries: Mapping[HeaderKey, str]) -> bytes:
    parts = [_I32.pack(len(entries))]
    for key, text in entries.items():
        raw = text.encode()
        parts += (_I32.pack(key), _I32.pack(len(raw)), raw)
    return b"".join(parts)


def _decode_map(view: memoryview, position: int, limit: int, where: str) -> tuple[dict[HeaderKey, str], int]:
    """The entries, and the position after them."""
    count = _read_i32(view, position, limit, where)
    position += _I32.size
    entries: dict[HeaderKey, str] = {}
    if not 0 <= count <= (limit - position) // (2 * _I32.size):
        raise _broken(where, f"a header map of {count} entries")
    for _ in range(count):
        ordinal = _read_i32(view, position, limit, where)
        length = _read_i32(view, position + _I32.size, limit, where)
        start = position + 2 * _I32.size
        if not 0 <= length <= limit - start:
            raise _broken(where, "a header is longer than the block")
        if ordinal not in _KEYS:
            raise UnsupportedTableError(f"{where}: log block header of unknown kind {ordinal}", fix=_NEWER)
        try:
            entries[HeaderKey(ordinal)] = str(view[start : start + length], "utf-8")
        except UnicodeDecodeError as error:
            raise _broken(where, "a header is not UTF-8") from error
        position = start + length
    return entries, position


def _read_i32(view: memoryview, position: int, limit: int, where: str) -> int:
    if position + _I32.size > limit:
        raise _broken(where, "it ends inside its headers")
    return int(_I32.unpack_from(view, position)[0])


def _read_i64(view: memoryview, position: int, limit: int, where: str) -> int:
    if position + _I64.size > limit:
        raise _broken(where, "it ends inside its headers")
    return int(_I64.unpack_from(view, position)[0])


def _nbytes(piece: memoryview | pa.Buffer) -> int:
    return piece.nbytes if isinstance(piece, memoryview) else piece.size


def _broken(where: str, how: str) -> CorruptFileError:
    return CorruptFileError(
        f"{where}: a log block is damaged, {how}", fix="Restore the file from a copy; verify() names every damaged file."
    )


_KINDS = frozenset(BlockKind) - {BlockKind.CORRUPT}
_KEYS = frozenset(HeaderKey)
_NEWER = "Read the table with a newer version of this library, or with the program that wrote it."
