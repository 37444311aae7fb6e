"""`headgate access credentials`: what is missing or near its end is made, the rest stays, and services take what was made."""

import contextlib
import json
import ssl
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from headgate_cli.credentials.authority import SERVICES, Issued, is_good, is_host
from headgate_cli.credentials.renewal import PRINCIPAL, Part, Wanted, renewed
from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from headgate_runtime.access.file import read_access_file
from headgate_runtime.access.identity import Identity
from headgate_runtime.access.quotas import UNLIMITED, usage_of
from headgate_runtime.access.rights import Allowed, Right
from headgate_runtime.access.tokens import digest_of
from headgate_runtime.world import SystemIds

NOW = datetime(2026, 11, 1, tzinfo=UTC)
WANTED = Wanted(["headgate.example.org", "10.0.0.7"], ["redis"])
IDS = SystemIds()
LEAVES = {"tls/tls": "client", "redis/tls": "client", **{f"cluster/{service}": "cluster" for service in SERVICES}}


@pytest.fixture
def made() -> dict[str, str]:
    return renewed({}, WANTED, NOW, IDS)


def certificate(text: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(text.encode())


def test_a_second_run_changes_nothing_until_certificates_are_near_their_end(made: dict[str, str]) -> None:
    assert renewed(made, WANTED, NOW + timedelta(days=304), IDS) == {}
    later = renewed(made, WANTED, NOW + timedelta(days=306), IDS)
    assert set(later) == {f"{leaf}.{ending}" for leaf in LEAVES for ending in ("crt", "key")}, "authorities and the token stay"
    for leaf, authority in LEAVES.items():
        new = Issued(later[f"{leaf}.crt"], later[f"{leaf}.key"])
        hosts = [
            str(name.value)
            for name in certificate(new.cert).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        ]
        assert is_good(made[f"ca/{authority}.crt"], new, hosts, NOW + timedelta(days=306 + 364))


@pytest.mark.parametrize("leaf", LEAVES)
def test_one_that_is_missing_damaged_or_of_another_authority_is_made_anew_alone(leaf: str, made: dict[str, str]) -> None:
    other = renewed({}, WANTED, NOW, IDS)
    for change in ({f"{leaf}.key": ""}, {f"{leaf}.crt": "nothing"}, {f"{leaf}.crt": other[f"{leaf}.crt"]}):
        assert set(renewed(made | change, WANTED, NOW, IDS)) == {f"{leaf}.crt", f"{leaf}.key"}
    without = {name: text for name, text in made.items() if name != f"{leaf}.crt"}
    assert set(renewed(without, WANTED, NOW, IDS)) == {f"{leaf}.crt", f"{leaf}.key"}


def test_other_hosts_make_another_certificate(made: dict[str, str]) -> None:
    more = Wanted([*WANTED.hosts, "also.example.org"], WANTED.redis_hosts)
    assert set(renewed(made, more, NOW, IDS)) == {"tls/tls.crt", "tls/tls.key"}


def test_what_clients_see_makes_nobody_a_service(made: dict[str, str]) -> None:
    """The cluster's authority signs services alone, and no program but the one that makes certificates has an authority's key."""
    clients, services = certificate(made["ca/client.crt"]), certificate(made["ca/cluster.crt"])
    assert clients.public_key() != services.public_key()
    assert made["cluster/ca.crt"] == made["ca/cluster.crt"]
    assert made["tls/ca.crt"] == made["client/ca.crt"] == made["redis/ca.crt"] == made["ca/client.crt"]
    for leaf, authority in LEAVES.items():
        certificate(made[f"{leaf}.crt"]).verify_directly_issued_by(certificate(made[f"ca/{authority}.crt"]))
    keys = [serialization.load_pem_private_key(text.encode(), None) for name, text in made.items() if name.endswith(".key")]
    publics = [key.public_key() for key in keys]
    assert sum(public in (clients.public_key(), services.public_key()) for public in publics) == 2
    assert len(publics) == 2 + len(LEAVES)


def test_python_s_strict_check_of_certificates_accepts_them(tmp_path: Path) -> None:
    """That of Python 3.13 and newer, by which coordinators check Redis's."""
    found = renewed({}, WANTED, datetime.now(UTC), IDS)
    for name in ("redis/tls.crt", "redis/tls.key"):
        (tmp_path / Path(name).name).write_text(found[name])
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    client = ssl.create_default_context(cadata=found["redis/ca.crt"])
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="redis"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for end in (*ends, *ends):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    assert ends[0].version() is not None


def is_trusted(shown: dict[str, str], by: dict[str, str], leaf: str = "tls/tls") -> bool:
    """Whether a process with the files ``by`` believes the certificate that one with ``shown`` has."""
    names = certificate(shown[f"{leaf}.crt"]).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    issued = Issued(shown[f"{leaf}.crt"], shown[f"{leaf}.key"])
    return is_good(by[f"{leaf.partition('/')[0]}/ca.crt"], issued, [str(name.value) for name in names], NOW)


@pytest.mark.parametrize("leaf", ["tls/tls", "cluster/writer"])
def test_an_authority_is_replaced_without_a_moment_in_which_one_process_distrusts_another(
    leaf: str, made: dict[str, str]
) -> None:
    """New files reach processes at different times, so a successor is trusted everywhere before it signs."""
    runs = [made]
    for at in (3500, 3545, 3546, 3547, 3600, 3652):
        without = {name: text for name, text in runs[-1].items() if not name.startswith(f"{leaf}.")}
        runs.append(without | renewed(without, WANTED, NOW + timedelta(days=at), IDS))
    for earlier, later in pairwise(runs):
        assert is_trusted(later, earlier, leaf)
        assert is_trusted(earlier, later, leaf) or earlier is runs[-2]
    authorities = [run[f"ca/{LEAVES[leaf]}.key"] for run in runs]
    assert authorities[0] != authorities[-1]
    assert runs[-1]["tls/ca.crt"].count("BEGIN") == 1, "the old one has ended"


def test_a_successor_is_made_once(made: dict[str, str]) -> None:
    at = NOW + timedelta(days=3640)
    later = made | renewed(made, WANTED, at, IDS)
    assert later["tls/ca.crt"].startswith(made["tls/ca.crt"])
    assert later["tls/ca.crt"] != made["tls/ca.crt"]
    assert renewed(later, WANTED, at, IDS) == {}


def test_an_authority_whose_key_is_lost_goes_on_to_be_trusted(made: dict[str, str]) -> None:
    lost = {name: text for name, text in made.items() if not name.startswith("ca/")}
    found = lost | renewed(lost, WANTED, NOW, IDS)
    assert found["tls/tls.crt"] == made["tls/tls.crt"]
    assert is_trusted(made, found)
    assert found["ca/client.key"] != made["ca/client.key"]


def test_a_token_that_is_gone_is_replaced_when_asked_and_the_old_one_counts_for_a_day(made: dict[str, str]) -> None:
    further = made["access/access.toml"] + '[groups]\nours = ["loader"]\n\n[end]\n'
    found = {name: text for name, text in (made | {"access/access.toml": further}).items() if name != "client/token"}
    assert renewed(found, WANTED, NOW, IDS) == {}
    later = renewed(found, replace(WANTED, replaces_token=True), NOW, IDS)
    assert set(later) == {"client/token", "access/access.toml"}
    tokens = {each.digest: each.expires_ms for each in read_access_file(later["access/access.toml"]).tokens}
    day = (NOW + timedelta(days=1)).timestamp() * 1000
    assert tokens == {digest_of(later["client/token"].strip()): None, digest_of(made["client/token"].strip()): day}
    assert "[groups]" in later["access/access.toml"]


def test_a_line_that_somebody_took_out_of_the_access_file_stays_out(made: dict[str, str]) -> None:
    ours = f'[tokens]\n"{digest_of("another")}" = {{ principal = "ann" }}\n'
    assert renewed(made | {"access/access.toml": ours}, replace(WANTED, replaces_token=True), NOW, IDS) == {}


def test_only_the_parts_that_are_wanted_are_made() -> None:
    """What cert-manager or an operator brings is left alone; clients get its authority."""
    wanted = replace(WANTED, parts=[Part.ACCESS, Part.REDIS])
    made = renewed({"tls/ca.crt": "of others"}, wanted, NOW, IDS)
    files = {name.partition("/")[0] for name in made}
    assert files == {"access", "client", "redis"}
    assert "redis/tls.crt" not in made
    assert made["client/ca.crt"] == "of others"
    assert set(renewed({}, replace(WANTED, parts=[Part.S3]), NOW, IDS)) == {"s3/AWS_ACCESS_KEY_ID", "s3/AWS_SECRET_ACCESS_KEY"}


def test_the_user_that_has_redis_reload_may_do_nothing_else(made: dict[str, str]) -> None:
    assert "reload" not in made["redis/users.acl"]
    later = made | renewed(made, replace(WANTED, reloads_redis=True), NOW, IDS)
    user = later["redis/users.acl"].splitlines()[-1]
    assert user.endswith(" resetkeys resetchannels -@all +config|set +ping")
    assert later["redis/password"] == made["redis/password"]


def test_no_certificate_outlives_its_authority(made: dict[str, str]) -> None:
    at = NOW + timedelta(days=3500)
    later = renewed(made, WANTED, at, IDS)
    assert certificate(later["tls/tls.crt"]).not_valid_after_utc == certificate(made["ca/client.crt"]).not_valid_after_utc


def test_the_token_counts_and_may_do_everything(made: dict[str, str]) -> None:
    access = read_access_file(made["access/access.toml"])
    assert [each.digest for each in access.tokens] == [digest_of(made["client/token"].strip())]
    assert isinstance(access.policy.decide(Identity(PRINCIPAL), Right.ADMIN, "any", None), Allowed)
    assert usage_of(access.quotas, PRINCIPAL, frozenset()) == UNLIMITED


def test_an_access_file_that_people_changed_stays_and_no_further_token_is_made(made: dict[str, str]) -> None:
    changed = made | {"access/access.toml": "# ours\n"}
    del changed["client/token"]
    assert renewed(changed, WANTED, NOW, IDS) == {}


def test_redis_has_a_password_of_its_own_which_users_and_settings_agree_on(made: dict[str, str]) -> None:
    password = made["redis/password"].strip()
    assert len(password) >= 32
    assert made["redis/settings.toml"] == f'redis = "rediss://headgate:{password}@redis:6379/0"\n'
    assert digest_of(password).removeprefix("sha256:") in made["redis/users.acl"]
    assert password not in made["redis/users.acl"]
    assert not any(name.startswith("redis/") for name in renewed({}, Wanted(["h"]), NOW, IDS))


def test_the_command_writes_files_that_others_cannot_read_and_says_what_it_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["access", "credentials", str(tmp_path / "made"), "--host", "h", "--redis-host", "redis", "--json"]
    assert run(command) == ExitCode.OK
    first = json.loads(capsys.readouterr().out)["made"]
    assert "tls/tls.crt" in first
    for name in first:
        path = tmp_path / "made" / name
        secret = path.suffix == ".key" or path.name in ("token", "password", "settings.toml", "users.acl", "access.toml")
        assert stat.S_IMODE(path.stat().st_mode) == (0o640 if secret else 0o644), name
    assert run(command) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["made"] == []


@pytest.mark.parametrize(
    "host", ["bücher.example", "", "a b", "10.0.0.0/8", "h:7070", "256.1.1.1", "a..b", f"{64 * 'a'}.example"]
)
def test_a_name_that_no_certificate_can_be_for_is_refused_and_makes_nothing(
    host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in (["--host", host], ["--host", "h", "--redis-host", host]):
        assert run(["access", "credentials", str(tmp_path / "made"), *options]) == ExitCode.USAGE
        assert "want a DNS name" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "host", ["h", "*.example.org", "xn--bcher-kva.example", "10.0.0.7", "::1", "writer-0.writers.ns.svc", "1.org"]
)
def test_names_and_addresses_get_a_certificate(host: str) -> None:
    found = renewed({}, Wanted([host], parts=[Part.TLS]), NOW, IDS)
    assert is_host(host)
    assert renewed(found, Wanted([host], parts=[Part.TLS]), NOW, IDS) == {}


def test_a_file_that_is_no_text_counts_as_damaged(tmp_path: Path) -> None:
    command = ["access", "credentials", str(tmp_path / "made"), "--host", "h", "--json"]
    assert run(command) == ExitCode.OK
    key = tmp_path / "made/tls/tls.key"
    key.write_bytes(b"\xff\xfe")
    assert run(command) == ExitCode.OK
    assert key.read_text().startswith("-----BEGIN PRIVATE KEY")


@pytest.mark.parametrize(
    "wrong", [["--valid", "soon"], ["--valid", "60d"], []], ids=["no duration", "not above --left", "no host"]
)
def test_a_wrong_command_line_makes_nothing(wrong: list[str], tmp_path: Path) -> None:
    host = ["--host", "h"] if wrong else []
    assert run(["access", "credentials", str(tmp_path / "made"), *host, *wrong]) == ExitCode.USAGE
    assert not (tmp_path / "made").exists()
