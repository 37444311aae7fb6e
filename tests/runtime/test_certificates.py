"""Certificates that have expired, and keys that do not fit: the service does not begin, and says which it is."""

import datetime
import json
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key

from headgate_runtime.certificates import check_certificates
from headgate_runtime.environment import ENVIRONMENT
from headgate_runtime.lifecycle import StartError
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import SystemClock
from support.certificates import DAY, Authority
from support.processes import Process

DAY_MS = round(DAY.total_seconds() * 1000)
AN_HOUR = datetime.timedelta(hours=1)


def test_a_certificate_is_refused_from_the_moment_at_which_it_expires(tmp_path: Path) -> None:
    issued = Authority(tmp_path / "authority").issue("server", ["localhost"])
    settings = ServiceSettings(tls_cert=str(issued.cert), tls_key=str(issued.key))
    now = SystemClock().now_ms()
    check_certificates(settings, now)
    with pytest.raises(StartError, match=r"tls_cert: the certificate in .*/cert\.pem has expired \(20.*Renew it and its key"):
        check_certificates(settings, now + DAY_MS)


@pytest.mark.parametrize(
    ("cert", "key", "why"),
    [
        (
            "one/server/cert.pem",
            "other/server/key.pem",
            r"tls_key: the key in .*key\.pem is not that of the certificate",
        ),
        ("one/server/cert.pem", "one/server/cert.pem", r"tls_key: .*/cert\.pem is not a private key in PEM form"),
        ("one/server/cert.pem", "locked.pem", r"tls_key: .*/locked\.pem is not a private key in PEM form without a password"),
        ("one/server/key.pem", "one/server/key.pem", r"tls_cert: .*/key\.pem is not a certificate in PEM form"),
    ],
)
def test_a_certificate_and_a_key_that_are_no_pair_are_refused_by_name(cert: str, key: str, why: str, tmp_path: Path) -> None:
    one, _ = (Authority(tmp_path / name).issue("server", ["localhost"]) for name in ("one", "other"))
    locked = load_pem_private_key(one.key.read_bytes(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    (tmp_path / "locked.pem").write_bytes(locked)
    settings = ServiceSettings(tls_cert=str(tmp_path / cert), tls_key=str(tmp_path / key))
    with pytest.raises(StartError, match=why):
        check_certificates(settings, SystemClock().now_ms())


def test_an_authority_of_clients_is_refused_when_no_client_could_connect(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    server = authority.issue("server", ["localhost"], valid=2 * DAY)
    (wrong := tmp_path / "wrong.pem").write_text("authority")
    now = SystemClock().now_ms()

    def check(client_ca: Path, now_ms: int) -> None:
        own = {"tls_cert": str(server.cert), "tls_key": str(server.key), "client_ca": str(client_ca), "access": "a"}
        cluster = {
            "cluster_cert": str(server.cert),
            "cluster_key": str(server.key),
            "cluster_ca": str(authority.cert),
            "cluster_listen": "127.0.0.1:0",
        }
        check_certificates(ServiceSettings(**own, **cluster), now_ms)  # type: ignore[arg-type]

    check(authority.cert, now)
    with pytest.raises(StartError, match=r"client_ca: what is in .* has expired"):
        check(authority.cert, now + DAY_MS)
    with pytest.raises(StartError, match=r"client_ca: .*wrong\.pem is no PEM file"):
        check(wrong, now)
    (both := tmp_path / "both.pem").write_bytes(authority.cert.read_bytes() + server.cert.read_bytes())
    check(both, now + DAY_MS)


FILES = ("tls_cert", "tls_key", "tls_ca", "client_ca", "cluster_cert", "cluster_key", "cluster_ca")


@pytest.mark.parametrize("missing", FILES)
def test_a_file_that_is_not_there_is_refused_by_name(missing: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    issued = authority.issue("server", ["localhost"])
    given = {name: str({"cert": issued.cert, "key": issued.key, "ca": authority.cert}[name.rpartition("_")[2]]) for name in FILES}
    settings = {"access": "a", "cluster_listen": "127.0.0.1:0", **given}
    check_certificates(ServiceSettings(**settings), SystemClock().now_ms())  # type: ignore[arg-type]
    with pytest.raises(StartError, match=rf"{missing}: /gone\.pem cannot be read: No such file .*Name a file"):
        check_certificates(ServiceSettings(**settings | {missing: "/gone.pem"}), SystemClock().now_ms())  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("service", ["coordinator", "writer", "compactor"])
def test_a_service_whose_authority_is_not_there_ends_and_its_last_line_says_so(service: str, tmp_path: Path) -> None:
    assert "tls_ca: /gone.pem cannot be read" in last_words(service, tmp_path, "--tls-ca", "/gone.pem")


@pytest.mark.slow
@pytest.mark.parametrize("service", ["coordinator", "writer", "compactor"])
def test_a_service_with_an_expired_certificate_ends_and_its_last_line_says_what_to_do(service: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    issued = authority.issue(service, [f"{service}.headgate.internal"], valid=-AN_HOUR)
    flags = ["--cluster-cert", str(issued.cert), "--cluster-key", str(issued.key), "--cluster-ca", str(authority.cert)]
    if service != "compactor":
        flags += ["--cluster-listen", "127.0.0.1:0"]
    said = last_words(service, tmp_path, *flags)
    assert f"cluster_cert: the certificate in {issued.cert} has expired" in said
    assert "Renew it" in said


def last_words(service: str, folder: Path, *flags: str) -> str:
    """Why it could not start."""
    needed = ["--store", str(folder / "store")] if service == "coordinator" else ["--coordinator", "127.0.0.1:1"]
    module = f"headgate_{service}"
    command = [sys.executable, "-m", module, "--log-format", "json", *needed, *flags]
    process = Process(service, command, folder / "log", env=ENVIRONMENT, program=module)
    try:
        assert process.wait_end() == 1
    finally:
        process.kill()
    said = json.loads(process.log.read_text(encoding="utf-8").splitlines()[-1])
    assert said["event"] == "service cannot start", process.tail()
    return str(said["why"])
