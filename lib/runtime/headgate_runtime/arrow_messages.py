"""Encapsulated Arrow IPC messages: their parts, and what they spell once everything in them is expanded.

Arrow believes a message. A flatbuffer may reach one part over many paths, and Arrow makes a copy for each: 12 KB can spell a
schema that takes seconds to build, 200 KB one of 4 GB. What a serializer writes uses each part once, so such a message spells
no more than it carries; more is refused at the price of reading it. Field numbers: Arrow's Message.fbs and Schema.fbs.
"""

from __future__ import annotations

import struct
from typing import Final

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import RpcError, rpc_error
from headgate_runtime.flatbuffer import DamagedError, FlatTable

BYTE, SHORT, INT, LONG = struct.Struct("<B"), struct.Struct("<h"), struct.Struct("<i"), struct.Struct("<q")
SCHEMA, RECORD_BATCH = 1, 3
"""Kinds of messages. Dictionary batches, 2, are taken nowhere."""

_CONTINUATION: Final = b"\xff\xff\xff\xff"
_METADATA_V5: Final = 4
"""Older messages say elsewhere that they are compressed (``ARROW:experimental_compression``)."""


def too_large(what: str, found: int, limit: int, fix: str) -> RpcError:
    """With CODE_TOO_LARGE, to be raised; the limit stands in the message."""
    return rpc_error(errors_pb2.CODE_TOO_LARGE, f"{what}: {found:,}, and the limit is {limit:,}", fix)


class Spelled:
    """Counts what a message of ``size`` bytes spells. ``metadata``: how many key-value pairs it may have."""

    def __init__(self, size: int, metadata: int) -> None:
        self._text = size
        self._metadata_limit = self._metadata = metadata
        self._visited: set[int] = set()

    def visit(self, table: FlatTable) -> None:
        """Raises DamagedError for a table that another path has reached before."""
        if table.at in self._visited:
            raise DamagedError("a part of it is used twice")
        self._visited.add(table.at)

    def text(self, table: FlatTable, field: int) -> str:
        """A string of the table. Raises DamagedError as ``content`` does, and when it is not UTF-8.

        Arrow takes one that is not, and fails when somebody reads it.
        """
        try:
            return self.content(table, field).decode()
        except UnicodeDecodeError:
            raise DamagedError("a name in it is not UTF-8") from None

    def content(self, table: FlatTable, field: int) -> bytes:
        """A string of the table. Raises DamagedError when all strings so far are longer than the message."""
        text = table.text(field)
        self._text -= len(text)
        if self._text < 0:
            raise DamagedError("a text of it is used twice")
        return bytes(text)

    def pairs(self, table: FlatTable, field: int) -> dict[bytes, bytes]:
        """Metadata of a message, a schema or a field. Raises DamagedError, RpcError (CODE_TOO_LARGE)."""
        entries = table.tables(field, self._metadata)
        if entries is None:
            fix = "Leave metadata out: tables do not store any."
            raise too_large("entries of metadata", self._metadata_limit + 1, self._metadata_limit, fix)
        self._metadata -= len(entries)
        found: dict[bytes, bytes] = {}
        for entry in entries:
            self.visit(entry)
            found[self.content(entry, 0)] = self.content(entry, 1)
        return found


def open_message(message: bytes | memoryview, kind: int, name: str, metadata: int) -> tuple[FlatTable, memoryview, Spelled]:
    """The header of an encapsulated message of that kind, its body, and the count of what it spells, its metadata included.

    ``metadata``: how many key-value pairs it may have. Raises DamagedError, RpcError (CODE_TOO_LARGE).
    """
    if len(message) < 8 or message[:4] != _CONTINUATION:
        raise DamagedError("it does not begin as one")
    view = memoryview(message)
    size = int.from_bytes(message[4:8], "little", signed=True)
    if size < 8 or size > len(message) - 8:
        raise DamagedError("its length is wrong")
    root = FlatTable.root(view[8 : 8 + size])
    body = view[8 + size :]
    if root.number(0, SHORT, 0) != _METADATA_V5:
        raise DamagedError("it is not of metadata version 5, which Arrow 1.0 and newer write")
    if root.number(1, BYTE, 0) != kind:
        raise DamagedError(f"it is no {name} message")
    header = root.table(2)
    if header is None or root.number(3, LONG, 0) != len(body):
        raise DamagedError("its length is wrong")
    spelled = Spelled(size, metadata)
    spelled.visit(root)
    spelled.visit(header)
    spelled.pairs(root, 4)
    return header, body, spelled
