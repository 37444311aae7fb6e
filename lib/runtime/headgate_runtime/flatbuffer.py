"""Reads a flatbuffer's tables, and checks every offset against the message.

The `flatbuffers` package has no verifier in Python: an offset that points before the message wraps around. It also takes some
microseconds per field, which slows down a channel that sends single rows. Layout: flatbuffers' binary format ("internals").
"""

from __future__ import annotations

import struct

_I32 = struct.Struct("<i")
_U32 = struct.Struct("<I")
_U16 = struct.Struct("<H")
_OUTSIDE = "an offset points outside of it"


class DamagedError(Exception):
    """The bytes are not a flatbuffer of the expected shape; the text says what is wrong with them."""


class FlatTable:
    """One table of a flatbuffer. Fields count from 0 in the order of the schema; an absent field has its default.

    Every method raises DamagedError for an offset outside the buffer.

    ``at``: its position in the buffer. Two paths of a hostile message may lead to one position.
    """

    __slots__ = ("_buffer", "_fields", "_vtable", "at")

    def __init__(self, buffer: bytes | memoryview, at: int) -> None:
        self._buffer = buffer
        self.at = at
        self._vtable = at - self._read(_I32, at)
        size = self._read(_U16, self._vtable)
        self._fields = (size - 4) // 2
        self._read(_U16, self._vtable + size - 2)

    @classmethod
    def root(cls, buffer: bytes | memoryview) -> FlatTable:
        """Returns the buffer's root table."""
        if len(buffer) < 8:
            raise DamagedError("it is too short")
        return cls(buffer, _U32.unpack_from(buffer, 0)[0])

    def number(self, field: int, form: struct.Struct, default: int) -> int:
        """Returns a scalar field of that form."""
        at = self._position(field)
        return default if at is None else self._read(form, at)

    def table(self, field: int) -> FlatTable | None:
        """Returns a table field, None when it is absent."""
        at = self._position(field)
        return None if at is None else FlatTable(self._buffer, at + self._read(_U32, at))

    def tables(self, field: int, most: int) -> list[FlatTable] | None:
        """Returns a vector of tables, None when it has more than ``most``."""
        at, length = self._vector(field, 4)
        if length > most:
            return None
        return [FlatTable(self._buffer, place + self._read(_U32, place)) for place in range(at, at + 4 * length, 4)]

    def elements(self, field: int, width: int) -> memoryview:
        """The bytes of a vector of scalars or structs of ``width`` bytes each; empty when absent."""
        at, length = self._vector(field, width)
        return memoryview(self._buffer)[at : at + length * width]

    def text(self, field: int) -> memoryview:
        """A string's bytes, not copied; empty when absent."""
        return self.elements(field, 1)

    def _vector(self, field: int, width: int) -> tuple[int, int]:
        """Returns the position of the first element and the number of elements, all of which lie inside the buffer."""
        place = self._position(field)
        if place is None:
            return 0, 0
        at = place + self._read(_U32, place)
        length = self._read(_U32, at)
        if at + 4 + length * width > len(self._buffer):
            raise DamagedError(_OUTSIDE)
        return at + 4, length

    def _position(self, field: int) -> int | None:
        if field >= self._fields:
            return None
        offset = self._read(_U16, self._vtable + 4 + 2 * field)
        return self.at + offset if offset else None

    def _read(self, form: struct.Struct, at: int) -> int:
        if at < 0 or at + form.size > len(self._buffer):
            raise DamagedError(_OUTSIDE)
        value: int = form.unpack_from(self._buffer, at)[0]
        return value
