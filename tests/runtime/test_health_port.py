"""The port for probes that cannot do TLS: `health_listen`."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from headgate_proto.api.v1 import tables_pb2, tables_pb2_grpc
from headgate_proto.cluster.v1 import coordination_pb2, coordination_pb2_grpc
from headgate_runtime.grpc_server import Server
from headgate_runtime.health import LIVE
from headgate_runtime.settings import ServiceSettings
from support.access import write_access
from support.certificates import self_signed
from support.processes import READY_S

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


class Open(tables_pb2_grpc.TableServiceServicer, coordination_pb2_grpc.CoordinationServiceServicer):
    """Would answer, if it were asked."""

    async def ListTables(self, request: object, context: object) -> tables_pb2.ListTablesResponse:
        return tables_pb2.ListTablesResponse()

    async def Members(self, request: object, context: object) -> coordination_pb2.MembersResponse:
        return coordination_pb2.MembersResponse()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server that demands TLS and tokens everywhere else."""
    shown = self_signed(tmp_path / "certificate")
    settings = ServiceSettings(
        tls_cert=str(shown.cert),
        tls_key=str(shown.key),
        access=str(write_access(tmp_path / "access.toml", {"a-token": "alice"})),
        cluster_token="c",
        health_listen="127.0.0.1:0",
        audit_log="none",
    )
    made = Server(settings)
    tables_pb2_grpc.add_TableServiceServicer_to_server(Open(), made.grpc)
    coordination_pb2_grpc.add_CoordinationServiceServicer_to_server(Open(), made.cluster)
    await made.start()
    try:
        yield made
    finally:
        await made.stop(0)


async def asked(channel: grpc.aio.Channel, service: str) -> int:
    answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))
    status: int = answer.status
    return status


async def test_it_says_live_before_the_service_is_ready_and_ready_when_it_is(server: Server) -> None:
    async with grpc.aio.insecure_channel(server.health_address) as channel:
        assert (await asked(channel, LIVE), await asked(channel, "")) == (SERVING, NOT_SERVING)
        await server.health.set(True)
        assert (await asked(channel, LIVE), await asked(channel, "")) == (SERVING, SERVING)
        await server.health.set(False)
        assert (await asked(channel, LIVE), await asked(channel, "")) == (SERVING, NOT_SERVING)


async def test_it_serves_nothing_else(server: Server) -> None:
    async with grpc.aio.insecure_channel(server.health_address) as channel:
        for call in (
            tables_pb2_grpc.TableServiceStub(channel).ListTables(tables_pb2.ListTablesRequest()),
            coordination_pb2_grpc.CoordinationServiceStub(channel).Members(coordination_pb2.MembersRequest()),
        ):
            assert await call.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_it_ends_with_the_service(server: Server) -> None:
    async with grpc.aio.insecure_channel(server.health_address) as channel:
        await asked(channel, LIVE)
        await server.stop(0)
        with pytest.raises(grpc.aio.AioRpcError):
            await asyncio.wait_for(asked(channel, LIVE), READY_S)


async def test_without_the_setting_there_is_no_such_port() -> None:
    server = Server(ServiceSettings())
    await server.start()
    assert server.health_address == ""
    await server.stop(0)
