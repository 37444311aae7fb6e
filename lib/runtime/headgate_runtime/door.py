"""What a call may cost before its handler runs: places, memory and time for the request (docs/operations.md has the sums).

A unary method is served as a stream, which is the same on the wire: gRPC reads the whole request of a unary handler before it
calls it, while of a stream nothing is read until somebody asks.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack, aclosing, nullcontext
from inspect import isasyncgenfunction
from typing import Any, TypeAlias

import grpc

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.access.call import Metadata
from headgate_runtime.access.methods import HEALTH
from headgate_runtime.call_limiter import CallLimiter
from headgate_runtime.errors import RpcError, only_rpc_error, rpc_error
from headgate_runtime.limits import DoorLimits, request_bytes_of
from headgate_runtime.newest import Newest
from headgate_runtime.peers import CLUSTER_SERVICES
from headgate_runtime.read_budget import ReadBudget
from headgate_runtime.tarpit import Tarpit

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
MetadataOf: TypeAlias = Callable[[Context], Metadata]
"""What came with a call, of which gRPC makes a dict anew for everybody who asks."""
Serve: TypeAlias = Callable[[Any, Context], Awaitable[None]]
"""Of a stream: takes the requests and the context, and has written all answers when it returns."""
Running: TypeAlias = Callable[[Any, Context], AbstractContextManager[None]]
"""Around a method: takes its request, or the iterator of a stream of requests, and the context. It may refuse the call."""


class Door:
    """The limits of one server, and what of them is in use. ``sharer``: who shares limits with other calls of the same name.

    ``running``: around all methods but those of the health service. ``tarpit``: of the process.
    """

    def __init__(self, limits: DoorLimits, sharer: Callable[[Context], str], running: Running, tarpit: Tarpit) -> None:
        self._limits = limits
        self._sharer = sharer
        self._running = running
        self._calls = CallLimiter(limits.calls)
        self.budget = ReadBudget(limits.read_bytes, limits.read_seconds)
        self._checks = Newest(min(limits.watchers, limits.stranger_bytes // limits.message_bytes))
        self._watchers = Newest(limits.watchers)
        self._tarpit = tarpit

    def serve(self, handler: Any, method: str) -> Any:
        """The handler that serves a call of ``method`` behind the limits; always one of a stream."""
        serve: Serve
        if method.startswith(HEALTH):
            serve = self._stranger(handler, method, _answering(handler, _without_a_right))
        else:
            answer = _answering(handler, self._running)
            serve = answer if handler.request_streaming else self._one_request(handler, method, answer)
            if not method.startswith(CLUSTER_SERVICES):
                serve = self._counted(serve)
        return grpc.stream_stream_rpc_method_handler(
            serve, handler.request_deserializer if handler.request_streaming else None, handler.response_serializer
        )

    def _counted(self, serve: Serve) -> Serve:
        async def counted(requests: Any, context: Context) -> None:
            sharer = self._sharer(context)
            with ExitStack() as place:
                try:
                    place.enter_context(self._calls.counted(sharer))
                except RpcError:
                    await self._tarpit.wait_in_a_place(sharer)
                    raise
                refusal = await _refusal(serve, requests, context)
                if refusal is None:
                    return
                await self._tarpit.wait_if_at_fault(sharer, refusal)
                raise RpcError(refusal)

        return counted

    def _one_request(self, handler: Any, method: str, answer: Serve) -> Serve:
        async def serve(_requests: Any, context: Context) -> None:
            async with self.budget.reserved(self._sharer(context), self._limits.message_bytes):
                try:
                    async with asyncio.timeout(self._limits.read_seconds):
                        request = await _read(handler, method, context)
                except TimeoutError:
                    raise _too_slow(self._limits.read_seconds) from None
            await answer(request, context)

        return serve

    def _stranger(self, handler: Any, method: str, answer: Serve) -> Serve:
        async def serve(_requests: Any, context: Context) -> None:
            await self._tarpit.wait_for_check(context.peer())
            async with self._checks.turn(self._limits.stranger_seconds):
                request = await _read(handler, method, context)
            async with self._watchers.turn(None):
                await answer(request, context)

        return serve


async def _refusal(serve: Serve, requests: Any, context: Context) -> errors_pb2.Error | None:
    """The error with which the method refuses the call, and nothing else of it: an exception would keep the request."""
    try:
        await serve(requests, context)
    except Exception as error:
        if (refusal := _wire_error_of(error)) is None:
            raise
        return refusal
    return None


def _wire_error_of(error: Exception) -> errors_pb2.Error | None:
    """By a function: a variable with the exception would be part of its traceback, and this cycle would keep the request."""
    refused = only_rpc_error(error)
    return None if refused is None else refused.error


async def _read(handler: Any, method: str, context: Context) -> Any:
    """The one request of a unary method. Raises RpcError: TOO_LARGE, INVALID_ARGUMENT."""
    received: object = await context.read()
    if not isinstance(received, bytes):
        raise rpc_error(errors_pb2.CODE_INVALID_ARGUMENT, "the call ended without a request", "Send one.")
    if len(received) > (most := request_bytes_of(method)):
        raise rpc_error(
            errors_pb2.CODE_TOO_LARGE,
            f"the request has {len(received):,} bytes, and the limit is {most:,}",
            "Send a smaller one.",
        )
    return handler.request_deserializer(received)


def _answering(handler: Any, running: Running) -> Serve:
    """``handler``'s method, whatever its kind, inside ``running``, as a coroutine that writes its answers."""
    if not handler.response_streaming:
        one = handler.stream_unary if handler.request_streaming else handler.unary_unary

        async def write_one(request: Any, context: Context) -> None:
            with running(request, context):
                answer = await one(request, context)
            await context.write(answer)

        return write_one
    several = handler.stream_stream if handler.request_streaming else handler.unary_stream
    if isasyncgenfunction(several):

        async def write_all(request: Any, context: Context) -> None:
            with running(request, context):
                async with aclosing(several(request, context)) as answers:
                    async for answer in answers:
                        await context.write(answer)

        return write_all

    async def run(request: Any, context: Context) -> None:
        with running(request, context):
            await several(request, context)

    return run


def _without_a_right(_request: object, _context: Context) -> AbstractContextManager[None]:
    return nullcontext()


def _too_slow(seconds: float) -> Exception:
    return rpc_error(
        errors_pb2.CODE_UNAVAILABLE, f"the request did not arrive within {seconds:g} s", "Send the same again, faster."
    )
