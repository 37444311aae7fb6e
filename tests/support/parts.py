"""Cuts requests into parts by protobuf's own means."""

from collections.abc import Iterator
from typing import TypeVar

from headgate_proto.api.v1.ingest_pb2 import AppendRequest
from headgate_proto.api.v1.parts_pb2 import Part
from headgate_proto.cluster.v1.exchange_pb2 import ExchangeRequest
from headgate_proto.serialized import PART_BYTES

Request = TypeVar("Request", AppendRequest, ExchangeRequest)


def messages_of(request: Request) -> Iterator[Request]:
    """What to send of a request: itself, or its parts in order."""
    if request.ByteSize() <= PART_BYTES:
        yield request
        return
    for part in parts_of(request.SerializeToString()):
        yield type(request)(part=part)


def parts_of(request: bytes) -> Iterator[Part]:
    """The parts of a serialized request, in order."""
    for at in range(0, len(request), PART_BYTES):
        yield Part(content=request[at : at + PART_BYTES], request_bytes=len(request) if at == 0 else 0)
