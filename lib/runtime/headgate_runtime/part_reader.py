"""Reads the requests of a stream, those that come in parts too (parts.proto), within a budget of memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, Protocol, TypeVar

import grpc

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1.parts_pb2 import Part
from headgate_runtime.errors import rpc_error
from headgate_runtime.limits import MAX_MESSAGE_BYTES
from headgate_runtime.read_budget import ReadBudget

_COPIES = 2
"""The joined bytes and the request that is made of them exist at once."""
_SLOWEST = 256 << 10
"""Bytes a second. A sender that is slower keeps memory from others."""


class PartedRequest(Protocol):
    """A request of a stream that may come in parts."""

    @property
    def part(self) -> Part: ...


Request = TypeVar("Request", bound=PartedRequest)


class PartReader(Generic[Request]):
    """The requests of one stream.

    ``decode``: a request of its bytes, or RpcError (RequestReader.of_method). ``budget``: the memory for requests in parts, which
    ``caller`` shares with others; None for streams of the cluster's own services, which count their bytes themselves.
    ``seconds``: how long the parts of the smallest request may take. ``most``: bytes of a request in parts.
    """

    def __init__(
        self,
        context: Any,
        decode: Callable[[bytes], Request],
        budget: ReadBudget | None,
        caller: str,
        *,
        seconds: float = 10.0,
        most: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self._context = context
        self._decode = decode
        self._budget = budget
        self._caller = caller
        self._seconds = seconds
        self._most = most
        self._reserved = 0
        self.heard = 0
        """Requests and parts that have come: signs of life of a peer that sends a large request slowly."""

    def __aiter__(self) -> AsyncIterator[Request]:
        """All requests up to the end of the stream. Raises as ``read`` does."""
        return self

    async def __anext__(self) -> Request:
        if (request := await self.read()) is None:
            raise StopAsyncIteration
        return request

    async def read(self) -> Request | None:
        """The next request, None at the end of the stream. Its memory is counted until ``release`` or the next call.

        Raises RpcError: TOO_LARGE, INVALID_ARGUMENT for parts that make no request, UNAVAILABLE when they come too slowly.
        """
        self.release()
        if (request := await self._next()) is None or not request.part.content:
            return request
        first: bytes = request.part.content
        total: int = request.part.request_bytes
        del request
        if not len(first) < total:
            raise _no_request()
        if total > self._most:
            raise rpc_error(
                errors_pb2.CODE_TOO_LARGE,
                f"a request of {total:,} bytes; the limit is {self._most:,}",
                "Send less at once.",
            )
        if self._budget is not None:
            await self._budget.reserve(self._caller, _COPIES * total, patient=True)
            self._reserved = _COPIES * total
        return await self._joined(first, total)

    def release(self) -> None:
        """The last request is gone, and its memory is free."""
        if self._budget is not None and self._reserved:
            self._budget.free(self._caller, self._reserved)
        self._reserved = 0

    async def _next(self) -> Request | None:
        received: Any = await self._context.read()
        self.heard += 1
        return None if received is grpc.aio.EOF else received

    async def _joined(self, first: bytes, total: int) -> Request:
        content = bytearray(first)
        seconds = self._seconds + total / _SLOWEST
        try:
            async with asyncio.timeout(seconds):
                while len(content) < total:
                    following = await self._next()
                    piece = following.part.content if following is not None else b""
                    if not piece or len(content) + len(piece) > total:
                        raise _no_request()
                    content += piece
        except TimeoutError:
            raise rpc_error(
                errors_pb2.CODE_UNAVAILABLE, f"a request of {total:,} bytes took longer than {seconds:.0f} s", "Send it again."
            ) from None
        request = self._decode(bytes(content))
        if request.part.content:
            raise _no_request()
        return request


def _no_request() -> Exception:
    return rpc_error(
        errors_pb2.CODE_INVALID_ARGUMENT, "the parts make no request", "Send all parts of a request, nothing between."
    )
