"""Reads requests: refuses what is no message of its method, and integers outside the ranges that the contracts declare."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import structlog
from google.protobuf import descriptor_pool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.ranges import OutOfRangeError, check_ranges
from headgate_runtime.errors import RpcError, rpc_error
from headgate_runtime.world import Clock

QUIET_S: Final = 10.0
"""Seconds between two lines in the log about requests that cannot be read: a client can send thousands a second."""

_log = structlog.get_logger()


class RequestReader:
    """For all methods of a server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._quiet_until = clock.monotonic()
        self._unlogged = 0

    def of_method(self, method: str) -> Callable[[bytes], Any]:
        """Returns what reads a request of ``method`` ("/package.Service/Name"), also one that came in parts.

        That raises RpcError (INVALID_ARGUMENT).
        """
        kind = _request_of(method)

        def read(content: bytes) -> Message:
            try:
                message: Message = kind.FromString(content)
                check_ranges(message)
            except DecodeError:
                raise self._refusal(method, f"the request is no {kind.DESCRIPTOR.full_name}", _BROKEN) from None
            except OutOfRangeError as wrong:
                raise self._refusal(method, str(wrong), "Send a value in that range.") from None
            return message

        return read

    def _refusal(self, method: str, what: str, fix: str) -> RpcError:
        now = self._clock.monotonic()
        if now < self._quiet_until:
            self._unlogged += 1
        else:
            _log.warning("request refused", method=method, why=what, more_since_the_last_line=self._unlogged)
            self._unlogged, self._quiet_until = 0, now + QUIET_S
        return rpc_error(errors_pb2.CODE_INVALID_ARGUMENT, what, fix)


_BROKEN: Final = "Send the method's message, as the contracts of this version have it."


@cache
def _request_of(method: str) -> Any:
    """The class of a method's requests."""
    found: Any = descriptor_pool.Default().FindMethodByName(method.removeprefix("/").replace("/", "."))
    return GetMessageClass(found.input_type)
