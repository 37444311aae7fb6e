"""Channels of several principals, and what may be heard on the way, against real processes with tokens and TLS."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import headgate
from support.access import write_access
from support.bad_batches import SCHEMA
from support.certificates import Certificate, self_signed
from support.cluster import Cluster
from support.committed_log import open_bytes
from support.processes import Process, child_environment
from support.redis_server import start_redis
from support.scene import keys_of
from support.shares import written

ALICE, BOB, CLUSTER = "alice-token", "bob-token", "cluster-token"
SOON = ["--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"]
ROW = {"part": "p", "ts": 1, "note": ""}


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_access(tmp_path_factory.mktemp("access") / "access.toml", {ALICE: "alice", BOB: "bob"})


@pytest.fixture(scope="module")
def guarded(access: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """With tokens, without TLS."""
    flags = ["--access", str(access)]
    with Cluster(
        tmp_path_factory.mktemp("guarded") / "cluster",
        options={"coordinator": [*flags, *SOON], "writer": flags},
        env={"HEADGATE_CLUSTER_TOKEN": CLUSTER},
    ) as cluster:
        yield cluster


@pytest.mark.parametrize("part", ["coordinator-1", "writer-1"])
async def test_health_answers_everybody(part: str, guarded: Cluster) -> None:
    async with grpc.aio.insecure_channel(guarded.address_of(part)) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("token", [None, "wrong"])
def test_a_program_without_a_known_token_is_told_so(token: str | None, guarded: Cluster) -> None:
    with headgate.connect(guarded.address, token=token) as hg:
        for call in (hg.tables, hg.status, lambda: hg.create_table("t", SCHEMA, key="id")):
            with pytest.raises(headgate.UnauthenticatedError) as caught:
                call()
            assert "token" in caught.value.fix


def test_a_channel_belongs_to_who_opened_it_first(guarded: Cluster) -> None:
    """Rule CH5. The refused one takes nothing from the owner, who goes on writing."""
    with headgate.connect(guarded.address, token=ALICE) as alice, headgate.connect(guarded.address, token=BOB) as bob:
        table = alice.create_table("channels", SCHEMA, key="id", partition_by="part", ordering="ts", buckets=2)
        with table.channel("c") as channel:
            channel.upsert([{"id": "alice 1", **ROW}])
            for _ in range(2):
                with pytest.raises(headgate.ChannelForbiddenError, match="another principal") as caught:
                    bob.table("channels").channel("c")
                assert "another channel name" in caught.value.fix
            with bob.table("channels").channel("bob's own") as other:
                other.upsert([{"id": "bob 1", **ROW}])
            channel.upsert([{"id": "alice 2", **ROW}])
        with pytest.raises(headgate.ChannelForbiddenError, match="another principal"):
            bob.table("channels").channel("c")
        with table.channel("c") as channel:
            assert channel.committed_offset == 2
    assert keys_of(table.info.url) == ["alice 1", "alice 2", "bob 1"]


def test_with_tls_and_tokens_rows_go_all_the_way_and_nobody_else_gets_in(access: Path, tmp_path: Path) -> None:
    """Two writers: client to coordinator and writer, writer to coordinator, writer to writer."""
    ours, others = self_signed(tmp_path / "ours"), self_signed(tmp_path / "others")
    flags = ["--listen", "localhost:0", "--access", str(access), *tls_flags(ours)]
    with Cluster(
        tmp_path / "cluster",
        options={"coordinator": [*flags, *SOON], "writer": flags},
        env={"HEADGATE_CLUSTER_TOKEN": CLUSTER},
    ) as cluster:
        trusting = headgate.Tls(ca=ours.cert)
        with headgate.connect(cluster.address, tls=trusting, token=ALICE) as hg:
            table = hg.create_table("t", SCHEMA, key="id", partition_by="part", ordering="ts", buckets=8)
            with table.channel("c") as channel:
                while channel.offset < 200 or len(written(open_bytes(table.info.url))[-1]) < 2:  # both writers take part soon
                    numbers = range(channel.offset, channel.offset + 100)
                    channel.upsert([{**ROW, "id": str(number), "part": f"p{number % 8}"} for number in numbers])
                    channel.flush()
            assert len(keys_of(table.info.url)) == channel.offset
        with headgate.connect(cluster.address, tls=trusting) as hg, pytest.raises(headgate.UnauthenticatedError):
            hg.tables()
        for tls in (None, headgate.Tls(ca=others.cert)):
            with (
                headgate.connect(cluster.address, tls=tls, token=ALICE, timeout=2) as hg,
                pytest.raises(headgate.UnavailableError),
            ):
                hg.tables()


def tls_flags(certificate: Certificate) -> list[str]:
    return ["--tls-cert", str(certificate.cert), "--tls-key", str(certificate.key), "--tls-ca", str(certificate.cert)]


def cluster_token(folder: Path) -> list[str]:
    (config := folder / "config.toml").write_text(f'cluster_token = "{CLUSTER}"')
    return ["--config", str(config)]


def command(kind: str, store: Path, *flags: str) -> list[str]:
    needed = ["--store", str(store)] if kind == "coordinator" else ["--coordinator", "127.0.0.1:1"]
    return [sys.executable, "-m", f"headgate_{kind}", *needed, *flags]


@pytest.mark.slow
@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
@pytest.mark.parametrize("kind", ["coordinator", "writer"])
def test_an_address_that_others_reach_is_refused_without_tls_and_tokens(
    kind: str, address: str, tmp_path: Path, access: Path
) -> None:
    """Each alone is not enough; what is missing is named."""
    tls = tls_flags(self_signed(tmp_path / "certificate"))
    with_tokens = ["--access", str(access), *cluster_token(tmp_path)]
    for flags in ([], tls, with_tokens):
        ended = subprocess.run(
            command(kind, tmp_path, "--listen", address, *flags),
            capture_output=True,
            text=True,
            timeout=120,
            env=child_environment({}),
            check=False,
        )
        assert ended.returncode == 2
        missing = ("cluster_token", "tls_cert", "tls_key", *(() if flags == with_tokens else ("access", "insecure")))
        assert all(name in ended.stderr for name in (address, *missing))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["insecure", "guarded"])
def test_it_is_served_with_both_or_when_somebody_says_that_it_may_be_insecure(how: str, tmp_path: Path, access: Path) -> None:
    redis = start_redis(tmp_path / "redis.log")
    flags: Sequence[str] = ["--insecure"]
    if how == "guarded":
        flags = [*tls_flags(self_signed(tmp_path / "certificate")), "--access", str(access), *cluster_token(tmp_path)]
    flags = [*flags, "--listen", "0.0.0.0:0", "--advertise", "localhost:0", "--redis", f"redis://{redis.address}/0"]
    coordinator = Process("coordinator", command("coordinator", tmp_path / "store", *flags), tmp_path / "log")
    try:
        assert coordinator.wait_ready().startswith("0.0.0.0:")
    finally:
        coordinator.kill()
        redis.kill()
