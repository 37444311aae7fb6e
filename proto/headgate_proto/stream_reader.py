"""Reads a stream to its end, and finds the status that the server gave it.

Where a message is being written as the server ends the stream, grpcio gives the call an INTERNAL of its own: just before the
server's status comes, or after it and in its place (grpc/grpc issue 36066, grpcio 1.76 to 1.85). The words that say what to do,
and whether to come again, are gone. Of streams that are written to all the time, nineteen in twenty end so.
"""

import asyncio
import contextlib
import weakref
from collections.abc import Coroutine
from typing import Any, Final, Generic, TypeVar

import grpc
from grpc import aio

_T = TypeVar("_T")
_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")

_OF_GRPCIO: Final = "Internal error from Core"

_LOOK_S: Final = 0.001
_LOOKS: Final = 1000
"""For the server's status, if grpcio's came first: it is a millisecond behind, and never comes where gRPC refused the write."""


class StreamReader(Generic[_Answer]):
    """Of one call. To be made before anything is written to it. A write that fails says nothing; the next ``read`` does."""

    def __init__(self, call: aio.StreamStreamCall[_Request, _Answer]) -> None:
        self._call = call
        self._given = _GivenStatus()
        # Older grpcio keeps the callbacks (1.76; 1.85 does not): with more than a weak reference in them the call would live, and
        # its connection with it, until garbage is collected.
        type(call).add_done_callback(weakref.proxy(call), self._given.keep)

    async def read(self) -> Any:
        """The next message, an ``_Answer``, or ``aio.EOF``. Raises grpc.aio.AioRpcError with the status that the server gave."""
        try:
            return await self._call.read()
        except aio.AioRpcError as failed:
            status = await self._given_status() or failed
            if status.code() is grpc.StatusCode.OK:
                return aio.EOF
            raise status from None

    async def _given_status(self) -> aio.AioRpcError | None:
        for _ in range(_LOOKS):
            if self._given.status is not None:
                break
            await asyncio.sleep(_LOOK_S)
            self._given.keep(self._call)
        return self._given.status


class _GivenStatus:
    """The status that the server gave, once it is known."""

    def __init__(self) -> None:
        self.status: aio.AioRpcError | None = None

    def keep(self, call: Any) -> None:
        """The call calls it once, at its first status; a call that nobody has any more needs none."""
        with contextlib.suppress(ReferenceError):
            if self.status is None and (details := _result(call.details())) != _OF_GRPCIO:
                self.status = aio.AioRpcError(
                    _result(call.code()),
                    _result(call.initial_metadata()),
                    _result(call.trailing_metadata()),
                    details=details,
                    debug_error_string=_result(call.debug_error_string()),
                )


def _result(known: Coroutine[None, None, _T]) -> _T:
    """Of a coroutine that has nothing to wait for: on the loop it would run when the status has been replaced."""
    try:
        known.send(None)
    except StopIteration as finished:
        result: _T = finished.value
        return result
    known.close()
    raise AssertionError("the status of a call that has ended has to be waited for")
