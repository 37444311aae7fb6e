"""Requests that carry rows, serialized around bytes that protobuf never gets.

Python's protobuf copies the rows into their message, again into the one around it, and serializes all of that to say its size and
once more to send it. A client spent more on that than on everything else that it does with rows of 10 kB.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message

from headgate_proto.api.v1.parts_pb2 import Part

if TYPE_CHECKING:
    from grpc import aio

_Answer = TypeVar("_Answer", bound=Message)
_Request = TypeVar("_Request", bound=Message)

PART_BYTES: Final = 1 << 20
"""A request above this comes in parts, each with so much of it. gRPC receives that much of every stream whose next message is
awaited. Lower: more streams in the same memory, and more messages, about 2 ms of CPU each at both ends of a busy stream."""

Pieces: TypeAlias = Sequence[bytes | memoryview]
"""A serialized message, cut anywhere. Memory views are of single bytes."""

_LENGTH_DELIMITED: Final = 2
"""Protobuf's wire type of bytes and of messages in messages."""


def with_bytes(message: Message, number: int, content: bytes | memoryview) -> Pieces:
    """The message with ``content`` in its field ``number``, which it must not have itself. The content is not copied."""
    return [message.SerializeToString(), *inside(number, [content])]


def inside(number: int, pieces: Pieces) -> Pieces:
    """A message that has nothing but ``pieces`` as its field ``number``."""
    return [_varint(number << 3 | _LENGTH_DELIMITED) + _varint(_size(pieces)), *pieces]


def requests_of(pieces: Pieces, part_number: int) -> Iterator[bytes]:
    """What to send of a serialized request of a stream: itself, or its parts in order (parts.proto), requests with nothing but a
    part as their field ``part_number``.
    """
    size = _size(pieces)
    if size <= PART_BYTES:
        yield b"".join(pieces)
        return
    whole = memoryview(b"".join(pieces))
    for at in range(0, size, PART_BYTES):
        part = with_bytes(Part(request_bytes=0 if at else size), Part.CONTENT_FIELD_NUMBER, whole[at : at + PART_BYTES])
        yield b"".join(inside(part_number, part))


def in_parts(request: _Request) -> Iterable[_Request]:
    """What to send of a request of a stream, whose type has a field ``part``: itself, or its parts in order. For requests without
    rows, which are seldom too large.
    """
    if request.ByteSize() <= PART_BYTES:
        return [request]
    number = request.DESCRIPTOR.fields_by_name["part"].number
    return map(type(request).FromString, requests_of([request.SerializeToString()], number))


def stream_of_requests(
    channel: "aio.Channel", service: ServiceDescriptor, method: str, answer: type[_Answer]
) -> "aio.StreamStreamMultiCallable[bytes, _Answer]":
    """Calls a method of two streams with serialized requests. ``answer``: the type of its answers."""
    return channel.stream_stream(f"/{service.full_name}/{method}", response_deserializer=answer.FromString)


def _size(pieces: Pieces) -> int:
    return sum(map(len, pieces))


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have the highest bit set."""
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)
