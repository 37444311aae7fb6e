"""Addresses behind which there are several servers, as those of a Service of Kubernetes: a connection leads to one of them."""

from __future__ import annotations

import grpc
import pyarrow as pa

from headgate import aio
from headgate.credentials import Shown
from headgate.transport import Failure, Transport, failure_of_status
from support.cutting_proxy import cutting_proxy
from support.scripted_service import scripted_cluster

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])
NO_WAY = "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure"


async def test_a_call_that_an_ending_server_s_proxy_failed_goes_to_another_server() -> None:
    async with scripted_cluster() as ending, scripted_cluster() as ready, cutting_proxy(ending.coordinator) as balancer:
        async with aio.connect(balancer.address, timeout=20) as hg:
            assert await hg.tables() == []
            ending.knobs.unary = [grpc.StatusCode.UNAVAILABLE] * 1000
            balancer.upstream = ready.coordinator
            await hg.create_table("t", SCHEMA, key="id")
        assert list(ready.tables) == ["t"]
        assert len(ending.knobs.unary) == 999


async def test_streams_go_on_over_a_connection_that_takes_no_further_calls() -> None:
    transport = Transport(Shown)
    with transport.link("127.0.0.1:1", streams=1) as stream:
        with transport.link("127.0.0.1:1") as call:
            assert call.channel is stream.channel
            assert call.judged(failed(NO_WAY)).stale_connection
        with transport.link("127.0.0.1:1") as after:
            assert after.channel is not stream.channel
            call.judged(failed(NO_WAY))  # a late one is about the connection that is gone already
        with transport.link("127.0.0.1:1") as later:
            assert later.channel is after.channel
        assert stream.channel.get_state() is not grpc.ChannelConnectivity.SHUTDOWN
    await transport.close()
    assert stream.channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN


def test_grpc_itself_connects_again_where_there_was_no_connection() -> None:
    for details in ("failed to connect to all addresses; last error: timed out", "errors resolving a:7070: DNS query cancelled"):
        assert not failed(details).stale_connection


def failed(details: str) -> Failure:
    """A call, with UNAVAILABLE."""
    return failure_of_status(grpc.StatusCode.UNAVAILABLE, details, None, "127.0.0.1:1")
