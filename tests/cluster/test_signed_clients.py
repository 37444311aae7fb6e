"""Clients whose tokens an issuer signs (JWT), from the SDK to the table: what they may do, whose channels are, when they end."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

import headgate
from support.access import role, write_access
from support.bad_batches import SCHEMA
from support.cluster import Cluster
from support.issuer import Issuer, issuer_beside
from support.processes import READY_S
from support.scene import keys_of

ROW = {"part": "p", "ts": 1, "note": ""}
COLUMNS: Mapping[str, Any] = {"key": "id", "partition_by": "part", "ordering": "ts", "buckets": 2, "exist_ok": True}
VALID_S = 3_600
LEEWAY_S = 10
TABLE = "raw_events"


@dataclass(frozen=True, slots=True)
class Signed:
    """The file knows one token, that of a principal "ann", who is not the issuer's."""

    cluster: Cluster
    issuer: Issuer

    def connect(self, name: str, *groups: str) -> headgate.Headgate:
        """As the issuer's user of that name, in those groups, with a token of its own."""
        claims = {"iss": self.issuer.address, "aud": "headgate", "exp": int(time.time()) + VALID_S, "groups": groups}
        return self.with_token(self.issuer.sign("k", {**claims, "sub": name, "jti": str(time.monotonic_ns())}))

    def with_token(self, token: str) -> headgate.Headgate:
        return headgate.connect(self.cluster.address, token=token, timeout=READY_S, wait=READY_S)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signed]:
    folder: Path = tmp_path_factory.mktemp("signed")
    access = write_access(
        folder / "access.toml",
        {"ann-token": "ann"},
        role("@jwt:ingest", "write", "create", tables=["raw_*"], channels=["{principal}/"]),
        role("@jwt:anywhere", "write", tables=["raw_*"]),
        role("ann", "write", tables=["raw_*"]),
    )
    with issuer_beside() as shown:
        shown.keys = {"k": rsa.generate_private_key(public_exponent=65_537, key_size=2_048)}
        flags = ["--access", str(access), "--access-reload", "100ms"]
        flags += ["--jwt-issuer", shown.address, "--jwt-audience", "headgate"]
        options = {
            "coordinator": [*flags, "--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"],
            "writer": flags,
        }
        env = {"HEADGATE_CLUSTER_TOKEN": "cluster-token"}
        with Cluster(folder / "cluster", writers=1, options=options, env=env) as cluster:
            made = Signed(cluster, shown)
            with made.connect("ann", "ingest") as hg:
                hg.create_table(TABLE, SCHEMA, **COLUMNS)
            yield made


def send(channel: headgate.Channel, *keys: str) -> None:
    """Each key's row, until all are in the table."""
    channel.upsert([{"id": key, **ROW} for key in keys])
    channel.flush()


@pytest.mark.slow
def test_a_channel_belongs_to_the_issuers_user_whichever_token_comes_and_to_nobody_else(signed: Signed) -> None:
    with signed.connect("ann", "ingest") as hg, hg.table(TABLE).channel("jwt:ann/own") as channel:
        send(channel, "by the first token")
        url = hg.table(TABLE).info.url
    with signed.connect("ann", "ingest") as hg, hg.table(TABLE).channel("jwt:ann/own") as channel:
        assert channel.committed_offset == 1
        send(channel, "by the second token")
    others = {"bob": signed.connect("bob", "anywhere"), "ann of the file": signed.with_token("ann-token")}
    for who, hg in others.items():
        with hg, pytest.raises(headgate.ChannelForbiddenError):
            pytest.fail(f"{who} has {hg.table(TABLE).channel('jwt:ann/own')}")
    assert {"by the first token", "by the second token"} <= set(keys_of(url))


def test_channels_begin_with_the_issuers_name_where_the_role_says_so(signed: Signed) -> None:
    with signed.connect("ann", "ingest") as hg:
        table = hg.table(TABLE)
        for name in ("ann/1", "jwt:bob/1", "loader"):
            with pytest.raises(headgate.PermissionDeniedError, match=f"through the channel '{name}'") as refused:
                table.channel(name)
            assert "Begin the channel's name with 'jwt:ann/'" in refused.value.fix
        with table.channel("jwt:ann/1") as channel:
            send(channel, "own prefix")
        assert "own prefix" in keys_of(table.info.url)


def test_an_open_channel_ends_with_its_token_and_a_newer_one_goes_on_where_it_was(signed: Signed) -> None:
    """The writer's clock is put forward: to a minute before the token's end, and to behind it."""
    try:
        with signed.connect("eva", "ingest") as hg:
            table = hg.table(TABLE)
            channel = table.channel("jwt:eva/1")
            send(channel, "early")
            signed.cluster.move_clock("writer-1", VALID_S - 60)
            send(channel, "in the last minute")
            assert {"early", "in the last minute"} <= set(keys_of(table.info.url))
            signed.cluster.move_clock("writer-1", VALID_S + LEEWAY_S + 1)
            with pytest.raises(headgate.UnauthenticatedError, match="expired"):
                send_until_ended(channel)
    finally:
        signed.cluster.move_clock("writer-1", 0)
    with signed.connect("eva", "ingest") as hg, hg.table(TABLE).channel("jwt:eva/1") as channel:
        assert channel.committed_offset >= 2
        send(channel, "with a newer token")
        assert "with a newer token" in keys_of(table.info.url)


def send_until_ended(channel: headgate.Channel) -> None:
    """Raises what ended it."""
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        send(channel, "late")
    pytest.fail("the channel did not end")


@pytest.mark.parametrize("groups", [(), ("strangers",), ("@jwt:ingest", "jwt:ingest")], ids=str)
def test_whom_the_issuer_knows_and_no_role_names_is_denied_everything(groups: tuple[str, ...], signed: Signed) -> None:
    """A group of the issuer cannot have the prefix that stands for the issuer."""
    with signed.connect("eve", *groups) as hg:
        calls = (
            hg.tables,
            hg.status,
            lambda: hg.table(TABLE),
            lambda: hg.create_table("raw_other", SCHEMA, **COLUMNS),
        )
        for call in calls:
            with pytest.raises(headgate.PermissionDeniedError, match="'jwt:eve' lacks the right"):
                call()
