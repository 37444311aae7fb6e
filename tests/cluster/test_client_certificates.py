"""Clients that certificates name, from the SDK and the command to the table: who gets in, whose channels are, when they end."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import headgate
from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from support.access import role, write_access
from support.bad_batches import SCHEMA
from support.certificates import DAY, Authority
from support.certified_clients import CertifiedClients, certified_clients
from support.processes import READY_S
from support.scene import keys_of

ROW = {"part": "p", "ts": 1, "note": ""}
COLUMNS: Mapping[str, Any] = {"key": "id", "partition_by": "part", "ordering": "ts", "buckets": 2, "exist_ok": True}
TABLE = "raw_events"
LOADER, SPIFFE = "loader.example.org", "spiffe://example.org/ns/etl/sa/loader"
ROLES = (
    role(f"cert:{LOADER}", "write", "create", tables=["raw_*"], channels=["{principal}/"]),
    role(f"cert:{SPIFFE}", "write", tables=["raw_*"], channels=["etl/"]),
    role("cert:other.example.org", "write", tables=["raw_*"]),
    role("ann", "write", tables=["raw_*"]),
)
TOKENS = {"ann-token": "ann", "loader-token": f"cert:{LOADER}"}


@dataclass(frozen=True, slots=True)
class Scene:
    """The file knows a token of ann, and one that stands for the loader where its certificate does not reach."""

    certified: CertifiedClients
    audit: Path

    def connect(self, name: str, *, token: str | None = None, uri: str = "") -> headgate.Headgate:
        """With a new certificate of this DNS name, or of this URI alone."""
        issued = self.certified.clients.issue(str(time.monotonic_ns()), [] if uri else [name], uris=[uri] if uri else [])
        return self.certified.connect(issued, token)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("certified")
    access, audit = write_access(folder / "access.toml", TOKENS, *ROLES), folder / "audit.jsonl"
    with certified_clients(folder, access, "--audit-log", str(audit)) as certified:
        made = Scene(certified, audit)
        with made.connect(LOADER) as hg:
            hg.create_table(TABLE, SCHEMA, **COLUMNS)
        yield made


def send(channel: headgate.Channel, *keys: str) -> None:
    """Each key's row, until all are in the table."""
    channel.upsert([{"id": key, **ROW} for key in keys])
    channel.flush()


@pytest.mark.slow
def test_a_channel_belongs_to_the_name_whichever_certificate_comes_and_to_nobody_else(scene: Scene) -> None:
    own = f"cert:{LOADER}/own"
    with scene.connect(LOADER) as hg, hg.table(TABLE).channel(own) as channel:
        send(channel, "by the first certificate")
        url = hg.table(TABLE).info.url
    with scene.connect(LOADER) as hg, hg.table(TABLE).channel(own) as channel:
        assert channel.committed_offset == 1
        send(channel, "by the second certificate")
    others = {
        "other": scene.connect("other.example.org"),
        "ann beside the loader's certificate": scene.connect(LOADER, token="ann-token"),
    }
    for who, hg in others.items():
        with hg, pytest.raises(headgate.ChannelForbiddenError):
            pytest.fail(f"{who} has {hg.table(TABLE).channel(own)}")
    with scene.connect("other.example.org", token="loader-token") as hg, hg.table(TABLE).channel(own) as channel:
        assert channel.committed_offset == 2, "a token of the same principal"
    assert {"by the first certificate", "by the second certificate"} <= set(keys_of(url))


@pytest.mark.slow
def test_channels_begin_with_the_certificates_name_where_the_role_says_so(scene: Scene) -> None:
    with scene.connect(LOADER) as hg, pytest.raises(headgate.PermissionDeniedError, match="through the channel") as refused:
        hg.table(TABLE).channel("loader/1")
    assert f"Begin the channel's name with 'cert:{LOADER}/'" in refused.value.fix
    with scene.connect("", uri=SPIFFE) as hg, hg.table(TABLE).channel("etl/1") as channel:
        send(channel, "by a SPIFFE id")
        assert "by a SPIFFE id" in keys_of(hg.table(TABLE).info.url)


@pytest.mark.slow
@pytest.mark.parametrize("token", [None, "ann-token"])
@pytest.mark.parametrize("what", ["none", "expired", "foreign"])
def test_without_a_valid_certificate_nobody_is_reached_and_a_token_does_not_help(
    what: str, token: str | None, scene: Scene, tmp_path: Path
) -> None:
    shown = None
    if what == "expired":
        shown = scene.certified.clients.issue(f"expired {token}", [LOADER], valid=-DAY / 2)
    elif what == "foreign":
        shown = Authority(tmp_path / "theirs").issue("foreign", [LOADER])
    with scene.certified.connect(shown, token, timeout=2) as hg, pytest.raises(headgate.UnavailableError):
        hg.tables()


def test_a_wrong_token_does_not_fall_back_on_the_certificate(scene: Scene) -> None:
    with scene.connect(LOADER, token="wrong") as hg, pytest.raises(headgate.UnauthenticatedError, match="no token, or one that"):
        hg.tables()


@pytest.mark.parametrize("name", ["stranger.example.org", "*.example.org", "Loader.example.org", "writer.headgate.internal"])
def test_whom_no_role_names_may_do_nothing(name: str, scene: Scene) -> None:
    with scene.connect(name) as hg:
        for call in (hg.tables, hg.status, lambda: hg.table(TABLE), lambda: hg.create_table("raw_other", SCHEMA, **COLUMNS)):
            with pytest.raises((headgate.PermissionDeniedError, headgate.UnauthenticatedError)):
                call()


def test_the_audit_log_has_the_principal_and_the_serial_number(scene: Scene) -> None:
    issued = scene.certified.clients.issue("logged", [LOADER])
    with scene.certified.connect(issued) as hg, hg.table(TABLE).channel(f"cert:{LOADER}/logged") as channel:
        send(channel, "logged")
    serial = f"x509:{issued.serial:x}"
    lines = [json.loads(line) for line in scene.audit.read_text().splitlines()]
    [opened] = [line for line in lines if line.get("channel") == f"cert:{LOADER}/logged"]
    assert (opened["principal"], opened["credential"], opened["outcome"]) == (f"cert:{LOADER}", serial, "OK")


def test_an_open_channel_ends_with_its_certificate_and_a_newer_one_goes_on_where_it_was(scene: Scene) -> None:
    """The writer's clock is put forward: to a minute before the certificate's end, and to behind it."""
    day_s, cluster = DAY.total_seconds(), scene.certified.cluster
    try:
        with scene.connect(LOADER) as hg:
            table = hg.table(TABLE)
            channel = table.channel(f"cert:{LOADER}/late")
            cluster.move_clock("writer-1", day_s - 60)
            send(channel, "in the last minute")
            assert "in the last minute" in keys_of(table.info.url)
            cluster.move_clock("writer-1", day_s + 1)
            with pytest.raises(headgate.UnauthenticatedError, match="certificate has expired"):
                send_until_ended(channel)
    finally:
        cluster.move_clock("writer-1", 0)
    with scene.connect(LOADER) as hg, hg.table(TABLE).channel(f"cert:{LOADER}/late") as channel:
        assert channel.committed_offset >= 1
        send(channel, "with a newer certificate")
        assert "with a newer certificate" in keys_of(hg.table(TABLE).info.url)


def send_until_ended(channel: headgate.Channel) -> None:
    """Raises what ended it."""
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        send(channel, "late")
    pytest.fail("the channel did not end")


@pytest.mark.slow
def test_a_command_shows_the_certificate_that_it_is_given(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    issued, certified = scene.certified.clients.issue("command", [LOADER]), scene.certified
    place = ("--connect", certified.cluster.address, "--tls-ca", str(certified.server))
    own = ("--client-cert", str(issued.cert), "--client-key", str(issued.key))
    assert run(["table", "list", *place, *own, "--json"]) == ExitCode.OK
    assert TABLE in capsys.readouterr().out
    assert run(["table", "list", *place, *own[:2]]) == ExitCode.USAGE
    assert "--client-cert and --client-key belong together" in capsys.readouterr().err
    assert run(["table", "list", *place, "--timeout", "2"]) == ExitCode.RETRY_LATER
