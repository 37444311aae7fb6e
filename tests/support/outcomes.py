"""Calls of any method, about a table that is not there, and whether they came to their servicer."""

from collections.abc import Sequence
from typing import Any, Final

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.handshake import by_key
from headgate_proto.ranges import declared_range
from headgate_runtime.access.methods import declared_access
from headgate_runtime.errors import METADATA_KEY, from_call
from support.contracts import path_of

UNAUTHENTICATED, DENIED = errors_pb2.CODE_UNAUTHENTICATED, errors_pb2.CODE_PERMISSION_DENIED
ALLOWED = errors_pb2.CODE_UNSPECIFIED
"""Stands for every other answer: the call came to its servicer."""
NOT_SERVED: Final = -1
_ATTEMPTS: Final = 20
_ON_THE_WAY: Final = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNKNOWN,
}
"""What gRPC says itself, where an error of ours is not beside it."""
_STATUS: Final = {UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED, DENIED: grpc.StatusCode.PERMISSION_DENIED}
TABLE, OTHER = "matrix", "other"
"""Neither is there, so that a call which is allowed changes nothing."""


def put(message: Message, path: Any, value: str) -> Message:
    """Sets the text at the path of fields."""
    inner = message
    for name in path[:-1]:
        inner = getattr(inner, name)
    setattr(inner, path[-1], value)
    return message


def request_of(method: MethodDescriptor) -> Message:
    """About the table, as far as the method is about one. Numbers that may not be 0 are the least that they may be."""
    request, declared = GetMessageClass(method.input_type)(), declared_access(method)
    assert declared is not None
    for field in method.input_type.fields:
        asked = declared_range(field)
        if asked is not None and asked.min > 0 and not field.has_presence and not field.is_repeated:
            setattr(request, field.name, asked.min)
    for path, value in ((declared.table, TABLE), (declared.channel, "c")):
        if path:
            put(request, path, value)
    return request


async def outcome(channel: grpc.aio.Channel, method: MethodDescriptor, metadata: Sequence[tuple[str, str]]) -> int:
    """UNAUTHENTICATED, DENIED, NOT_SERVED or ALLOWED.

    What no server of ours has said is none of them, and the call is made again: grpcio hides the status from whoever writes on a
    call at the moment of its end.
    """
    for _ in range(_ATTEMPTS):
        try:
            return await _outcome(channel, method, metadata)
        except grpc.aio.AioRpcError as failed:
            if failed.code() is grpc.StatusCode.UNIMPLEMENTED:
                return NOT_SERVED
            if failed.code() not in _ON_THE_WAY or METADATA_KEY in by_key(failed.trailing_metadata()):
                return _refusal(method, failed)
    pytest.fail(f"{method.name}: gRPC alone answers, {_ATTEMPTS} times")


async def _outcome(channel: grpc.aio.Channel, method: MethodDescriptor, metadata: Sequence[tuple[str, str]]) -> int:
    """Raises AioRpcError."""
    kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
    make: Any = getattr(channel, kind)(
        path_of(method),
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    request = request_of(method)
    call = make(iter([request]) if method.client_streaming else request, metadata=tuple(metadata))
    if not method.server_streaming:
        await call
        return ALLOWED
    async for answer in call:
        ended = getattr(answer, "ended", None)
        error = getattr(ended, "error", None)
        if isinstance(error, errors_pb2.Error) and error.code in _STATUS:
            return int(error.code)
    return ALLOWED


def _refusal(method: MethodDescriptor, failed: grpc.aio.AioRpcError) -> int:
    error = from_call(failed)
    if error.code in _STATUS and failed.code() is _STATUS[error.code]:
        return int(error.code)
    if failed.code() in _STATUS.values() or error.code == errors_pb2.CODE_INTERNAL:
        pytest.fail(f"{method.name} answered {failed!r}")
    return ALLOWED


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    """Metadata; "": none."""
    return (("authorization", f"Bearer {token}"),) if token else ()
