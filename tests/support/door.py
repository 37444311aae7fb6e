"""A server with every kind of method, whose handlers do nothing but answer, and clients with tokens."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from pydantic import SecretStr

from headgate_proto.api.v1 import ingest_pb2_grpc, maintenance_pb2, maintenance_pb2_grpc, tables_pb2, tables_pb2_grpc
from headgate_runtime.channels import connect
from headgate_runtime.errors import from_call
from headgate_runtime.grpc_server import Server, principal
from headgate_runtime.limits import DoorLimits
from headgate_runtime.settings import ServiceSettings, load_settings
from headgate_runtime.world import Clock
from support.access import role, write_access
from support.raw_http2 import RawConnection, raw_connection

TOKENS = {name: f"{name}-token" for name in ("alice", "bob")}


class Tables(tables_pb2_grpc.TableServiceServicer):
    async def DescribeTable(self, request: Any, context: Any) -> Any:
        return tables_pb2.DescribeTableResponse(table=tables_pb2.TableDescription(name=principal(context)))

    async def CreateTable(self, request: Any, context: Any) -> Any:
        return tables_pb2.CreateTableResponse()


class Maintenance(maintenance_pb2_grpc.MaintenanceServiceServicer):
    async def Compact(self, request: Any, context: Any) -> AsyncIterator[Any]:
        for _ in range(2):
            yield maintenance_pb2.CompactResponse()


class Ingest(ingest_pb2_grpc.IngestServiceServicer):
    async def Append(self, requests: Any, context: Any) -> None:  # type: ignore[override]
        await context.read()


def settings(*argv: str) -> ServiceSettings:
    return load_settings(ServiceSettings, argv, prog="svc", about="A service.")


class Served:
    """``address`` of a server that knows alice and bob."""

    def __init__(self, address: str) -> None:
        self.address = address

    def client(self) -> grpc.aio.Channel:
        """A channel of its own connection; close it."""
        return connect(self.address, settings())

    @contextlib.asynccontextmanager
    async def raw(self) -> AsyncIterator[RawConnection]:
        async with raw_connection(self.address) as connection:
            yield connection


@contextlib.asynccontextmanager
async def serving(
    folder: Path, limits: DoorLimits, clock: Clock | None = None, *, refusals: float = 10_000
) -> AsyncIterator[Served]:
    roles = [role(name, "admin") for name in TOKENS]
    access = write_access(folder / "access.toml", {token: name for name, token in TOKENS.items()}, *roles)
    guarded = ServiceSettings(access=str(access), audit_log="none", refusals=refusals, cluster_token=SecretStr("c-token"))
    server = Server(guarded, limits=limits, clock=clock)
    tables_pb2_grpc.add_TableServiceServicer_to_server(_made(Tables), server.grpc)
    maintenance_pb2_grpc.add_MaintenanceServiceServicer_to_server(_made(Maintenance), server.grpc)
    ingest_pb2_grpc.add_IngestServiceServicer_to_server(Ingest(), server.grpc)
    address = await server.start()
    try:
        yield Served(address)
    finally:
        await server.stop(0)


def _made(servicer: Any) -> Any:
    """One that leaves methods out, which mypy takes for abstract."""
    return servicer()


def bearing(name: str) -> tuple[tuple[str, str], ...]:
    """The metadata of a call by alice or bob; none for a stranger ("")."""
    return (("authorization", f"Bearer {TOKENS[name]}"),) if name else ()


async def describe(channel: grpc.aio.Channel, name: str) -> str:
    """The principal that the server took the caller for."""
    request = tables_pb2.DescribeTableRequest(name="t")
    answer = await tables_pb2_grpc.TableServiceStub(channel).DescribeTable(request, metadata=bearing(name))
    return str(answer.table.name)


@contextlib.contextmanager
def failing(code: int) -> Iterator[pytest.ExceptionInfo[grpc.aio.AioRpcError]]:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        yield failed
    assert from_call(failed.value).code == code
