"""Addresses behind which there are several servers, as those of a Service of Kubernetes: a connection leads to one of them."""

from __future__ import annotations

import grpc
import pyarrow as pa
import pytest

from headgate import aio
from headgate.credentials import Shown
from headgate.transport import _CONNECT_MS, Failure, Transport, failure_of_status
from support.cutting_proxy import cutting_proxy
from support.scripted_service import scripted_cluster

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])
NOT_CONNECTED = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1:"
REFUSED = f"{NOT_CONNECTED} Failed to connect to remote host: Connection refused"
LATE = (
    f"{NOT_CONNECTED} connection attempt timed out before receiving SETTINGS frame",
    f"{NOT_CONNECTED} Failed to connect to remote host: Timeout occurred: FD Shutdown",
    f"{NOT_CONNECTED} tcp handshaker shutdown",
    f"{NOT_CONNECTED} Handshake read failed (Endpoint closing)",
    f"{NOT_CONNECTED} Handshake read failed",
)
"""As gRPC 1.76 and 1.85 put it."""
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


async def test_an_address_that_does_not_answer_is_tried_anew_over_another_connection() -> None:
    """Of several servers behind it, one may be lost: gRPC's own next attempt would wait for as long as the one before."""
    transport = Transport(Shown)
    with transport.link("127.0.0.1:1") as first:
        assert first.judged(failed(LATE[0])).connected_too_late
        with transport.link("127.0.0.1:1") as second:
            assert second.channel is not first.channel
            assert not second.judged(failed(REFUSED)).connected_too_late
        with transport.link("127.0.0.1:1") as third:
            assert third.channel is second.channel
    await transport.close()


@pytest.mark.slow
async def test_a_server_that_takes_long_to_answer_gets_the_time_to_do_so() -> None:
    async with scripted_cluster() as cluster, cutting_proxy(cluster.coordinator) as far:
        far.delay = _CONNECT_MS[2] / 1000 + 0.3
        async with aio.connect(far.address, timeout=20) as hg:
            assert await hg.tables() == []


@pytest.mark.parametrize("details", LATE)
def test_what_grpc_says_of_an_address_that_does_not_answer_is_known(details: str) -> None:
    assert failed(details).connected_too_late
    assert not failed(details).stale_connection


def test_grpc_itself_connects_again_where_there_was_no_connection() -> None:
    for details in ("failed to connect to all addresses; last error: timed out", "errors resolving a:7070: DNS query cancelled"):
        assert not failed(details).stale_connection


def failed(details: str) -> Failure:
    """A call, with UNAVAILABLE."""
    return failure_of_status(grpc.StatusCode.UNAVAILABLE, details, None, "127.0.0.1:1")
