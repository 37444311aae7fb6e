"""Requests of a stream that may come in parts (parts.proto)."""

from typing import Final, Protocol, TypeVar

from headgate_proto.api.v1.parts_pb2 import Part

PART_BYTES: Final = 1 << 20
"""A request above this comes in parts, each with so much of it. gRPC receives that much of every stream whose next message is
awaited. Lower: more streams in the same memory, and more messages, about 2 ms of CPU each at both ends of a busy stream."""


class PartedRequest(Protocol):
    """A request of a stream that may come in parts."""

    @property
    def part(self) -> Part: ...


Request = TypeVar("Request", bound=PartedRequest)
