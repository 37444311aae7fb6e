"""Programs more than one version apart refuse each other, and say which to upgrade."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import grpc
import pytest
import structlog

from headgate_proto.api.v1 import errors_pb2, ingest_pb2_grpc, tables_pb2, tables_pb2_grpc
from headgate_proto.cluster.v1 import compaction_pb2_grpc, coordination_pb2, coordination_pb2_grpc, exchange_pb2_grpc
from headgate_proto.handshake import PROTOCOL, UNSAID, VERSION, skew, version_in
from headgate_runtime.channels import connect
from headgate_runtime.coordinator_client import CoordinatorClient
from headgate_runtime.coordinator_stream import CoordinatorStream
from headgate_runtime.errors import VersionSkewError, from_call, rpc_error
from headgate_runtime.greeting import Greeting
from headgate_runtime.grpc_server import Server
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import World
from support.scripted_owner import ScriptedOwner
from support.serving import served

NEWER, OLDER = VERSION + 2, VERSION - 2
STREAMS = {
    "a client's channel": lambda channel: ingest_pb2_grpc.IngestServiceStub(channel).Append,
    "a writer at a coordinator": lambda channel: coordination_pb2_grpc.CoordinationServiceStub(channel).Control,
    "a compactor at a coordinator": lambda channel: compaction_pb2_grpc.CompactionServiceStub(channel).Work,
    "a writer at a writer": lambda channel: exchange_pb2_grpc.ExchangeServiceStub(channel).Exchange,
}


class Tables(tables_pb2_grpc.TableServiceServicer):
    async def FindWriters(self, request: Any, context: Any) -> Any:
        said = dict(context.invocation_metadata())
        return tables_pb2.FindWritersResponse(addresses=[str(said.get(PROTOCOL))])


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    server = Server(ServiceSettings())
    tables_pb2_grpc.add_TableServiceServicer_to_server(Tables(), server.grpc)
    ingest_pb2_grpc.add_IngestServiceServicer_to_server(ingest_pb2_grpc.IngestServiceServicer(), server.grpc)
    coordination_pb2_grpc.add_CoordinationServiceServicer_to_server(
        coordination_pb2_grpc.CoordinationServiceServicer(), server.grpc
    )
    compaction_pb2_grpc.add_CompactionServiceServicer_to_server(compaction_pb2_grpc.CompactionServiceServicer(), server.grpc)
    exchange_pb2_grpc.add_ExchangeServiceServicer_to_server(exchange_pb2_grpc.ExchangeServiceServicer(), server.grpc)
    try:
        yield await server.start()
    finally:
        await server.stop(0)


def test_versions_go_together_when_they_are_one_apart_and_otherwise_the_older_side_is_named() -> None:
    assert [skew(3, other, "own", "other") for other in (2, 3, 4)] == [None] * 3
    for own, other, older in ((3, 5, "own"), (3, 1, "other"), (9, 2, "other")):
        wrong = skew(own, other, "own", "other")
        assert wrong is not None
        newest = max(own, other)
        assert wrong[1] == f"Upgrade {older} to a release with version {newest - 1} or {newest}."


@pytest.mark.parametrize("said", ["", "two", "-1", "2.0", "\u0662", "9" * 5000], ids=repr)
def test_what_is_no_number_is_no_version(said: str) -> None:
    assert version_in({PROTOCOL: said}) == version_in({}) == UNSAID


@pytest.mark.parametrize(("version", "upgraded"), [(NEWER, "this server"), (OLDER, "the caller")])
@pytest.mark.parametrize("stream", STREAMS)
async def test_a_server_refuses_a_stream_of_a_version_too_far_away(stream: str, version: int, upgraded: str) -> None:
    async with serving() as address, grpc.aio.insecure_channel(address) as channel:
        call = STREAMS[stream](channel)(metadata=((PROTOCOL, str(version)),))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await asyncio.wait_for(call.read(), 30)
        error = from_call(refused.value)
        assert (error.code, error.action) == (errors_pb2.CODE_VERSION, errors_pb2.ACTION_GIVE_UP)
        assert error.fix.startswith(f"Upgrade {upgraded} ")


async def test_a_server_takes_calls_of_the_versions_beside_its_own_and_of_programs_that_say_none() -> None:
    async with serving() as address, grpc.aio.insecure_channel(address) as channel:
        find = tables_pb2_grpc.TableServiceStub(channel).FindWriters
        for said in ([str(VERSION - 1)], [str(VERSION)], [str(VERSION + 1)], []):
            call = find(tables_pb2.FindWritersRequest(), metadata=[(PROTOCOL, each) for each in said])
            await call
            assert dict(await call.initial_metadata())[PROTOCOL] == str(VERSION)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await find(tables_pb2.FindWritersRequest(), metadata=((PROTOCOL, str(NEWER)),))
        assert from_call(refused.value).code == errors_pb2.CODE_VERSION


@pytest.mark.parametrize("token", ["", "secret"])
async def test_services_say_their_version_with_and_without_a_token(token: str) -> None:
    settings = ServiceSettings(cluster_token=token)  # type: ignore[arg-type]
    async with serving() as address, connect(address, settings) as channel:
        answer = await tables_pb2_grpc.TableServiceStub(channel).FindWriters(tables_pb2.FindWritersRequest())
        assert list(answer.addresses) == [str(VERSION)]


class Coordination(coordination_pb2_grpc.CoordinationServiceServicer):
    """Of a coordinator that does not look at versions itself."""

    def __init__(self, said: Sequence[tuple[str, str]]) -> None:
        self._said = said

    async def Control(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        await context.send_initial_metadata(tuple(self._said))
        await anext(aiter(requests))  # as a real one: behind a stream that is over the hello cannot be written
        yield coordination_pb2.ControlResponse(welcome=coordination_pb2.Welcome(heartbeat_ms=1000))


class Handler:
    """Of a writer that only takes what comes."""

    def __init__(self) -> None:
        self.received: list[Any] = []

    def open_call(self, channel: grpc.aio.Channel) -> Any:
        return coordination_pb2_grpc.CoordinationServiceStub(channel).Control()

    def hello(self) -> Any:
        return coordination_pb2.ControlRequest(hello=coordination_pb2.Hello(process="me", address="me:1"))

    def receive(self, stream: Any, message: Any) -> None:
        self.received.append(message)

    def sent(self, message: Any) -> None: ...

    def disconnected(self, stream: Any) -> None: ...


@pytest.mark.parametrize(("said", "upgraded"), [(NEWER, "this service"), (OLDER, "the server"), (VERSION + 1, ""), (None, "")])
async def test_a_service_leaves_a_coordinator_that_is_too_far_away_before_it_takes_anything(
    said: int | None, upgraded: str
) -> None:
    server, handler = grpc.aio.server(), Handler()
    metadata = [] if said is None else [(PROTOCOL, str(said))]
    coordination_pb2_grpc.add_CoordinationServiceServicer_to_server(Coordination(metadata), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stream: Any = CoordinatorStream(handler, World.real().clock, lambda _: None)  # type: ignore[arg-type]
            call = coordination_pb2_grpc.CoordinationServiceStub(channel).Control()
            if not upgraded:
                await stream.serve(call)
                assert len(handler.received) == 1
                return
            with pytest.raises(ExceptionGroup) as left:
                await stream.serve(call)
            (why,) = left.value.exceptions
            assert isinstance(why, VersionSkewError)
            assert f"Upgrade {upgraded} " in str(why)
            assert handler.received == []
    finally:
        await server.stop(0)


class Refusing(ScriptedOwner):
    """It takes no process, or is itself too far away from all."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.tries = 0
        self._error = error

    async def Control(self, request_iterator: Any, context: Any) -> None:
        self.tries += 1
        if self._error is not None:
            raise self._error
        await context.write(coordination_pb2.ControlResponse(welcome=coordination_pb2.Welcome(heartbeat_ms=1000)))


async def lines_of(owner: Refusing, event: str) -> list[Any]:
    """What a service that finds only this coordinator logs under that name, once it has tried several times."""
    add = partial(coordination_pb2_grpc.add_CoordinationServiceServicer_to_server, owner)
    with structlog.testing.capture_logs() as logged:
        async with served(add) as owner.address, asyncio.TaskGroup() as group:
            client = CoordinatorClient([owner.address], Handler(), ServiceSettings(), World.real().clock)  # type: ignore[arg-type]
            running = group.create_task(client.run())
            while not (found := [line for line in logged if line["event"] == event]) or 0 < owner.tries < 3:
                await asyncio.sleep(0.01)
            running.cancel()
    return found


async def test_a_service_that_is_refused_logs_once_which_side_to_upgrade() -> None:
    skewed = rpc_error(errors_pb2.CODE_VERSION, *(skew(NEWER, VERSION, "this server", "the caller") or ()))
    (line,) = await lines_of(Refusing(skewed), "coordinator refuses this process")
    assert f"Upgrade the caller to a release with version {NEWER - 1} or {NEWER}." in line["reason"]


async def test_a_service_that_refuses_a_coordinator_logs_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Greeting, "answer", lambda _self, _asked: ((PROTOCOL, str(NEWER)),))
    (line,) = await lines_of(Refusing(None), "this process refuses the coordinator")
    assert f"Upgrade this service to a release with version {NEWER - 1} or {NEWER}." in line["reason"]


async def test_a_service_that_learns_of_no_coordinator_logs_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate_runtime.greeting.VERSION", NEWER)
    (line,) = await lines_of(Refusing(None), "coordinator does not answer")
    assert f"Upgrade the caller to a release with version {NEWER - 1} or {NEWER}." in line["reason"]
