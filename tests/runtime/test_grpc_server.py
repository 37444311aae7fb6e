"""A real server and real clients on this machine: errors, principals, health, limits, TLS."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from grpc._cython import cygrpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from pydantic import SecretStr

from headgate_proto.api.v1 import errors_pb2, ingest_pb2, ingest_pb2_grpc, tables_pb2, tables_pb2_grpc
from headgate_proto.cluster.v1 import coordination_pb2, coordination_pb2_grpc
from headgate_proto.lookups import lookup_options
from headgate_runtime.channels import connect
from headgate_runtime.errors import METADATA_KEY, from_call, rpc_error
from headgate_runtime.grpc_server import Server, principal
from headgate_runtime.lifecycle import StartError
from headgate_runtime.limits import CLIENT_OPTIONS, RECEIVED_BYTES, DoorLimits, server_options
from headgate_runtime.listening import ListenError
from headgate_runtime.settings import ServiceSettings, load_settings
from support.access import write_access
from support.certificates import self_signed
from support.processes import READY_S
from support.raw_http2 import message_start, raw_connection

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


class Tables(tables_pb2_grpc.TableServiceServicer):
    async def DescribeTable(self, request: Any, context: Any) -> Any:
        if request.name == "known":
            return tables_pb2.DescribeTableResponse(table=tables_pb2.TableDescription(name=principal(context)))
        if request.name == "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(self._refuse("in a task"))
        if request.name == "closed":
            raise asyncio.CancelledError  # as grpcio does for a call of ours whose channel was closed
        if request.name == "bug":
            raise KeyError("the password is hunter2")
        raise rpc_error(errors_pb2.CODE_TABLE_NOT_FOUND, f"no table {request.name!r}", "Create it.", address="other:1")

    async def _refuse(self, message: str) -> None:
        raise rpc_error(errors_pb2.CODE_NOT_OWNER, message, "Go there.")


class Ingest(ingest_pb2_grpc.IngestServiceServicer):
    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def Append(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        try:
            async for request in requests:
                if request.WhichOneof("message") == "skip":
                    raise rpc_error(errors_pb2.CODE_REWOUND, "rewound", "Open again.")
                yield ingest_pb2.AppendResponse(opened=ingest_pb2.Opened(incarnation=len(principal(context))))
        finally:
            self.left.set()


class Coordination(coordination_pb2_grpc.CoordinationServiceServicer):
    async def Members(self, request: Any, context: Any) -> Any:
        return coordination_pb2.MembersResponse(addresses=[principal(context)])


def settings(*argv: str) -> ServiceSettings:
    return load_settings(ServiceSettings, argv, prog="svc", about="A service.")


@contextlib.asynccontextmanager
async def serving(*argv: str, ingest: Ingest | None = None) -> AsyncIterator[tuple[Server, str]]:
    server = Server(settings(*argv))
    tables_pb2_grpc.add_TableServiceServicer_to_server(Tables(), server.grpc)
    ingest_pb2_grpc.add_IngestServiceServicer_to_server(ingest or Ingest(), server.grpc)
    coordination_pb2_grpc.add_CoordinationServiceServicer_to_server(Coordination(), server.grpc)
    address = await server.start()
    try:
        yield server, address
    finally:
        await server.stop(0)


async def describe(channel: grpc.aio.Channel, name: str, token: str = "") -> str:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    request = tables_pb2.DescribeTableRequest(name=name)
    answer = await tables_pb2_grpc.TableServiceStub(channel).DescribeTable(request, metadata=metadata)
    return str(answer.table.name)


async def members(channel: grpc.aio.Channel, token: str = "") -> str:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    stub = coordination_pb2_grpc.CoordinationServiceStub(channel)
    return str((await stub.Members(coordination_pb2.MembersRequest(), metadata=metadata)).addresses[0])


@contextlib.contextmanager
def failing(code: int) -> Any:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        yield failed
    assert from_call(failed.value).code == code


async def test_a_refusal_arrives_as_status_and_as_the_error_itself() -> None:
    async with serving() as (_, address), connect(address, settings()) as channel:
        with failing(errors_pb2.CODE_TABLE_NOT_FOUND) as failed:
            await describe(channel, "t")
        assert failed.value.code() is grpc.StatusCode.NOT_FOUND
        told = errors_pb2.Error.FromString(failed.value.trailing_metadata()[METADATA_KEY])
        assert (told.action, told.fix, told.address) == (errors_pb2.ACTION_FIX_CALL, "Create it.", "other:1")


async def test_a_refusal_that_ended_a_task_group_arrives_as_itself() -> None:
    async with serving() as (_, address), connect(address, settings()) as channel:
        with failing(errors_pb2.CODE_NOT_OWNER):
            await describe(channel, "group")


async def test_a_refusal_in_the_middle_of_a_stream_comes_after_the_answers_before_it() -> None:
    async with serving() as (_, address), connect(address, settings()) as channel:
        stream = ingest_pb2_grpc.IngestServiceStub(channel).Append()
        await stream.write(ingest_pb2.AppendRequest(flush=ingest_pb2.Flush()))
        await stream.write(ingest_pb2.AppendRequest(skip=ingest_pb2.Skip()))
        assert (await stream.read()).opened.incarnation == len("anonymous")
        with failing(errors_pb2.CODE_REWOUND) as failed:
            await stream.read()
        assert failed.value.code() is grpc.StatusCode.ABORTED


async def test_a_stream_that_the_client_breaks_ends_in_the_servicer_too() -> None:
    ingest = Ingest()
    async with serving(ingest=ingest) as (_, address), connect(address, settings()) as channel:
        stream = ingest_pb2_grpc.IngestServiceStub(channel).Append()
        await stream.write(ingest_pb2.AppendRequest(flush=ingest_pb2.Flush()))
        await stream.read()
        stream.cancel()
        await asyncio.wait_for(ingest.left.wait(), READY_S)


async def test_an_unforeseen_exception_tells_the_client_an_id_and_the_log_everything() -> None:
    async with serving() as (_, address), connect(address, settings()) as channel:
        with structlog.testing.capture_logs() as logged, failing(errors_pb2.CODE_INTERNAL) as failed:
            await describe(channel, "bug")
    assert "hunter2" not in str(failed.value)
    assert "hunter2" not in str(failed.value.trailing_metadata())
    [entry] = logged
    assert entry["request_id"] in str(failed.value.details())
    assert "hunter2" in repr(entry["exc_info"])
    assert entry["method"].endswith("/DescribeTable")


@pytest.fixture
def tokens(tmp_path: Path) -> list[str]:
    path = write_access(tmp_path / "access.toml", {"a-token": "alice", "b-token": "bob"})
    (config := tmp_path / "svc.toml").write_text('cluster_token = "c-token"')
    return ["--access", str(path), "--config", str(config)]


async def test_without_tokens_everybody_is_anonymous() -> None:
    async with serving() as (_, address), connect(address, settings()) as channel:
        assert await describe(channel, "known") == "anonymous"
        assert await describe(channel, "known", "whatever") == "anonymous"
        assert await members(channel) == "anonymous"


async def test_a_token_says_who_calls_and_without_one_nothing_but_health_answers(tokens: list[str]) -> None:
    async with serving(*tokens) as (_, address), connect(address, settings()) as channel:
        assert await describe(channel, "known", "a-token") == "alice"
        assert await describe(channel, "known", "b-token") == "bob"
        for wrong in ("", "A-token", "a-token2"):
            with failing(errors_pb2.CODE_UNAUTHENTICATED) as failed:
                await describe(channel, "known", wrong)
            assert failed.value.code() is grpc.StatusCode.UNAUTHENTICATED
        stream = ingest_pb2_grpc.IngestServiceStub(channel).Append()
        with failing(errors_pb2.CODE_UNAUTHENTICATED):
            await stream.read()
        await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_of_a_call_without_a_known_token_nothing_is_read(token: str, tokens: list[str]) -> None:
    """Else the messages that 120 strangers begin and never end would stay in memory: 1 MiB each."""
    metadata = [("authorization", f"Bearer {token}")] if token else []
    async with serving(*tokens) as (_, address), raw_connection(address) as connection:
        calls = [connection.open_call("/headgate.api.v1.TableService/ListTables", metadata) for _ in range(120)]
        for call in calls:
            connection.send(call, message_start(RECEIVED_BYTES - 1))
        await asyncio.wait_for(asyncio.gather(*(call.ended.wait() for call in calls)), READY_S)


async def test_who_sends_a_large_message_without_a_known_token_gets_the_reason(tokens: list[str]) -> None:
    async with serving(*tokens) as (_, address), connect(address, settings()) as channel:
        with failing(errors_pb2.CODE_UNAUTHENTICATED):
            request = tables_pb2.CreateTableRequest(schema=bytes(RECEIVED_BYTES - 64))
            await tables_pb2_grpc.TableServiceStub(channel).CreateTable(request)


async def test_a_method_whose_contract_declares_no_right_is_served_to_nobody(tokens: list[str]) -> None:
    async def answers(request: object, context: object) -> bytes:
        return b"secret"

    for flags in ([], tokens):
        server = Server(settings(*flags))
        handlers = {"Ask": grpc.unary_unary_rpc_method_handler(answers)}
        server.grpc.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("new.Service", handlers),))
        address = await server.start()
        try:
            for own in ("", "c-token"):
                async with connect(address, ServiceSettings(cluster_token=SecretStr(own))) as channel:
                    with failing(errors_pb2.CODE_PERMISSION_DENIED):
                        await channel.unary_unary("/new.Service/Ask")(b"")
        finally:
            await server.stop(0)


async def test_the_clusters_own_services_take_the_clusters_token_only(tokens: list[str]) -> None:
    async with serving(*tokens) as (_, address):
        async with connect(address, settings()) as outsider:
            with failing(errors_pb2.CODE_UNAUTHENTICATED):
                await members(outsider)
            with failing(errors_pb2.CODE_PERMISSION_DENIED) as failed:
                await members(outsider, "a-token")
            assert failed.value.code() is grpc.StatusCode.PERMISSION_DENIED
        async with connect(address, ServiceSettings(cluster_token=SecretStr("c-token"))) as insider:
            assert await members(insider) == "cluster"
            assert await describe(insider, "known") == "cluster"
            with failing(errors_pb2.CODE_PERMISSION_DENIED):
                await ingest_pb2_grpc.IngestServiceStub(insider).Append().read()


def test_an_access_file_that_is_wrong_or_not_there_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "access.toml"
    guarded = ServiceSettings(access=str(path), cluster_token=SecretStr("c"))
    with pytest.raises(StartError, match=r"access: .*access\.toml cannot be read: No such file"):
        Server(guarded)
    path.write_text("[tokens]\n\nalice = 1\n")
    with pytest.raises(StartError, match=r"access: the file is wrong: .*access\.toml: line 3: want"):
        Server(guarded)
    path.write_bytes(b"\xff")
    with pytest.raises(StartError, match=r"access: the file is wrong"):
        Server(guarded)


async def test_health_follows_what_the_service_says_and_ends_with_not_serving() -> None:
    async with serving() as (server, address), connect(address, settings()) as channel:
        stub = health_pb2_grpc.HealthStub(channel)

        async def status(service: str = "") -> int:
            return int((await stub.Check(health_pb2.HealthCheckRequest(service=service))).status)

        assert await status() == NOT_SERVING
        await server.health.set(True, "headgate.api.v1.TableService")
        assert await status() == await status("headgate.api.v1.TableService") == SERVING
        await server.health.set(False)
        assert await status() == NOT_SERVING
        await server.health.stop()
        await server.health.set(True)
        assert await status() == NOT_SERVING


async def test_a_message_up_to_the_limit_passes_and_one_above_is_refused_also_when_it_is_a_bomb() -> None:
    async with serving() as (_, address):
        options = [("grpc.max_send_message_length", -1)]
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
                for size, status in ((-64, grpc.StatusCode.OK), (64, grpc.StatusCode.RESOURCE_EXHAUSTED)):
                    batch = ingest_pb2.Batch(rows=bytes(RECEIVED_BYTES + size))
                    request = ingest_pb2.AppendRequest(batch=batch)
                    call = ingest_pb2_grpc.IngestServiceStub(channel).Append(compression=compression)
                    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                        await call.write(request)
                        await call.done_writing()
                        while await call.read() is not grpc.aio.EOF:
                            pass
                    assert await call.code() is status


async def test_reflection_is_not_there() -> None:
    async with serving() as (_, address), connect(address, settings()) as channel:
        call = channel.unary_unary("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call(b"")
        assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_two_servers_do_not_share_a_port() -> None:
    async with serving() as (_, address):
        with pytest.raises(ListenError, match="cannot listen"):
            await Server(settings("--listen", address)).start()


async def test_tls_serves_those_who_trust_the_authority_and_takes_a_renewed_certificate(tmp_path: Path) -> None:
    old, new = self_signed(tmp_path / "old"), self_signed(tmp_path / "new")
    live = tmp_path / "live"
    live.mkdir()
    cert, key = live / "cert.pem", live / "key.pem"
    cert.write_bytes(old.cert.read_bytes())
    key.write_bytes(old.key.read_bytes())
    (config := tmp_path / "svc.toml").write_text('cluster_token = "c-token"')
    token = ["--config", str(config)]
    async with serving("--tls-cert", str(cert), "--tls-key", str(key), *token) as (_, address):
        address = address.replace("127.0.0.1", "localhost")
        async with connect(address, settings("--tls-ca", str(old.cert), *token)) as channel:
            assert await members(channel) == "cluster"
        async with connect(address, settings("--tls-ca", str(new.cert), *token)) as channel:
            with failing(errors_pb2.CODE_UNAVAILABLE):
                await members(channel)
        cert.write_bytes(new.cert.read_bytes())
        key.write_bytes(new.key.read_bytes())
        async with connect(address, settings("--tls-ca", str(new.cert), *token)) as channel:
            assert await members(channel) == "cluster"
        async with connect(address, settings(*token)) as channel:
            with failing(errors_pb2.CODE_UNAVAILABLE):
                await members(channel)


async def test_what_is_no_message_is_refused_and_costs_one_line_in_the_log_however_often_it_comes() -> None:
    async with serving() as (_, address), connect(address, settings()) as channel:
        describe_raw = channel.unary_unary("/headgate.api.v1.TableService/DescribeTable")
        with structlog.testing.capture_logs() as logged:
            for _ in range(20):
                with failing(errors_pb2.CODE_INVALID_ARGUMENT) as failed:
                    await describe_raw(b"\xff" * 100)
                assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            stream = channel.stream_stream("/headgate.api.v1.IngestService/Append")()
            await stream.write(b"\xff")
            with failing(errors_pb2.CODE_INVALID_ARGUMENT):
                await stream.read()
            health = channel.unary_unary("/grpc.health.v1.Health/Check")
            with failing(errors_pb2.CODE_INVALID_ARGUMENT):
                await health(b"\xff")
        assert [entry["event"] for entry in logged] == ["request refused"]


async def test_an_integer_out_of_range_is_refused_before_a_servicer_sees_it() -> None:
    async with serving() as (_, address), connect(address, settings()) as channel:
        create = channel.unary_unary("/headgate.api.v1.TableService/CreateTable")
        with failing(errors_pb2.CODE_INVALID_ARGUMENT) as failed:
            await create(tables_pb2.CreateTableRequest(buckets=10**8).SerializeToString())
        assert "`CreateTableRequest.buckets` is 100000000, and has to lie between 0 and 99999999" in str(failed.value.details())
        stream = ingest_pb2_grpc.IngestServiceStub(channel).Append()
        await stream.write(ingest_pb2.AppendRequest(flush=ingest_pb2.Flush()))
        assert (await stream.read()).opened.incarnation
        await stream.write(ingest_pb2.AppendRequest(open=ingest_pb2.OpenChannel(incarnation=2**63)))
        with failing(errors_pb2.CODE_INVALID_ARGUMENT) as failed:
            await stream.read()
        assert "`OpenChannel.incarnation`" in str(failed.value.details())


async def test_a_call_whose_own_call_was_cut_off_gets_an_answer() -> None:
    """gRPC sends no status for a handler that ends as cancelled: the client would wait for ever."""
    async with serving() as (_, address), connect(address, settings()) as channel:
        request = tables_pb2.DescribeTableRequest(name="closed")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await tables_pb2_grpc.TableServiceStub(channel).DescribeTable(request, timeout=60)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE, "not DEADLINE_EXCEEDED"


def test_grpc_knows_all_options() -> None:
    """It passes over others in silence."""
    library = Path(cygrpc.__file__).read_bytes()
    options = (*server_options(DoorLimits()), *CLIENT_OPTIONS, *lookup_options({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}))
    assert [name for name, _ in options if name.encode() not in library] == []


async def test_a_connection_without_rows_may_ping_at_the_interval_that_the_server_allows() -> None:
    """Other writers and compactors do, and would lose their streams as attackers (GOAWAY, too_many_pings)."""
    options = dict(server_options(DoorLimits()))
    [allowed] = [name for name in options if "min_ping_interval" in name]
    server = grpc.aio.server(options=[*{**options, allowed: 20}.items()])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with raw_connection(f"127.0.0.1:{port}") as connection:
            for _ in range(2 * options["grpc.http2.max_ping_strikes"] + 4):
                assert await connection.ping()
                await asyncio.sleep(0.05)
    finally:
        await server.stop(0)
