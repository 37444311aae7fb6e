"""Calls for another coordinator are passed on, with the client's credentials."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from headgate_proto.api.v1 import errors_pb2, maintenance_pb2, maintenance_pb2_grpc, tables_pb2, tables_pb2_grpc
from headgate_proto.handshake import DIALLED, FORWARDED, FRONT, SERVER, TARGET
from headgate_runtime.channels import connect
from headgate_runtime.errors import METADATA_KEY, from_call, rpc_error
from headgate_runtime.forwarding import nowhere
from headgate_runtime.grpc_server import Server, principal
from headgate_runtime.peers import ServiceKind
from headgate_runtime.settings import ServiceSettings
from support.access import role, write_access
from support.certificates import Authority

TOKENS = {"alice-token": "alice", "bob-token": "bob"}
OTHER = "other.invalid:7070"
DOMAIN = "headgate.internal"
TableStub, Stub = tables_pb2_grpc.TableServiceStub, maintenance_pb2_grpc.MaintenanceServiceStub


class Tables(tables_pb2_grpc.TableServiceServicer):
    """Answers its name and the caller's."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def Status(self, request: Any, context: Any) -> Any:
        return tables_pb2.StatusResponse(coordinator=self._name, alarms=[principal(context)])


class Maintenance(maintenance_pb2_grpc.MaintenanceServiceServicer):
    def __init__(self, name: str) -> None:
        self._name = name

    async def Compact(self, request: Any, context: Any) -> AsyncIterator[Any]:
        for number in range(3):
            yield maintenance_pb2.CompactResponse(planned=maintenance_pb2.CompactionPlanned(compactors=number))

    async def Restore(self, request: Any, context: Any) -> Any:
        raise rpc_error(errors_pb2.CODE_NOT_OWNER, f"{self._name} says no", "Ask another.", address=OTHER)

    async def Clean(self, request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.UNAVAILABLE, "in the middle")


@asynccontextmanager
async def coordinators(folder: Path, *, certified: bool = False) -> AsyncIterator[tuple[Server, Server, Authority]]:
    """Two; calls of the first for OTHER go to the second, whose route leads back."""
    access = write_access(folder / "access.toml", TOKENS, role("alice", "admin"), role("bob", "read"))
    authority = Authority(folder / "services")
    settings = ServiceSettings(access=str(access), cluster_token="c", audit_log="none")  # type: ignore[arg-type]
    if certified:
        own = authority.issue("coordinator", [f"coordinator.{DOMAIN}"])
        files = {"cluster_cert": str(own.cert), "cluster_key": str(own.key), "cluster_ca": str(authority.cert)}
        settings = ServiceSettings(access=str(access), audit_log="none", cluster_listen="127.0.0.1:0", **files)
    async with contextlib.AsyncExitStack() as stack:
        second = await begun(stack, "second", settings, lambda _: first.cluster_address)
        first = await begun(stack, "first", settings, lambda target: second.cluster_address if target == OTHER else None)
        yield first, second, authority


async def begun(stack: contextlib.AsyncExitStack, name: str, settings: ServiceSettings, route: Any = nowhere) -> Server:
    server = Server(settings, route=route, front=["front:443"])
    for each in {server.grpc, server.cluster}:
        tables_pb2_grpc.add_TableServiceServicer_to_server(Tables(name), each)
        maintenance_pb2_grpc.add_MaintenanceServiceServicer_to_server(Maintenance(name), each)
    await server.start()
    stack.push_async_callback(server.stop, 0)
    return server


def bearing(name: str, target: str = OTHER) -> Any:
    return (("authorization", f"Bearer {name}-token"), (TARGET, target))


@pytest.mark.parametrize("certified", [False, True], ids=["one port", "a port of services"])
async def test_the_other_one_answers_and_decides_by_the_clients_own_credentials(certified: bool, tmp_path: Path) -> None:
    async with coordinators(tmp_path, certified=certified) as (first, _, _a), grpc.aio.insecure_channel(first.address) as channel:
        for name in ("alice", "bob"):
            answer = await TableStub(channel).Status(tables_pb2.StatusRequest(), metadata=bearing(name))
            assert (answer.coordinator, list(answer.alarms)) == ("second", [name])
        answers = [
            each async for each in Stub(channel).Compact(maintenance_pb2.CompactRequest(table="t"), metadata=bearing("alice"))
        ]
        assert [answer.planned.compactors for answer in answers] == [0, 1, 2]
        with pytest.raises(grpc.aio.AioRpcError) as denied:
            await Stub(channel).Restore(maintenance_pb2.RestoreRequest(table="t"), metadata=bearing("bob"))
        assert from_call(denied.value).code == errors_pb2.CODE_PERMISSION_DENIED
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await Stub(channel).Restore(maintenance_pb2.RestoreRequest(table="t"), metadata=bearing("alice"))
        error = from_call(refused.value)
        assert (error.code, error.message, error.address) == (errors_pb2.CODE_NOT_OWNER, "second says no", OTHER)


async def test_a_call_for_nobody_known_is_answered_here(tmp_path: Path) -> None:
    async with coordinators(tmp_path) as (first, _, _a), grpc.aio.insecure_channel(first.address) as channel:
        answer = await TableStub(channel).Status(tables_pb2.StatusRequest(), metadata=bearing("bob", "gone.invalid:1"))
        assert answer.coordinator == "first"


async def test_a_call_that_breaks_off_on_the_way_has_no_error_that_says_that_nothing_was_done(tmp_path: Path) -> None:
    async with coordinators(tmp_path) as (first, second, _), grpc.aio.insecure_channel(first.address) as channel:
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError) as broken:
                await Stub(channel).Clean(maintenance_pb2.CleanRequest(table="t"), metadata=bearing("alice"))
            assert broken.value.code() is grpc.StatusCode.UNAVAILABLE
            assert METADATA_KEY not in dict(broken.value.trailing_metadata() or ())
            await second.stop(0)


async def test_a_stranger_is_refused_before_anything_is_passed_on(tmp_path: Path) -> None:
    async with coordinators(tmp_path) as (first, second, _), grpc.aio.insecure_channel(first.address) as channel:
        await second.stop(0)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await TableStub(channel).Status(tables_pb2.StatusRequest(), metadata=bearing("nobody"))
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_only_a_coordinator_speaks_for_a_client(tmp_path: Path) -> None:
    async with coordinators(tmp_path, certified=True) as (first, _, authority):
        writer = authority.issue("writer", [f"writer.{DOMAIN}"])
        files = {"cluster_cert": str(writer.cert), "cluster_key": str(writer.key), "cluster_ca": str(authority.cert)}
        settings = ServiceSettings(cluster_listen="127.0.0.1:0", **files)
        said = ((FORWARDED, "client"), ("authorization", "Bearer alice-token"))
        async with connect(first.cluster_address, settings, ServiceKind.COORDINATOR) as channel:
            answer = await TableStub(channel).Status(tables_pb2.StatusRequest(), metadata=said)
            assert list(answer.alarms) == ["cluster"]
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await Stub(channel).Clean(maintenance_pb2.CleanRequest(table="t"), metadata=said)
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_an_answer_says_who_gives_it_and_whether_it_came_through_a_front_address(tmp_path: Path) -> None:
    async with coordinators(tmp_path) as (first, _, _a), grpc.aio.insecure_channel(first.address) as channel:
        for dialled, front in (("front:443", "1"), ("elsewhere:443", None)):
            metadata = (("authorization", "Bearer bob-token"), (DIALLED, dialled))
            call = TableStub(channel).Status(tables_pb2.StatusRequest(), metadata=metadata)
            said = dict(await call.initial_metadata())
            assert (said[SERVER], said.get(FRONT)) == (first.address, front)
