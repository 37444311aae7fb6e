"""The configuration in deploy/envoy, with a real Envoy in front of a real writer."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from headgate_proto.api.v1 import errors_pb2, ingest_pb2, ingest_pb2_grpc
from headgate_proto.cluster.v1 import exchange_pb2_grpc
from headgate_proto.serialized import PART_BYTES
from support.access import write_access
from support.certificates import Certificate, self_signed
from support.cluster import Cluster
from support.envoy import sidecar
from support.memory import peak_memory, reset_peak_memory
from support.processes import READY_S
from support.raw_http2 import message_start, raw_connection

WRITER, TOKEN = "writer-1", (("authorization", "Bearer alice-token"),)
APPEND = "/headgate.api.v1.IngestService/Append"
MIB = 1 << 20


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("trusted") / "certificate")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("behind")
    flags = ["--access", str(write_access(folder / "access.toml", {"alice-token": "alice"}))]
    options = {"coordinator": flags, "writer": flags}
    with Cluster(folder / "cluster", writers=1, options=options, env={"HEADGATE_CLUSTER_TOKEN": "c"}) as made:
        yield made


@pytest.fixture(scope="module")
def front(cluster: Cluster, certificate: Certificate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with sidecar(tmp_path_factory.mktemp("envoy"), cluster.address_of(WRITER), certificate) as address:
        yield address


@pytest.mark.slow
@pytest.mark.parametrize("metadata", [TOKEN, ()], ids=["a token", "no token"])
async def test_a_stream_goes_through_with_its_token_and_its_errors(
    metadata: tuple[tuple[str, str], ...], front: str, certificate: Certificate
) -> None:
    trusted = grpc.ssl_channel_credentials(certificate.cert.read_bytes())
    async with grpc.aio.secure_channel(front, trusted) as channel:
        call = ingest_pb2_grpc.IngestServiceStub(channel).Append(metadata=metadata)
        if not metadata:
            assert await call.code() is grpc.StatusCode.UNAUTHENTICATED
            assert "headgate-error-bin" in dict(await call.trailing_metadata())
            return
        await call.write(ingest_pb2.AppendRequest(open=ingest_pb2.OpenChannel(table="nowhere", channel="c")))
        answer = await call.read()
        assert isinstance(answer, ingest_pb2.AppendResponse)
        assert answer.ended.error.code == errors_pb2.CODE_TABLE_NOT_FOUND


async def test_calls_of_services_do_not_go_through(front: str, certificate: Certificate) -> None:
    trusted = grpc.ssl_channel_credentials(certificate.cert.read_bytes())
    async with grpc.aio.secure_channel(front, trusted) as channel:
        token = (("authorization", "Bearer c"),)
        call = exchange_pb2_grpc.ExchangeServiceStub(channel).Exchange(metadata=token)
        assert await asyncio.wait_for(call.code(), READY_S) is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.slow
async def test_a_writer_behind_it_keeps_no_more_than_the_messages_whatever_frames_they_come_in(
    front: str, cluster: Cluster, certificate: Certificate
) -> None:
    """100 streams with 64 KiB each in frames of 64 bytes, 2 KB of meaningless frames between two: a bare writer keeps 200 MiB."""
    pid = cluster.part(WRITER).pid
    before = reset_peak_memory(pid)
    trusting = ssl.create_default_context(cafile=str(certificate.cert))
    trusting.set_alpn_protocols(["h2"])
    async with asyncio.timeout(300), raw_connection(front, trusting) as connection:
        calls = [connection.open_call(APPEND, TOKEN) for _ in range(100)]
        for call in calls:
            connection.send(call, message_start(PART_BYTES))
        for _ in range(1_000):
            for call in calls:
                connection.send(call, bytes(64))
                connection.send_ignored(2_000)
            await connection.drain()
            await asyncio.sleep(0)
        # What was sent before is there when the answer to a call behind it is.
        last = connection.open_call("/headgate.api.v1.IngestService/Nothing", TOKEN)
        await last.ended.wait()
        assert sum(call.sent for call in calls) > 5 * MIB
        assert not connection.refused.is_set()
        assert peak_memory(pid) - before < 100 * MIB


async def test_a_renewed_certificate_is_shown_without_a_restart_and_open_streams_stay(cluster: Cluster, tmp_path: Path) -> None:
    shown, new = self_signed(tmp_path / "shown"), self_signed(tmp_path / "new")
    wanted = new.cert.read_text().strip()
    with sidecar(tmp_path, cluster.address_of(WRITER), shown) as address:
        host, port = address.split(":")
        trusted = grpc.ssl_channel_credentials(shown.cert.read_bytes())
        async with asyncio.timeout(READY_S), grpc.aio.secure_channel(address, trusted) as channel:
            watching = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            await watching.read()
            new.key.rename(shown.key)
            new.cert.rename(shown.cert)
            while (await asyncio.to_thread(ssl.get_server_certificate, (host, int(port)))).strip() != wanted:
                pass
            assert not watching.done()
