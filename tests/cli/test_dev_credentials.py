"""Credentials of `headgate dev`: kept between runs, private, and never sent to another program on the port."""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509

import headgate
from demo.ports import free_port
from headgate.profiles import find_profile
from headgate_cli.dev.certificates import SERVICES, certificates_in
from headgate_cli.dev.credentials import DevCredentials, credentials_in, published
from headgate_cli.dev.private import PrivateFolder
from headgate_proto.api.v1 import tables_pb2, tables_pb2_grpc
from headgate_tables.system import System
from support.certificates import self_signed

NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> PrivateFolder:
    return PrivateFolder.below(tmp_path / "headgate", "dev", "1")


@pytest.fixture
def credentials(folder: PrivateFolder) -> DevCredentials:
    return credentials_in(folder, System.real())


def contents(folder: PrivateFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.path.iterdir()}


def test_every_file_is_this_users_own_and_another_run_finds_it_again(folder: PrivateFolder, credentials: DevCredentials) -> None:
    before = contents(folder)
    assert len(before) == 2 + 1 + 2 * (1 + len(SERVICES))
    assert {stat.S_IMODE((folder.path / name).stat().st_mode) for name in before} == {0o600}
    again = credentials_in(folder, System.real())
    assert contents(folder) == before
    assert again.profile == credentials.profile


def test_flags_and_reprs_hold_no_secret(credentials: DevCredentials) -> None:
    secret = credentials.token
    assert len(secret) == 67
    flags = [word for service in SERVICES for word in credentials.flags(service)]
    assert secret not in repr(credentials) + repr(credentials.profile) + " ".join(flags)


def test_certificates_are_made_anew_before_their_end_and_when_one_is_damaged(folder: PrivateFolder) -> None:
    made = certificates_in(folder, NOW)
    first = contents(folder)
    certificates_in(folder, NOW + timedelta(days=600))
    assert contents(folder) == first
    certificates_in(folder, NOW + timedelta(days=700))
    second = contents(folder)
    assert all(second[name] != first[name] for name in first)
    made.services["writer"].key.write_text("")
    certificates_in(folder, NOW + timedelta(days=700))
    third = contents(folder)
    assert third["ca.pem"] != second["ca.pem"]
    other = certificates_in(PrivateFolder.below(folder.path, "other"), NOW)
    made.services["writer"].cert.write_bytes(other.services["writer"].cert.read_bytes())
    certificates_in(folder, NOW + timedelta(days=700))
    assert (folder.path / "ca.pem").read_bytes() != third["ca.pem"], "another authority signed one of them"


def test_nobody_can_make_further_certificates(folder: PrivateFolder) -> None:
    made = certificates_in(folder, NOW)
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    keys = [path.read_bytes() for path in folder.path.glob("*.key")]
    assert len(keys) == 1 + len(SERVICES)
    for pair in (made.server, *made.services.values()):
        certificate = x509.load_pem_x509_certificate(pair.cert.read_bytes())
        certificate.verify_directly_issued_by(authority)
        assert certificate.public_key() != authority.public_key()
        assert not any(isinstance(each.value, x509.BasicConstraints) and each.value.ca for each in certificate.extensions)


@dataclass
class Listening:
    address: str
    heard: list[dict[str, Any]]


@asynccontextmanager
async def listening(certificate: Any = None, port: int = 0) -> AsyncIterator[Listening]:
    """A server that notes what it is sent."""
    heard: list[dict[str, Any]] = []

    class Tables(tables_pb2_grpc.TableServiceServicer):
        async def ListTables(self, request: Any, context: Any) -> Any:
            heard.append(dict(context.invocation_metadata()))
            return tables_pb2.ListTablesResponse()

    server = grpc.aio.server()
    tables_pb2_grpc.add_TableServiceServicer_to_server(Tables(), server)
    if certificate is None:
        port = server.add_insecure_port(f"127.0.0.1:{port}")
    else:
        pair = [(certificate.key.read_bytes(), certificate.cert.read_bytes())]
        port = server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials(pair))
    await server.start()
    try:
        yield Listening(f"localhost:{port}", heard)
    finally:
        await server.stop(0)


async def tables_at(address: str, timeout: float = 60) -> object:
    async with headgate.aio.connect(address, timeout=timeout) as hg:
        return await hg.tables()


@pytest.mark.slow
async def test_a_program_sends_its_token_to_its_cluster_and_to_no_other_program_on_the_port(
    credentials: DevCredentials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with listening(credentials.certificates.server) as own:
        with published(credentials.profile, [int(own.address.rpartition(":")[2])], tmp_path / "headgate"):
            assert await tables_at(own.address) == []
    assert [each["authorization"] for each in own.heard] == [f"Bearer {credentials.token}"]
    for other in (None, self_signed(tmp_path / "other")):
        async with listening(other) as impostor:
            port = int(impostor.address.rpartition(":")[2])
            with (
                published(credentials.profile, [port], tmp_path / "headgate"),
                pytest.raises(headgate.UnavailableError),
            ):
                await tables_at(impostor.address, timeout=1)
        assert not impostor.heard


def test_profiles_are_private_and_end_with_the_cluster(credentials: DevCredentials, tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    with published(credentials.profile, [7070, 7071], tmp_path / "headgate"):
        for port in (7070, 7071):
            assert find_profile([f"localhost:{port}"], environment) == credentials.profile
        assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "headgate/profiles").iterdir()} == {0o600}
    assert not list((tmp_path / "headgate/profiles").iterdir())
    assert find_profile(["localhost:7070"], environment) is None
    with published(replace(credentials.profile, token="next"), [7070], tmp_path / "headgate"):
        assert (find_profile(["localhost:7070"], environment) or credentials.profile).token == "next"


async def test_a_program_goes_on_when_its_cluster_starts_again_with_other_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there before the cluster, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    state, port = tmp_path / "headgate", free_port()
    tokens = []
    async with headgate.aio.connect(f"localhost:{port}", wait=60) as hg:
        for run in ("1", "2"):
            made = credentials_in(PrivateFolder.below(state, "dev", run), System.real())
            early = asyncio.create_task(hg.tables())
            await asyncio.sleep(0)
            with published(made.profile, [port], state):
                async with listening(made.certificates.server, port) as own:
                    assert await early == await hg.tables() == []
            tokens.append(made.token)
            assert {each["authorization"] for each in own.heard} == {f"Bearer {made.token}"}
    assert len(set(tokens)) == 2
