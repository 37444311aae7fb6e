"""Cuts a request of a stream into parts (parts.proto), for all that send rows."""

from collections.abc import Iterator
from typing import Final

from headgate_proto.api.v1.parts_pb2 import Part

PART_BYTES: Final = 256 << 10
"""A request above this comes in parts, each with so much of it. gRPC receives that much of every stream whose next message is
awaited. Lower: more streams in the same memory, and more messages, 60 us of CPU each."""


def parts_of(request: bytes) -> Iterator[Part]:
    """The parts of a serialized request, in order."""
    for at in range(0, len(request), PART_BYTES):
        yield Part(content=request[at : at + PART_BYTES], request_bytes=len(request) if at == 0 else 0)
