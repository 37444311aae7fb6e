"""A server that comes back at another address of its name, as a pod of a StatefulSet does."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from headgate import transport as of_programs
from headgate.credentials import Shown
from headgate.transport import Transport
from headgate_proto.lookups import lookup_options
from headgate_runtime import channels as of_services
from headgate_runtime.channels import connect
from headgate_runtime.settings import ServiceSettings
from support.moving_name import moving_name

SOON_S = 10.0
"""A third of the time after which gRPC looks a name up again by default, and less than a lookup without an answer lasts then."""
NOWHERE, HERE = "127.0.0.2", "127.0.0.1"
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
SHOWN = """
from headgate.transport import _OPTIONS
from headgate_proto.lookups import lookup_options
from headgate_runtime.limits import CLIENT_OPTIONS
print(*(set(lookup_options()) <= set(options) for options in (_OPTIONS, CLIENT_OPTIONS)))
"""


@pytest.mark.slow
async def test_the_sdk_reaches_a_server_that_came_back_at_another_address() -> None:
    async with server() as port, moving_name(NOWHERE) as name:
        transport = Transport(Shown)
        with transport.link(name.target(port)) as link:
            assert await outcome(link.channel) is grpc.StatusCode.UNAVAILABLE
            name.address = HERE
            await answered(link.channel)
        await transport.close()


async def test_a_connection_that_was_lost_is_made_anew_to_where_the_name_is_by_then() -> None:
    """gRPC would first connect to the address of before, where a machine that is gone answers nothing, not even a refusal."""
    async with moving_name(HERE) as name:
        transport = Transport(Shown)
        async with server() as port:
            with transport.link(name.target(port)) as first:
                await answered(first.channel)
            with transport.link(name.target(port)) as second:
                assert second.channel is first.channel
        while first.channel.get_state() is grpc.ChannelConnectivity.READY:
            await first.channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
        with transport.link(name.target(port)) as third:
            assert third.channel is not first.channel
        await transport.close()
        assert first.channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN


@pytest.mark.slow
async def test_a_service_reaches_a_server_that_came_back_at_another_address() -> None:
    async with server() as port, moving_name(NOWHERE) as name:
        channel = connect(name.target(port), ServiceSettings())
        assert await outcome(channel) is grpc.StatusCode.UNAVAILABLE
        name.address = HERE
        await answered(channel)
        await channel.close()


@pytest.mark.slow
async def test_a_program_in_a_pod_finds_a_name_while_one_of_several_dns_servers_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_programs, "_OPTIONS", [*of_programs._OPTIONS, *lookup_options(POD)])
    async with server() as port, moving_name(HERE, unheard=True) as name:
        transport = Transport(Shown)
        with transport.link(name.target(port)) as link:
            await answered(link.channel)
        await transport.close()


@pytest.mark.slow
async def test_a_service_in_a_pod_finds_a_name_while_one_of_several_dns_servers_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_services, "CLIENT_OPTIONS", (*of_services.CLIENT_OPTIONS, *lookup_options(POD)))
    async with server() as port, moving_name(HERE, unheard=True) as name:
        channel = connect(name.target(port), ServiceSettings())
        await answered(channel)
        await channel.close()


def test_outside_of_pods_grpc_has_the_time_to_ask_the_next_of_the_machine_s_servers() -> None:
    assert lookup_options({}) == (("grpc.dns_min_time_between_resolutions_ms", 1_000),)


def test_programs_and_services_begin_with_the_options_of_a_pod() -> None:
    environment = {**os.environ, **POD}
    said = subprocess.run([sys.executable, "-c", SHOWN], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout == "True True\n"


@asynccontextmanager
async def server() -> AsyncIterator[int]:
    """One without methods; its port."""
    serving = grpc.aio.server()
    port = serving.add_insecure_port(f"{HERE}:0")
    await serving.start()
    yield port
    await serving.stop(None)


async def outcome(channel: grpc.aio.Channel) -> grpc.StatusCode:
    call: Any = channel.unary_unary("/of.Nobody/Call")
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call(b"", timeout=SOON_S)
    return failed.value.code()


async def answered(channel: grpc.aio.Channel) -> None:
    async with asyncio.timeout(SOON_S):
        while await outcome(channel) is grpc.StatusCode.UNAVAILABLE:
            await asyncio.sleep(0.1)
