"""Who may do what, and what may be heard on the way, against real processes that are set up with tokens and TLS."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from grpc_health.v1 import health_pb2, health_pb2_grpc

import headgate
from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import from_call
from support.bad_batches import SCHEMA
from support.certificates import Certificate, self_signed
from support.cluster import Cluster
from support.committed_log import open_bytes
from support.methods import METHODS, SERVED
from support.processes import Process, child_environment
from support.redis_server import start_redis
from support.scene import keys_of
from support.shares import written

ALICE, BOB, CLUSTER = "alice-token", "bob-token", "cluster-token"
SOON = ["--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"]
ROW = {"part": "p", "ts": 1, "note": ""}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_text(f"alice {ALICE}\nbob {BOB}\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def guarded(tokens: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """With tokens, without TLS."""
    flags = ["--tokens", str(tokens)]
    with Cluster(
        tmp_path_factory.mktemp("guarded") / "cluster",
        options={"coordinator": [*flags, *SOON], "writer": flags},
        env={"HEADGATE_CLUSTER_TOKEN": CLUSTER},
    ) as cluster:
        yield cluster


async def answer(address: str, method: MethodDescriptor, token: str, *, says: Sequence[bytes]) -> grpc.aio.AioRpcError | None:
    """How a call with this token fails. A stream says these messages and hears all answers; one that says nothing stays open."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    service = method.containing_service
    assert service is not None
    path = f"/{service.full_name}/{method.name}"
    async with grpc.aio.insecure_channel(address) as channel:
        make: Any = channel.stream_stream(path) if method.client_streaming else channel.unary_unary(path)
        try:
            if method.server_streaming and not method.client_streaming:
                await channel.unary_stream(path)(b"", metadata=metadata).read()
            elif not method.client_streaming:
                await make(b"", metadata=metadata)
            elif says:
                async for _ in make(iter(says), metadata=metadata):
                    pass
            else:
                await make(metadata=metadata).read()
        except grpc.aio.AioRpcError as failed:
            return failed
    return None


async def assert_refused(address: str, method: MethodDescriptor, token: str) -> None:
    """Before anything is said: grpcio hides the status from who writes at that moment."""
    failed = await answer(address, method, token, says=[])
    assert failed is not None
    assert failed.code() is grpc.StatusCode.UNAUTHENTICATED
    error = from_call(failed)
    assert (error.code, error.action) == (errors_pb2.CODE_UNAUTHENTICATED, errors_pb2.ACTION_GIVE_UP)
    assert "token" in error.fix


async def assert_let_in(address: str, method: MethodDescriptor, token: str) -> None:
    """Whatever it then says to an empty message."""
    failed = await answer(address, method, token, says=[b""])
    assert failed is None or failed.code() is not grpc.StatusCode.UNAUTHENTICATED


def _name(value: object) -> str:
    return value.name if isinstance(value, MethodDescriptor) else str(value)


@pytest.mark.parametrize(("part", "method"), METHODS, ids=_name)
async def test_no_method_answers_a_stranger_and_none_of_the_clusters_own_a_client(
    part: str, method: MethodDescriptor, guarded: Cluster
) -> None:
    address = guarded.address_of(part)
    for token in ("", "wrong", ALICE.upper(), ALICE + "x"):
        await assert_refused(address, method, token)
    if ".cluster." in method.full_name:
        await assert_refused(address, method, ALICE)
    else:
        await assert_let_in(address, method, ALICE)
    await assert_let_in(address, method, CLUSTER)


@pytest.mark.parametrize("part", SERVED)
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


def test_with_tls_and_tokens_rows_go_all_the_way_and_nobody_else_gets_in(tokens: Path, tmp_path: Path) -> None:
    """Two writers: client to coordinator and writer, writer to coordinator, writer to writer."""
    ours, others = self_signed(tmp_path / "ours"), self_signed(tmp_path / "others")
    flags = ["--listen", "localhost:0", "--tokens", str(tokens), *tls_flags(ours)]
    with Cluster(
        tmp_path / "cluster",
        options={"coordinator": [*flags, *SOON], "writer": flags},
        env={"HEADGATE_CLUSTER_TOKEN": CLUSTER},
    ) as cluster:
        trusting = headgate.Tls(ca=ours.cert)
        with headgate.connect(cluster.address, tls=trusting, token=ALICE) as hg:
            table = hg.create_table("t", SCHEMA, key="id", partition_by="part", ordering="ts", buckets=8)
            with table.channel("c") as channel:
                for first in (0, 100):  # by the second checkpoint both writers take part
                    channel.upsert([{**ROW, "id": str(number), "part": f"p{number % 8}"} for number in range(first, first + 100)])
                    channel.flush()
        assert len(keys_of(table.info.url)) == 200
        assert len(written(open_bytes(table.info.url))[-1]) == 2
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


def command(kind: str, store: Path, *flags: str) -> list[str]:
    needed = ["--store", str(store)] if kind == "coordinator" else ["--coordinator", "127.0.0.1:1"]
    return [sys.executable, "-m", f"headgate_{kind}", *needed, *flags]


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
@pytest.mark.parametrize("kind", ["coordinator", "writer"])
def test_an_address_that_others_reach_is_refused_without_tls_and_tokens(
    kind: str, address: str, tmp_path: Path, tokens: Path
) -> None:
    """Each alone is not enough; what is missing is named."""
    tls = tls_flags(self_signed(tmp_path / "certificate"))
    with_tokens = ["--tokens", str(tokens), "--cluster-token", CLUSTER]
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
        missing = ("cluster_token", "tls_cert", "tls_key", *(() if flags == with_tokens else ("tokens", "insecure")))
        assert all(name in ended.stderr for name in (address, *missing))


@pytest.mark.parametrize("how", ["insecure", "guarded"])
def test_it_is_served_with_both_or_when_somebody_says_that_it_may_be_insecure(how: str, tmp_path: Path, tokens: Path) -> None:
    redis = start_redis(tmp_path / "redis.log")
    flags: Sequence[str] = ["--insecure"]
    if how == "guarded":
        flags = [*tls_flags(self_signed(tmp_path / "certificate")), "--tokens", str(tokens), "--cluster-token", CLUSTER]
    flags = [*flags, "--listen", "0.0.0.0:0", "--redis", f"redis://{redis.address}/0"]
    coordinator = Process("coordinator", command("coordinator", tmp_path / "store", *flags), tmp_path / "log")
    try:
        assert coordinator.wait_ready().startswith("0.0.0.0:")
    finally:
        coordinator.kill()
        redis.kill()
