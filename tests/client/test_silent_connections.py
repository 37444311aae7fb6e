"""A server whose machine is gone says nothing, and its connection does not break: pings find that out."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from headgate.credentials import Shown
from headgate.transport import _OPTIONS, Transport
from headgate_runtime.limits import _SERVER_OPTIONS
from support.links import ANYBODY, Link

SOON_S = 9.0
"""What a lost machine may cost a producer, beside the time in which its table's owner is replaced."""


async def silent(_: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
    """Answers once, and says no more."""
    await context.write(b"begun")
    await asyncio.Event().wait()


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    """To a server whose ``Stream`` is silent, with the settings of ours."""
    serving = grpc.aio.server(options=_SERVER_OPTIONS)
    handler = grpc.stream_stream_rpc_method_handler(silent)
    serving.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("of.Test", {"Stream": handler})])
    link = Link(lambda _: ANYBODY)
    link.upstream = ("127.0.0.1", serving.add_insecure_port("127.0.0.1:0"))
    await serving.start()
    yield link
    await asyncio.to_thread(link.close)
    await serving.stop(None)


@pytest.fixture
async def transport() -> AsyncIterator[Transport]:
    transport = Transport(Shown)
    yield transport
    await transport.close()


@pytest.mark.slow
async def test_the_sdk_gives_a_silent_connection_up_in_time_to_go_on_elsewhere(link: Link, transport: Transport) -> None:
    with transport.link(link.address) as connection:
        call: Any = connection.channel.stream_stream("/of.Test/Stream")()
        assert await call.read() == b"begun"
        # Longer than two pings: a server that takes them for an attack would end the stream by itself.
        waiting = asyncio.ensure_future(call.read())
        done, _ = await asyncio.wait([waiting], timeout=SOON_S)
        assert not done, "the stream ended though all was well"
        await asyncio.to_thread(link.cut, ANYBODY, "stall")
        await asyncio.wait([waiting], timeout=SOON_S)
        assert isinstance(failed := waiting.exception() if waiting.done() else None, grpc.aio.AioRpcError)
        assert failed.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.slow
async def test_the_sdk_finds_a_silent_connection_that_no_call_uses(link: Link, transport: Transport) -> None:
    with transport.link(link.address) as connection:
        channel = connection.channel
        async with asyncio.timeout(SOON_S):
            while (state := channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
                await channel.wait_for_state_change(state)
        await asyncio.to_thread(link.cut, ANYBODY, "stall")
        async with asyncio.timeout(SOON_S):
            await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)


def test_servers_allow_the_pings_of_the_sdk() -> None:
    assert dict(_OPTIONS)["grpc.keepalive_time_ms"] > 1.2 * dict(_SERVER_OPTIONS)["grpc.http2.min_ping_interval_without_data_ms"]
