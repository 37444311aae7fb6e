"""Services among themselves: kinds in certificates on real connections, and what settings allow."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest

from headgate_proto.api.v1 import errors_pb2, tables_pb2_grpc
from headgate_proto.cluster.v1 import coordination_pb2, coordination_pb2_grpc
from headgate_runtime.channels import RenewedChannel, UnsafeAddressError, connect
from headgate_runtime.grpc_server import Server, principal
from headgate_runtime.peers import CALLERS, FORWARDED_METHODS, Peer, ServiceKind, certificate_refusal, loopback_refusal
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import Clock, SystemClock
from support.called_by import CALLED_BY, FORWARDED
from support.certificates import DAY, Authority, Certificate
from support.contracts import METHODS, path_of
from support.processes import READY_S

DOMAIN = "headgate.internal"
EXPIRED = -DAY / 2


class Yesterday(SystemClock):
    def now_ms(self) -> int:
        return super().now_ms() - round(1000 * DAY.total_seconds())


class Coordination(coordination_pb2_grpc.CoordinationServiceServicer):
    async def Members(self, request: Any, context: Any) -> Any:
        return coordination_pb2.MembersResponse(addresses=[principal(context)])

    async def Control(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        async for _ in requests:
            yield coordination_pb2.ControlResponse()


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ours")


def settings(authority: Authority, own: Certificate, **more: Any) -> ServiceSettings:
    given = {"cluster_ca": authority.cert, "cluster_cert": own.cert, "cluster_key": own.key}
    return ServiceSettings(**{**{name: str(path) for name, path in given.items()}, "cluster_listen": "127.0.0.1:0", **more})


@contextlib.asynccontextmanager
async def serving(settings: ServiceSettings, clock: Clock | None = None) -> AsyncIterator[Server]:
    server = Server(settings, clock=clock)
    coordination_pb2_grpc.add_CoordinationServiceServicer_to_server(Coordination(), server.cluster)
    tables_pb2_grpc.add_TableServiceServicer_to_server(tables_pb2_grpc.TableServiceServicer(), server.grpc)
    await server.start()
    try:
        yield server
    finally:
        await server.stop(0)


async def members(channel: grpc.aio.Channel) -> str:
    stub = coordination_pb2_grpc.CoordinationServiceStub(channel)
    answer = await stub.Members(coordination_pb2.MembersRequest(), timeout=READY_S)
    return str(answer.addresses[0])


async def control(channel: grpc.aio.Channel) -> object:
    call = coordination_pb2_grpc.CoordinationServiceStub(channel).Control(timeout=READY_S)
    return await call.read()


@contextlib.contextmanager
def failing(code: grpc.StatusCode, text: str = "") -> Any:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        yield
    assert failed.value.code() is code
    assert text in str(failed.value.details())


UNKNOWN, DENIED, UNREACHED = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAVAILABLE


async def test_a_role_may_call_what_is_its_own(ours: Authority) -> None:
    coordinator = ours.issue("coordinator", [f"coordinator.{DOMAIN}"])
    async with serving(settings(ours, coordinator)) as server:
        for name, dns in (("writer", f"writer.{DOMAIN}"), ("one", f"writer-0.writer.{DOMAIN}")):
            own = settings(ours, ours.issue(name, [dns]))
            async with connect(server.cluster_address, own, ServiceKind.COORDINATOR) as channel:
                assert await members(channel) == "cluster"
                call = coordination_pb2_grpc.CoordinationServiceStub(channel).Control()
                await call.write(coordination_pb2.ControlRequest())
                assert await call.read() == coordination_pb2.ControlResponse()
        async with connect(
            server.cluster_address, settings(ours, ours.issue("c", [f"compactor.{DOMAIN}"])), ServiceKind.COORDINATOR
        ) as it:
            assert await members(it) == "cluster"
            with failing(DENIED, "only writer may call"):
                await control(it)


@pytest.mark.parametrize(
    ("dns", "code"),
    [
        (f"coordinator.{DOMAIN}", DENIED),
        (f"other.{DOMAIN}", UNKNOWN),
        ("writer.headgate.example", UNKNOWN),
        ("localhost", UNKNOWN),
        (f"*.{DOMAIN}", UNKNOWN),
    ],
)
async def test_a_certificate_of_another_role_lacks_the_right_and_one_of_no_role_is_nobodys(
    dns: str, code: grpc.StatusCode, ours: Authority
) -> None:
    coordinator = ours.issue("coordinator", [f"coordinator.{DOMAIN}"])
    caller = settings(ours, ours.issue("caller", [dns]))
    async with serving(settings(ours, coordinator)) as server, connect(server.cluster_address, caller) as channel:
        with failing(code, "only writer may call"):
            await control(channel)
        with failing(code, "only compactor and writer may call"):
            await members(channel)


async def test_a_role_is_a_dns_name_and_no_name_of_another_kind(ours: Authority) -> None:
    coordinator = ours.issue("coordinator", [f"coordinator.{DOMAIN}"])
    caller = settings(ours, ours.issue("caller", [f"other.{DOMAIN}"], uris=[f"writer.{DOMAIN}", f"spiffe://x/writer.{DOMAIN}"]))
    async with serving(settings(ours, coordinator)) as server, connect(server.cluster_address, caller) as channel:
        with failing(UNKNOWN, "the certificate says no kind of service"):
            await control(channel)


async def test_who_has_no_certificate_an_expired_one_or_one_of_others_gets_no_connection(ours: Authority, tmp_path: Path) -> None:
    coordinator = ours.issue("coordinator", [f"coordinator.{DOMAIN}"])
    names = [f"writer.{DOMAIN}"]
    theirs = Authority(tmp_path / "theirs")
    async with serving(settings(ours, coordinator)) as server:
        address = server.cluster_address
        for own in (ours.issue("expired", names, valid=EXPIRED), theirs.issue("foreign", names)):
            async with connect(address, settings(ours, own), ServiceKind.COORDINATOR) as channel:
                with failing(UNREACHED):
                    await members(channel)
        without = grpc.ssl_channel_credentials(root_certificates=ours.cert.read_bytes())
        name = (("grpc.ssl_target_name_override", f"coordinator.{DOMAIN}"),)
        async with grpc.aio.secure_channel(address, without, options=name) as channel:
            with failing(UNREACHED):
                await members(channel)
        async with grpc.aio.insecure_channel(address) as channel:
            with failing(UNREACHED):
                await members(channel)


@pytest.mark.parametrize("shown", ["another kind", "another authority", "expired"])
async def test_a_server_that_is_not_what_it_should_be_is_not_called(shown: str, ours: Authority, tmp_path: Path) -> None:
    """A compactor's certificate does not make a coordinator."""
    writer = settings(ours, ours.issue("writer", [f"writer.{DOMAIN}"]))
    match shown:
        case "another kind":
            false = ours.issue("false", [f"compactor.{DOMAIN}", "localhost"])
        case "another authority":
            false = Authority(tmp_path / "theirs").issue("false", [f"coordinator.{DOMAIN}"])
        case _:
            false = ours.issue("false", [f"coordinator.{DOMAIN}"], valid=EXPIRED)
    # Of an expired certificate a server says so at its start; this one was started when it was valid.
    started = Yesterday() if shown == "expired" else None
    own = settings(ours, false)
    async with serving(own, started) as server, connect(server.cluster_address, writer, ServiceKind.COORDINATOR) as channel:
        with failing(UNREACHED):
            await members(channel)


async def test_clients_reach_no_method_of_services(ours: Authority) -> None:
    own = settings(ours, ours.issue("coordinator", [f"coordinator.{DOMAIN}"]))
    async with serving(own) as server, grpc.aio.insecure_channel(server.address) as channel:
        with failing(grpc.StatusCode.UNIMPLEMENTED):
            await members(channel)


async def test_renewed_certificates_and_a_new_authority_are_taken_by_both_sides_without_a_restart(
    ours: Authority, tmp_path: Path
) -> None:
    live = {name: tmp_path / f"live-{name}" for name in ("ca", "coordinator", "writer")}

    def put(authority: Authority, name: str) -> None:
        live["ca"].write_bytes(authority.cert.read_bytes())
        for kind in ("coordinator", "writer"):
            issued = authority.issue(f"{kind} {name}", [f"{kind}.{DOMAIN}"])
            live[kind].with_suffix(".pem").write_bytes(issued.cert.read_bytes())
            live[kind].with_suffix(".key").write_bytes(issued.key.read_bytes())

    def of(kind: str) -> ServiceSettings:
        files = {
            "cluster_ca": live["ca"],
            "cluster_cert": live[kind].with_suffix(".pem"),
            "cluster_key": live[kind].with_suffix(".key"),
        }
        return ServiceSettings(**{name: str(path) for name, path in files.items()}, cluster_listen="127.0.0.1:0")

    put(ours, "old")
    async with serving(of("coordinator")) as server:
        link = RenewedChannel(server.cluster_address, of("writer"), ServiceKind.COORDINATOR)
        older = await link.renewed()
        assert await members(older) == "cluster"
        assert await link.renewed() is older
        put(Authority(tmp_path / "next"), "new")
        newer = await link.renewed()
        assert newer is not older
        assert await members(newer) == "cluster"
        assert await members(older) == "cluster", "streams that are open go on: a control stream lasts as long as its service"
        async with connect(
            server.cluster_address, settings(ours, ours.issue("late", [f"writer.{DOMAIN}"])), ServiceKind.COORDINATOR
        ) as late:
            with failing(UNREACHED):
                await members(late)
        live["ca"].unlink()
        assert await link.renewed() is newer, "files that are being replaced change nothing"
        put(Authority(tmp_path / "third"), "third")
        assert await members(await link.renewed()) == "cluster"
        with pytest.raises(grpc.aio.UsageError):
            await members(older)
        assert await members(newer) == "cluster"
        await link.close()
        with pytest.raises(grpc.aio.UsageError):
            await members(newer)


CERTIFICATES = {
    kind: [Peer("", [f"{kind}.{DOMAIN}"]), Peer("", [f"p-0.{kind}.{DOMAIN}"], [f"spiffe://{DOMAIN}/{kind}"])]
    for kind in ServiceKind
}
NOBODYS = [Peer(""), Peer("", [f"other.{DOMAIN}"]), Peer("", ["localhost"], [f"spiffe://{DOMAIN}/writer"])]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_for_exactly_the_roles_of_the_table(name: str) -> None:
    assert name in CALLED_BY, "say in support/called_by.py which kinds of services may call the new method by their certificate"
    path = path_of(METHODS[name])
    for kind, peers in CERTIFICATES.items():
        for refusal in (certificate_refusal(path, peer, DOMAIN) for peer in peers):
            if kind in CALLED_BY[name]:
                assert refusal is None, kind
            else:
                assert refusal is not None, kind
                assert refusal.code == errors_pb2.CODE_PERMISSION_DENIED
    for refusal in (certificate_refusal(path, peer, DOMAIN) for peer in NOBODYS):
        assert refusal is not None
        assert refusal.code == errors_pb2.CODE_UNAUTHENTICATED


def test_no_method_is_called_that_no_contract_has() -> None:
    assert set(CALLERS) <= {path_of(method) for method in METHODS.values()}
    assert {path_of(METHODS[name]) for name in FORWARDED} == FORWARDED_METHODS


def test_names_are_compared_whole_and_a_wildcard_is_no_role() -> None:
    def kinds(*dns: str) -> frozenset[ServiceKind]:
        return Peer("", dns).kinds(DOMAIN)

    assert kinds(f"writer.{DOMAIN}") == kinds(f"w-0.writer.{DOMAIN}") == {ServiceKind.WRITER}
    assert kinds(f"writer.{DOMAIN}", f"compactor.{DOMAIN}") == {ServiceKind.WRITER, ServiceKind.COMPACTOR}
    for name in (
        f"*.{DOMAIN}",
        f"*.writer.{DOMAIN}",
        f"xwriter.{DOMAIN}",
        f"writer.x.{DOMAIN}",
        f".writer.{DOMAIN}",
        "writer",
        DOMAIN,
    ):
        assert kinds(name) == frozenset(), name
    assert Peer("", [f"w-0.writer.{DOMAIN}"]).process(DOMAIN) == f"w-0.writer.{DOMAIN}"
    assert Peer("", [f"writer.{DOMAIN}"], ["spiffe://d/ns/a/sa/b"]).process(DOMAIN) == "spiffe://d/ns/a/sa/b"
    assert Peer("", [f"writer.{DOMAIN}"], ["https://x"]).process(DOMAIN) == ""


@pytest.mark.parametrize(
    ("address", "is_here"),
    [
        ("ipv4:127.0.0.1:50000", True),
        ("ipv4:127.9.9.9:1", True),
        ("ipv6:%5B::1%5D:50000", True),
        ("ipv6:[::1]:50000", True),
        ("unix:/run/x.sock", True),
        ("ipv4:10.0.0.1:127", False),
        ("ipv6:%5B2001:db8::1%5D:1", False),
        ("", False),
        ("ipv4:127.0.0.1.example.org:1", False),
    ],
)
def test_without_any_credentials_services_are_taken_from_this_machine_alone(address: str, is_here: bool) -> None:
    for path in (path for path in CALLERS if ".cluster." in path):
        refusal = loopback_refusal(path, Peer(address))
        assert (refusal is None) == is_here
        assert refusal is None or "cluster_cert" in refusal.fix
    assert loopback_refusal("/headgate.api.v1.TableService/Status", Peer(address)) is None


async def test_without_any_credentials_a_service_on_this_machine_is_served() -> None:
    async with serving(ServiceSettings()) as server, connect(server.cluster_address, ServiceSettings()) as channel:
        assert await members(channel) == "anonymous"


async def test_the_token_of_the_cluster_leaves_the_machine_only_by_tls(ours: Authority) -> None:
    token = ServiceSettings(cluster_token="secret")
    for address in ("10.0.0.1:1", "writer.example.org:1"):
        with pytest.raises(UnsafeAddressError, match="cluster_cert") as caught:
            connect(address, token, ServiceKind.WRITER)
        assert "secret" not in str(caught.value)
        await connect(address, ServiceSettings(cluster_token="secret", tls_ca=str(ours.cert)), ServiceKind.WRITER).close()
    for address in ("127.0.0.1:1", "localhost:1"):
        await connect(address, token, ServiceKind.WRITER).close()


PEM: Mapping[str, str] = {"cluster_cert": "c", "cluster_key": "k", "cluster_ca": "a"}
TLS: Mapping[str, str] = {"tls_cert": "c", "tls_key": "k"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"cluster_cert": "c", "cluster_key": "k", "cluster_listen": "127.0.0.1:0"}, "cluster_ca belong together"),
        ({**PEM, "cluster_listen": "127.0.0.1:0", "cluster_token": "t"}, "leave cluster_token out"),
        ({**PEM}, "cluster_listen and cluster_cert belong together"),
        ({"cluster_listen": "127.0.0.1:0"}, "cluster_listen and cluster_cert belong together"),
        ({"access": "t"}, "cluster_cert or cluster_token"),
        ({"cluster_token": "t", "listen": "0.0.0.0:1", "insecure": True}, "in plaintext: set cluster_listen"),
    ],
)
def test_settings_that_would_leave_services_without_safe_credentials_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ServiceSettings(**wrong)


def test_certificates_or_a_token_with_tls_are_enough_for_others_to_reach_a_service() -> None:
    reached = {"advertise": "w.example:1"}
    ServiceSettings(listen="0.0.0.0:1", access="t", cluster_listen="0.0.0.0:2", cluster_advertise="w:2", **reached, **TLS, **PEM)
    ServiceSettings(listen="0.0.0.0:1", access="t", cluster_token="t", **reached, **TLS)
    found = ServiceSettings(cluster_listen="0.0.0.0:2", cluster_advertise="w.example:0", **PEM)
    assert found.cluster_advertised("0.0.0.0:77") == "w.example:77"
    assert ServiceSettings(advertise="w.example:0").cluster_advertised("0.0.0.0:77") == "w.example:77"
