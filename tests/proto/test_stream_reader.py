"""What a server says as it ends a stream reaches who reads, also while messages are being written."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from headgate_proto.handshake import by_key
from headgate_proto.stream_reader import StreamReader

_STREAMS = 40
"""Of which grpcio by itself shows the server's status of two."""


async def _abort(requests: Any, context: Any) -> None:
    await anext(requests)
    await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not yours", (("why-bin", b"\x01"),))


async def _end(requests: Any, context: Any) -> None:
    await context.write(await anext(requests))


@asynccontextmanager
async def _calls_to(behaviour: Any) -> AsyncIterator[Any]:
    """Yields a function that calls a stream of bytes, of a server that serves it so."""
    server = grpc.aio.server()
    methods: dict[str, Any] = {"Method": grpc.stream_stream_rpc_method_handler(behaviour)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Service", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel.stream_stream("/test.Service/Method")
    finally:
        await server.stop(0)


async def _write_on(call: Any) -> None:
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        while True:
            await call.write(b"x")


async def test_the_status_of_a_server_is_read_while_messages_are_written() -> None:
    async with _calls_to(_abort) as method:
        for _ in range(_STREAMS):
            call = method()
            reader: StreamReader[bytes] = StreamReader(call)
            async with asyncio.TaskGroup() as group:
                group.create_task(_write_on(call))
                with pytest.raises(grpc.aio.AioRpcError) as ended:
                    await reader.read()
            assert (ended.value.code(), ended.value.details()) == (grpc.StatusCode.PERMISSION_DENIED, "not yours")
            assert by_key(ended.value.trailing_metadata())["why-bin"] == b"\x01"


async def test_a_stream_that_a_server_ends_in_peace_ends_so_while_messages_are_written() -> None:
    async with _calls_to(_end) as method:
        for _ in range(_STREAMS):
            call = method()
            reader: StreamReader[bytes] = StreamReader(call)
            async with asyncio.TaskGroup() as group:
                group.create_task(_write_on(call))
                assert [await reader.read(), await reader.read()] == [b"x", grpc.aio.EOF]


async def test_a_stream_that_breaks_says_what_grpc_says() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        reader: StreamReader[bytes] = StreamReader(channel.stream_stream("/test.Service/Method")())
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await reader.read()
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_call_that_is_over_is_gone_without_a_collection_of_garbage() -> None:
    """Its connection is closed with it."""
    async with _calls_to(_end) as method:
        gc.disable()
        try:
            call = method()
            reader: StreamReader[bytes] = StreamReader(call)
            await call.write(b"x")
            assert [await reader.read(), await reader.read()] == [b"x", grpc.aio.EOF]
            left = weakref.ref(call)
            del call, reader
            await asyncio.sleep(0.05)
            assert left() is None
        finally:
            gc.enable()
