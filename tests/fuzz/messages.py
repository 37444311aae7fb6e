"""Messages of any type, drawn from its descriptor: right in form, strange in content. The same seed gives the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headgate_proto.ranges import INTEGERS, declared_range

DEEPEST = 4
"""Messages in messages, beyond which only empty ones are drawn."""
_EDGES = (0, 1, 2, 3, 7, 127, 128, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
_FLOATS = (0.0, -1.0, 1e308, float("inf"), float("-inf"), float("nan"))
_NATURAL = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_TEXTS = (
    "",
    " ",
    "a" * 300,
    "x" * 100_000,
    "../../../etc",
    "/",
    "%2e%2e",
    "a\x00b",
    "a\nb",
    "ü/日本",
    "\U0001f600",
    "nan",
    "-1",
    "{}",
    "[[",
)
"""Beside names that mean something."""


@dataclass(frozen=True)
class Vocabulary:
    """Values that get past the first check. ``names``: of tables and channels; ``blobs``: schemas and rows, some right.

    ``makers`` make bytes by the name of their field.
    """

    names: Sequence[str]
    blobs: Sequence[bytes]
    makers: Mapping[str, Callable[[Random], bytes]]


def draw(descriptor: Descriptor, random: Random, words: Vocabulary, depth: int = 0) -> Message:
    """One message. Of each oneof at most one field is set, so that most messages mean something."""
    message = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if field.containing_oneof is None and random.random() < 0.7:
            _set(message, field, random, words, depth)
    for choice in descriptor.oneofs:
        if random.random() < 0.95:
            _set(message, random.choice(list(choice.fields)), random, words, depth)
    return message


def _set(message: Message, field: FieldDescriptor, random: Random, words: Vocabulary, depth: int) -> None:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        _fill_map(message, field, random, words, depth)
    elif field.is_repeated:
        values = [_value(field, random, words, depth) for _ in range(_count(random))]
        getattr(message, field.name).extend(values)
    elif kind is not None:
        getattr(message, field.name).CopyFrom(_value(field, random, words, depth))
    else:
        setattr(message, field.name, _value(field, random, words, depth))


def _fill_map(message: Message, field: FieldDescriptor, random: Random, words: Vocabulary, depth: int) -> None:
    assert field.message_type is not None
    entry = field.message_type.fields_by_name
    filled = getattr(message, field.name)
    for _ in range(_count(random)):
        key = _value(entry["key"], random, words, depth)
        if entry["value"].message_type is not None:
            filled[key].CopyFrom(_value(entry["value"], random, words, depth))
        else:
            filled[key] = _value(entry["value"], random, words, depth)


def _count(random: Random) -> int:
    return random.choice((0, 1, 1, 2, 3, 200))


def _value(field: FieldDescriptor, random: Random, words: Vocabulary, depth: int) -> Any:
    if field.message_type is not None:
        kind = field.message_type
        return draw(kind, random, words, depth + 1) if depth < DEEPEST else GetMessageClass(kind)()
    if field.enum_type is not None:
        return random.choice([*field.enum_type.values_by_number, 99])
    if field.type == FieldDescriptor.TYPE_BYTES:
        make = words.makers.get(field.name)
        return make(random) if make is not None and random.random() < 0.5 else _blob(random, words)
    if field.cpp_type in INTEGERS:
        return _integer(field, random)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return random.random() < 0.5
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return random.choice(words.names) if random.random() < 0.6 else random.choice(_TEXTS)
    return random.choice(_FLOATS)


def _integer(field: FieldDescriptor, random: Random) -> int:
    """Mostly one that gets through the door."""
    least, most = _NATURAL[field.cpp_type]
    declared = declared_range(field)
    if declared is not None and random.random() < 0.95:
        least, most = declared.min, declared.max
    return random.choice([least, most, *(each for each in _EDGES if least <= each <= most)])


def _blob(random: Random, words: Vocabulary) -> bytes:
    known = bytearray(random.choice(words.blobs))
    match random.randrange(4):
        case 0:
            return bytes(known)
        case 1:
            return random.randbytes(random.choice((0, 1, 64, 4096)))
        case 2:
            return bytes(known[: random.randrange(len(known) + 1)])
        case _:
            for _ in range(random.randint(1, 8)):
                known[random.randrange(len(known))] = random.randrange(256)
            return bytes(known)
