"""Flatbuffers made by hand, of parts that any number of others may point to: what no serializer writes.

A part that stands in several places is written once, with an offset to it from each. Layout: flatbuffers' binary format.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, eq=False)
class Scalar:
    """``form``: of the struct module, little-endian."""

    form: str
    value: int


@dataclass(frozen=True, eq=False)
class Text:
    content: bytes


@dataclass(frozen=True, eq=False)
class Structs:
    """A vector of ``count`` scalars or structs, aligned to 8."""

    count: int
    content: bytes


@dataclass(frozen=True, eq=False)
class Vector:
    items: "Sequence[Part]"


@dataclass(frozen=True, eq=False)
class Table:
    """By the number of the field."""

    fields: "Mapping[int, Scalar | Part]"


Part: TypeAlias = Text | Structs | Vector | Table


def flatbuffer(root: Table) -> bytes:
    """Every part once, behind all that point to it."""
    written = bytearray(8)
    wanted: dict[int, list[int]] = {id(root): [0]}
    for part in _parents_first(root):
        _write(part, written, wanted)
    return bytes(written) + bytes(-len(written) % 8)


def _parents_first(root: Table) -> Sequence[Part]:
    found: list[Part] = []
    seen: set[int] = {id(root)}
    stack: list[tuple[Part, Iterator[Part]]] = [(root, iter(_children(root)))]
    while stack:
        part, children = stack[-1]
        child = next((each for each in children if id(each) not in seen), None)
        if child is None:
            found.append(part)
            stack.pop()
        else:
            seen.add(id(child))
            stack.append((child, iter(_children(child))))
    return found[::-1]


def _children(part: Part) -> Sequence[Part]:
    match part:
        case Vector():
            return part.items
        case Table():
            return [each for each in part.fields.values() if not isinstance(each, Scalar)]
        case _:
            return ()


def _write(part: Part, written: bytearray, wanted: dict[int, list[int]]) -> None:
    match part:
        case Text():
            _begin(part, written, wanted, 4)
            written += struct.pack("<I", len(part.content)) + part.content + b"\0"
        case Structs():
            _begin(part, written, wanted, 8, before=4)
            written += struct.pack("<I", part.count) + part.content
        case Vector():
            _begin(part, written, wanted, 4)
            written += struct.pack("<I", len(part.items))
            for item in part.items:
                wanted.setdefault(id(item), []).append(len(written))
                written += bytes(4)
        case Table():
            _write_table(part, written, wanted)


def _write_table(table: Table, written: bytearray, wanted: dict[int, list[int]]) -> None:
    places, size = dict[int, int](), 4
    for number, value in table.fields.items():
        width = struct.calcsize(value.form) if isinstance(value, Scalar) else 4
        places[number] = size + -size % width
        size = places[number] + width
    slots = [places.get(number, 0) for number in range(max(places, default=-1) + 1)]
    vtable = struct.pack(f"<HH{len(slots)}H", 4 + 2 * len(slots), size, *slots)
    _align(written, 8, before=len(vtable))
    start = len(written)
    written += vtable
    _begin(table, written, wanted, 1)
    at = len(written)
    written += struct.pack("<i", at - start) + bytes(size - 4)
    for number, value in table.fields.items():
        if isinstance(value, Scalar):
            struct.pack_into(value.form, written, at + places[number], value.value)
        else:
            wanted.setdefault(id(value), []).append(at + places[number])


def _begin(part: Part, written: bytearray, wanted: dict[int, list[int]], width: int, before: int = 0) -> None:
    """Aligns what comes ``before`` bytes behind, and points all that wait for the part to here."""
    _align(written, width, before)
    for place in wanted.pop(id(part)):
        struct.pack_into("<I", written, place, len(written) - place)


def _align(written: bytearray, width: int, before: int) -> None:
    written += bytes(-(len(written) + before) % width)
