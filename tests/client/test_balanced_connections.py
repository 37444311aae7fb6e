"""Addresses behind which there are several servers, as those of a Service of Kubernetes: a connection leads to one of them."""

from __future__ import annotations

import grpc
import pyarrow as pa
import pytest

from headgate import aio
from headgate.credentials import Shown
from headgate.failures import Failure, failure_of_status
from headgate.transport import _CONNECT_MS, Transport
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
    async with scripted_cluster() as cluster:
        with transport.link(cluster.coordinator, streams=1) as stream:
            await stream.channel.channel_ready()
            with transport.link(cluster.coordinator) as call:
                assert call.channel is stream.channel
                assert call.judged(failed(NO_WAY)).lost_server
            with transport.link(cluster.coordinator) as after:
                assert after.channel is not stream.channel
                await after.channel.channel_ready()
                call.judged(failed(NO_WAY))  # a late one is about the connection that is gone already
                with transport.link(cluster.coordinator) as later:
                    assert later.channel is after.channel
            assert stream.channel.get_state() is grpc.ChannelConnectivity.READY
        await transport.close()
        assert stream.channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN


async def test_grpc_makes_a_broken_connection_to_a_given_address_again() -> None:
    """It knows where to: a lookup of the name may have to wait for a DNS server that was lost, too."""
    async with scripted_cluster() as cluster:
        transport = Transport(Shown, given=[cluster.coordinator])
        with transport.link(cluster.coordinator) as call:
            await call.channel.channel_ready()
    while call.channel.get_state() is grpc.ChannelConnectivity.READY:
        await call.channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
    assert call.judged(failed("Socket closed")).lost_server
    with transport.link(cluster.coordinator) as after:
        assert after.channel is call.channel
    await transport.close()


async def test_an_address_that_does_not_answer_twice_gets_a_connection_with_more_time() -> None:
    transport = Transport(Shown)
    with transport.link("127.0.0.1:1") as first:
        assert first.judged(failed(LATE[0])).connected_too_late
        with transport.link("127.0.0.1:1") as second:
            assert second.channel is first.channel
            second.judged(failed(REFUSED))
            with transport.link("127.0.0.1:1") as third:
                assert third.channel is second.channel
                third.judged(failed(LATE[0]))
        with transport.link("127.0.0.1:1") as fourth:
            assert fourth.channel is not third.channel
            third.judged(failed(LATE[0]))  # about the one that is gone
            with transport.link("127.0.0.1:1") as fifth:
                assert fifth.channel is fourth.channel
    await transport.close()


@pytest.mark.parametrize(("late", "after"), [(1, 0), (2, 1), (2 * len(_CONNECT_MS), 1)])
async def test_an_address_that_answers_keeps_a_little_more_time_if_it_needed_more(
    late: int, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    insecure_channel = grpc.aio.insecure_channel

    def noted(address: str, options: list[tuple[str, int]]) -> grpc.aio.Channel:
        given.append(dict(options)["grpc.min_reconnect_backoff_ms"])
        return insecure_channel(address, options=options)

    monkeypatch.setattr(grpc.aio, "insecure_channel", noted)
    transport = Transport(Shown)
    for _ in range(late):
        with transport.link("127.0.0.1:1") as link:
            link.judged(failed(LATE[0]))
    assert list(dict.fromkeys(given)) == [*_CONNECT_MS[: (late + 1) // 2]]
    transport.answered("127.0.0.1:1", grpc.aio.Metadata(("a", "b")), heard=False)
    with transport.link("127.0.0.1:1"):
        assert given[-1] == _CONNECT_MS[after]
    await transport.close()


@pytest.mark.slow
async def test_a_server_that_takes_long_to_answer_gets_the_time_to_do_so() -> None:
    async with scripted_cluster() as cluster, cutting_proxy(cluster.coordinator) as far:
        far.delay = _CONNECT_MS[1] / 1000 + 0.3
        async with aio.connect(far.address, timeout=20) as hg:
            assert await hg.tables() == []


@pytest.mark.parametrize("details", LATE)
def test_what_grpc_says_of_an_address_that_does_not_answer_is_known(details: str) -> None:
    assert failed(details).connected_too_late
    assert not failed(details).lost_server


def test_grpc_itself_connects_again_where_there_was_no_connection() -> None:
    for details in ("failed to connect to all addresses; last error: timed out", "errors resolving a:7070: DNS query cancelled"):
        assert not failed(details).lost_server


def failed(details: str) -> Failure:
    """A call, with UNAVAILABLE."""
    return failure_of_status(grpc.StatusCode.UNAVAILABLE, details, None, "127.0.0.1:1")
