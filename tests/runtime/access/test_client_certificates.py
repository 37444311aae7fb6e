"""Certificates of clients: whom they name, every way in which one names nobody, and a server that demands them."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from headgate_proto.api.v1 import errors_pb2, tables_pb2, tables_pb2_grpc
from headgate_proto.handshake import TARGET
from headgate_runtime.access.client_certificates import ClientCertificates
from headgate_runtime.access.control import AccessControl
from headgate_runtime.access.identity import Credentials, Identified, Identity, Unauthenticated
from headgate_runtime.access.rights import Right
from headgate_runtime.errors import from_call
from headgate_runtime.grpc_server import Server, principal
from headgate_runtime.settings import ServiceSettings
from support.access import role, write_access
from support.certificates import DAY, Authority, Certificate, self_signed
from support.processes import READY_S
from support.sleeps import Sleeps

SPIFFE = "spiffe://example.org/ns/etl/sa/loader"
DAY_MS = round(1000 * DAY.total_seconds())
HERE, ELSEWHERE = "loader.example.org", "other.example.org"


def identify(certificate: Path, *, ahead_ms: int = 0, authorization: str = "") -> Identified:
    """Whom it names; the DNS names that begin with "writer." are those of services."""
    credentials = Credentials(authorization, {"x509_pem_cert": [certificate.read_bytes()]})
    own = ClientCertificates(lambda dns: any(each.startswith("writer.") for each in dns))
    return own.identify(credentials, Sleeps().now_ms() + ahead_ms)


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ours")


@pytest.mark.parametrize(
    ("dns", "uris", "named"),
    [
        ([HERE], [], HERE),
        (["x"], [], "x"),
        (["xn--bcher-kva.example", ], [], "xn--bcher-kva.example"),
        ([], [SPIFFE], SPIFFE),
        (["one.example", "two.example"], [SPIFFE], SPIFFE),
        ([HERE], ["https://example.org/a", "https://example.org/b"], HERE),
        (["a" * 63 + "." + "b" * 59], [], "a" * 63 + "." + "b" * 59),
    ],
)  # fmt: skip
def test_a_certificate_names_its_spiffe_id_or_else_its_dns_name(
    dns: Sequence[str], uris: Sequence[str], named: str, ours: Authority
) -> None:
    found = identify(ours.issue("c", dns, uris=uris).cert)
    assert isinstance(found, Identity)
    assert found.principal == f"cert:{named}"
    assert found.credential.removeprefix("x509:").isalnum()


@pytest.mark.parametrize(
    ("dns", "uris", "said"),
    [
        ([HERE, ELSEWHERE], [], "2 names"),
        ([], [], "0 names"),
        ([], ["https://example.org/a"], "0 names"),
        ([HERE], [SPIFFE, "spiffe://example.org/b"], "2 names"),
        ([HERE], [SPIFFE, "https://example.org/b"], "2 names"),
        (["Loader.example.org"], [], "'Loader.example.org', which does not do"),
        (["*.example.org"], [], "does not do"),
        (["loader.example.org."], [], "does not do"),
        (["loader..example.org"], [], "does not do"),
        (["-loader.example.org"], [], "does not do"),
        (["loader.example.org/x"], [], "does not do"),
        (["cert:loader"], [], "does not do"),
        (["a" * 63 + "." + "b" * 60], [], "does not do"),
        ([HERE], ["SPIFFE://example.org/a"], "does not do"),
        ([HERE], ["spiffe://Example.org/a"], "does not do"),
        ([HERE], ["spiffe://example.org"], "does not do"),
        ([HERE], ["spiffe://example.org/"], "does not do"),
        ([HERE], ["spiffe://example.org/a/"], "does not do"),
        ([HERE], ["spiffe://example.org//a"], "does not do"),
        ([HERE], ["spiffe://example.org/a/../b"], "does not do"),
        ([HERE], ["spiffe://example.org/."], "does not do"),
        ([HERE], ["spiffe://example.org/a%2Fb"], "does not do"),
        ([HERE], ["spiffe://example.org:1/a"], "does not do"),
        ([HERE], ["spiffe:example"], "does not do"),
        ([HERE], ["spiffe://example.org/" + "a" * 128], "does not do"),
        (["writer.headgate.internal"], [], "of a service"),
        ([HERE, "writer.headgate.internal"], [SPIFFE], "of a service"),
    ],
)
def test_a_certificate_whose_name_could_be_taken_for_another_names_nobody(
    dns: Sequence[str], uris: Sequence[str], said: str, ours: Authority
) -> None:
    found = identify(ours.issue("c", dns, uris=uris).cert)
    assert isinstance(found, Unauthenticated)
    assert said in found.message
    assert "SPIFFE id" in found.fix


def test_a_certificate_without_names_and_one_that_cannot_be_read_name_nobody(ours: Authority, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for certificate, said in ((ours.cert, "names nobody"), (tmp_path / "wrong", "cannot be read")):
        found = identify(certificate)
        assert isinstance(found, Unauthenticated)
        assert said in found.message


def test_a_certificate_counts_until_its_end_and_a_token_beside_it_counts_instead(ours: Authority) -> None:
    own = ours.issue("c", [HERE]).cert
    found = identify(own, ahead_ms=DAY_MS - 60_000)
    assert isinstance(found, Identity)
    assert found.expires_ms is not None
    assert abs(found.expires_ms - Sleeps().now_ms() - DAY_MS) < 60_000
    ended = identify(own, ahead_ms=DAY_MS)
    assert isinstance(ended, Unauthenticated)
    assert "certificate has expired" in ended.message
    for authorization in ("Bearer right", "Bearer", "Basic x"):
        assert identify(own, authorization=authorization) is None


# --- a server ---


class Tables(tables_pb2_grpc.TableServiceServicer):
    async def DescribeTable(self, request: Any, context: Any) -> Any:
        return tables_pb2.DescribeTableResponse(table=tables_pb2.TableDescription(name=principal(context)))


class Demanding:
    """A server with `client_ca`, of whose clients `cert:loader.example.org` and the token's ann may read."""

    def __init__(self, folder: Path, clients: Authority) -> None:
        services, own = Authority(folder / "services"), self_signed(folder / "server")
        issued = services.issue("coordinator", ["coordinator.headgate.internal"])
        access = write_access(folder / "access.toml", {"t": "ann"}, role("ann", "read"), role(f"cert:{HERE}", "read"))
        self.audit, self.ca, self.server_ca = folder / "audit", folder / "clients.pem", own.cert
        shutil.copy(clients.cert, self.ca)
        files = {"tls_cert": own.cert, "tls_key": own.key, "access": access, "client_ca": self.ca, "audit_log": self.audit}
        files |= {"cluster_cert": issued.cert, "cluster_key": issued.key, "cluster_ca": services.cert}
        given = {name: str(path) for name, path in files.items()}
        self.settings = ServiceSettings(listen="localhost:0", cluster_listen="127.0.0.1:0", **given)  # type: ignore[arg-type]
        self.clock = Sleeps()
        self.server = Server(self.settings, clock=self.clock, route=lambda _: "127.0.0.1:1")
        tables_pb2_grpc.add_TableServiceServicer_to_server(Tables(), self.server.grpc)

    def connect(self, own: Certificate | None) -> grpc.aio.Channel:
        files = (own.key.read_bytes(), own.cert.read_bytes()) if own else (None, None)
        credentials = grpc.ssl_channel_credentials(self.server_ca.read_bytes(), *files)
        options = [("grpc.use_local_subchannel_pool", 1)]
        return grpc.aio.secure_channel(f"localhost:{self.server.address.rpartition(':')[2]}", credentials, options=options)


@contextlib.asynccontextmanager
async def demanding(folder: Path, clients: Authority) -> AsyncIterator[Demanding]:
    made = Demanding(folder, clients)
    await made.server.start()
    try:
        yield made
    finally:
        await made.server.stop(0)


async def describe(channel: grpc.aio.Channel, token: str = "") -> str:
    metadata = [("authorization", f"Bearer {token}")] if token else []
    request = tables_pb2.DescribeTableRequest(name="t")
    answer = await tables_pb2_grpc.TableServiceStub(channel).DescribeTable(request, metadata=metadata, timeout=READY_S)
    return answer.table.name


async def refusal(channel: grpc.aio.Channel, token: str = "") -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await describe(channel, token)
    return failed.value.code(), from_call(failed.value).message


async def test_a_server_demands_certificates_and_a_token_beside_one_names_the_principal(tmp_path: Path, ours: Authority) -> None:
    theirs = Authority(tmp_path / "theirs")
    unauthenticated, denied = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED
    async with demanding(tmp_path, ours) as made:
        async with made.connect(ours.issue("loader", [HERE])) as channel:
            assert await describe(channel) == f"cert:{HERE}"
            assert await describe(channel, "t") == "ann"
            assert await refusal(channel, "wrong") == (unauthenticated, "no token, or one that is not known")
        async with made.connect(ours.issue("other", [ELSEWHERE])) as channel:
            assert (await refusal(channel))[0] is denied
            assert await describe(channel, "t") == "ann"
        async with made.connect(ours.issue("two", [HERE, ELSEWHERE])) as channel:
            assert "2 names" in (await refusal(channel))[1]
            assert await describe(channel, "t") == "ann"
        async with made.connect(ours.issue("service", ["writer.headgate.internal"])) as channel:
            assert "of a service" in (await refusal(channel))[1]
        for wrong in (None, theirs.issue("foreign", [HERE]), ours.issue("expired", [HERE], valid=-DAY / 2)):
            async with made.connect(wrong) as channel:
                assert (await refusal(channel, "t"))[0] is grpc.StatusCode.UNAVAILABLE
    lines = [json.loads(line) for line in made.audit.read_text().splitlines()]
    assert [line["principal"] for line in lines] == [None, f"cert:{ELSEWHERE}", None, None]
    assert lines[1]["credential"].startswith("x509:")


async def test_a_newer_authority_counts_for_the_next_connection(tmp_path: Path, ours: Authority) -> None:
    newer = Authority(tmp_path / "newer")
    async with demanding(tmp_path, ours) as made:
        first, second = ours.issue("first", [HERE]), newer.issue("second", [HERE])
        async with made.connect(second) as channel:
            assert (await refusal(channel))[0] is grpc.StatusCode.UNAVAILABLE
        shutil.copy(newer.cert, made.ca)
        async with made.connect(second) as channel:
            assert await describe(channel) == f"cert:{HERE}"
        async with made.connect(first) as channel:
            assert (await refusal(channel))[0] is grpc.StatusCode.UNAVAILABLE


async def test_a_connection_outlives_its_certificate_and_its_calls_do_not(tmp_path: Path, ours: Authority) -> None:
    async with demanding(tmp_path, ours) as made, made.connect(ours.issue("loader", [HERE])) as channel:
        assert await describe(channel) == f"cert:{HERE}"
        made.clock.ahead_ms = DAY_MS
        assert await refusal(channel) == (grpc.StatusCode.UNAUTHENTICATED, "the client's certificate has expired")
        assert await describe(channel, "t") == "ann"


async def test_a_call_that_another_coordinator_has_to_answer_wants_a_token(tmp_path: Path, ours: Authority) -> None:
    async with demanding(tmp_path, ours) as made, made.connect(ours.issue("loader", [HERE])) as channel:
        status = tables_pb2_grpc.TableServiceStub(channel).Status
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await status(tables_pb2.StatusRequest(), metadata=[(TARGET, "other.invalid:7070")], timeout=READY_S)
        error = from_call(refused.value)
        assert (error.code, "Send a token, too" in error.fix) == (errors_pb2.CODE_UNAUTHENTICATED, True)
        said = [(TARGET, "other.invalid:7070"), ("authorization", "Bearer t")]
        with pytest.raises(grpc.aio.AioRpcError) as passed_on:
            await status(tables_pb2.StatusRequest(), metadata=said, timeout=READY_S)
        assert passed_on.value.code() is grpc.StatusCode.UNAVAILABLE, "nothing listens where it goes"


async def test_what_runs_ends_with_its_certificate(tmp_path: Path, ours: Authority) -> None:
    made = Demanding(tmp_path, ours)
    control = AccessControl(made.settings, made.clock)
    own = ours.issue("loader", [HERE]).cert
    found = control.authenticate(Credentials(peer={"x509_pem_cert": [own.read_bytes()]}), Right.READ)
    assert isinstance(found, Identity)
    running = asyncio.create_task(control.run())
    try:
        ended: list[errors_pb2.Error] = []
        with control.ended_without_right(found, Right.READ, "t", "c", ended.append):
            await made.clock.end_sleep(made.settings.access_reload)
            _, over = await made.clock.asleep.get()
            assert ended == []
            made.clock.ahead_ms = DAY_MS
            over.set()
            await made.clock.asleep.get()
            [error] = ended
            assert (error.code, error.message) == (errors_pb2.CODE_UNAUTHENTICATED, "the client's certificate has expired")
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def test_without_the_setting_a_certificate_is_nobodys(tmp_path: Path, ours: Authority) -> None:
    settings = Demanding(tmp_path, ours).settings.model_copy(update={"client_ca": ""})
    shown = Credentials(peer={"x509_pem_cert": [ours.issue("loader", [HERE]).cert.read_bytes()]})
    assert isinstance(AccessControl(settings, Sleeps()).authenticate(shown, Right.READ), Unauthenticated)


@pytest.mark.parametrize("without", ["tls_cert", "access", "cluster_listen"])
def test_settings_that_would_take_certificates_for_nothing_are_refused(without: str) -> None:
    right = {"client_ca": "c", "access": "f", "cluster_listen": "127.0.0.1:0"}
    right |= {"tls_cert": "c", "tls_key": "k", "cluster_cert": "c", "cluster_key": "k", "cluster_ca": "a"}
    together = {"tls_cert": ["tls_key"], "cluster_listen": ["cluster_cert", "cluster_key", "cluster_ca"]}.get(without, [])
    given = {name: value for name, value in right.items() if name not in (without, *together)}
    if without == "cluster_listen":
        given["cluster_token"] = "t"
    assert ServiceSettings(**right).client_ca == "c"  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="client_ca wants tls_cert, access"):
        ServiceSettings(**given)  # type: ignore[arg-type]
