"""Tables through whichever coordinator answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pyarrow as pa
import pytest

import headgate
from headgate import aio
from headgate_proto.api.v1 import errors_pb2 as err
from support.certificates import self_signed
from support.scripted_service import Cluster, error, scripted_cluster

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("at", pa.timestamp("us", tz="UTC"))])
NOBODY = "127.0.0.1:1"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with scripted_cluster() as cluster:
        yield cluster


async def test_a_table_is_created_and_found_again_as_it_was_said(cluster: Cluster) -> None:
    async with aio.connect(cluster.coordinator) as hg:
        made = await hg.create_table(
            "b", SCHEMA, key=["id"], ordering="at", partition_by=["id", "at"], buckets=4, hive_style=True, table_version=9
        )
        await hg.create_table("a", SCHEMA, key="id")
        assert (await hg.table("b")).info == made.info
        info = made.info
        assert (info.schema, info.key, info.partition_by, info.ordering) == (SCHEMA, ("id",), ("id", "at"), "at")
        assert [table.name for table in await hg.tables()] == ["a", "b"]
        assert (info.buckets, info.hive_style, info.table_version) == (4, True, 9)
        defaults = (await hg.table("a")).info
        assert (defaults.ordering, defaults.hive_style, defaults.table_version) == (None, False, 8)
        status = await hg.status()
        assert [(table.name, table.state) for table in status.tables] == [("b", "owned"), ("a", "owned")]
        assert status.tables[0].alarms == ("all is well",)
        assert [writer.address for writer in status.writers] == cluster.writers


async def test_a_table_that_exists_or_does_not_is_an_error_that_says_so(cluster: Cluster) -> None:
    async with aio.connect(cluster.coordinator) as hg:
        await hg.create_table("t", SCHEMA, key="id")
        with pytest.raises(headgate.TableExistsError, match="table t exists"):
            await hg.create_table("t", SCHEMA, key="id")
        await hg.create_table("t", SCHEMA, key="id", exist_ok=True)
        with pytest.raises(headgate.TableNotFoundError, match="no table u"):
            await hg.table("u")


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("ordres", r"no table of this name: 'ordres'\. Did you mean 'orders'\? Create it"),
        ("nosuch", r"no table of this name: 'nosuch'\. Create it"),
        ("table", r"no table of this name: 'table'\. Create it"),
    ],
)
async def test_a_table_that_there_is_not_is_named_with_the_nearest_one(wanted: str, says: str, cluster: Cluster) -> None:
    async with aio.connect(cluster.coordinator) as hg:
        await hg.create_table("orders", SCHEMA, key="id")
        missing = err.Error(
            code=err.CODE_TABLE_NOT_FOUND,
            action=err.ACTION_FIX_CALL,
            message="no table of this name",
            fix="Create it, or correct the name.",
        )
        cluster.knobs.unary = [missing]
        with pytest.raises(headgate.TableNotFoundError, match=says):
            await hg.table(wanted)
        cluster.knobs.unary = [missing, error(err.CODE_PERMISSION_DENIED, "no right to list")]
        with pytest.raises(headgate.TableNotFoundError, match=f"{wanted}'\\. Create it"):
            await hg.table(wanted)


@pytest.mark.parametrize("code", [err.CODE_TABLE_DROPPED, err.CODE_TABLE_RENAMED])
async def test_a_table_that_went_away_keeps_its_error_and_nobody_lists_the_others(
    code: err.Code.ValueType, cluster: Cluster
) -> None:
    async with aio.connect(cluster.coordinator) as hg:
        cluster.knobs.unary = [error(code, "the table went away")]
        with pytest.raises((headgate.TableDroppedError, headgate.TableRenamedError), match="went away"):
            await hg.table("t")
    assert cluster.listings == 0


async def test_a_creation_whose_answer_was_lost_is_no_error(cluster: Cluster) -> None:
    cluster.knobs.unary = [grpc.StatusCode.UNAVAILABLE]
    async with aio.connect(cluster.coordinator) as hg:
        await hg.create_table("t", SCHEMA, key="id")
    assert [request.exist_ok for request in cluster.created] == [False, True]


async def test_a_call_that_was_refused_untouched_stays_as_it_was(cluster: Cluster) -> None:
    cluster.knobs.unary = [error(err.CODE_UNAVAILABLE, retry_after_ms=1), error(err.CODE_OVERLOADED)]
    async with aio.connect(cluster.coordinator) as hg:
        await hg.create_table("t", SCHEMA, key="id")
    assert [request.exist_ok for request in cluster.created] == [False]


@pytest.mark.parametrize("addresses", [f"{NOBODY},{{}}", [NOBODY, "{}"], [f" {NOBODY} , {{}}"]])
async def test_any_of_several_coordinators_does(cluster: Cluster, addresses: str | list[str]) -> None:
    filled = (
        addresses.format(cluster.coordinator)
        if isinstance(addresses, str)
        else [a.format(cluster.coordinator) for a in addresses]
    )
    async with aio.connect(filled) as hg:
        table = await hg.create_table("t", SCHEMA, key="id")
        async with table.channel("c") as channel:
            await channel.upsert([{"id": 1, "at": None}])
    assert len(cluster.tables["t"].rows) == 1


async def test_a_redirect_is_followed(cluster: Cluster) -> None:
    async with scripted_cluster() as other:
        cluster.knobs.unary = [error(err.CODE_NOT_OWNER, address=other.coordinator)]
        async with aio.connect(cluster.coordinator) as hg:
            await hg.create_table("t", SCHEMA, key="id")
        assert list(other.tables) == ["t"]
        assert not cluster.tables


async def test_coordinators_that_point_at_each_other_end_with_the_timeout(cluster: Cluster) -> None:
    cluster.knobs.unary = [error(err.CODE_NOT_OWNER, address=cluster.coordinator) for _ in range(1000)]
    async with aio.connect(cluster.coordinator, timeout=0.3) as hg:
        with pytest.raises(headgate.UnavailableError):
            await hg.table("t")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (err.CODE_SCHEMA, headgate.SchemaError),
        (err.CODE_INVALID_ARGUMENT, headgate.InvalidArgumentError),
        (err.CODE_TABLE_QUARANTINED, headgate.TableQuarantinedError),
        (err.CODE_INTERNAL, headgate.InternalError),
        (err.CODE_CHANNEL_FORBIDDEN, headgate.ChannelForbiddenError),
        (err.CODE_UNAUTHENTICATED, headgate.UnauthenticatedError),
        (err.CODE_PERMISSION_DENIED, headgate.PermissionDeniedError),
        (err.CODE_CORRUPT_BATCH, headgate.FixCall),
        (39, headgate.FixCall),
        (99, headgate.GiveUp),
    ],
)
async def test_an_error_has_its_class_or_that_of_what_to_do(cluster: Cluster, code: int, expected: type[Exception]) -> None:
    cluster.knobs.unary = [error(code, "what is wrong")]  # type: ignore[arg-type]
    async with aio.connect(cluster.coordinator) as hg:
        with pytest.raises(expected, match=r"what is wrong\. Do what the test wants\."):
            await hg.table("t")


async def test_a_server_that_is_no_headgate_is_recognised() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with aio.connect(f"127.0.0.1:{port}") as hg:
        with pytest.raises(headgate.GiveUp, match="UNIMPLEMENTED"):
            await hg.table("t")
    await server.stop(None)


@pytest.mark.parametrize("address", ["", "localhost", "localhost:", ":7070", "localhost:port", "a:1,,b:1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(headgate.InvalidArgumentError, match="host:port"):
        aio.connect(address)


@pytest.mark.slow
async def test_tls_trusts_whom_it_is_told_to_and_nobody_else(tmp_path: Path) -> None:
    ours, theirs = self_signed(tmp_path / "ours"), self_signed(tmp_path / "theirs")
    credentials = grpc.ssl_server_credentials([(ours.key.read_bytes(), ours.cert.read_bytes())])
    async with scripted_cluster(credentials=credentials) as cluster:
        async with aio.connect(cluster.coordinator, tls=headgate.Tls(ca=ours.cert), token="t") as hg:
            table = await hg.create_table("t", SCHEMA, key="id")
            async with table.channel("c") as channel:
                await channel.upsert([{"id": 1, "at": None}])
        assert len(cluster.tables["t"].rows) == 1
        for tls in (headgate.Tls(ca=theirs.cert), True, None):
            async with aio.connect(cluster.coordinator, tls=tls, timeout=0.5) as hg:
                with pytest.raises(headgate.UnavailableError):
                    await hg.table("t")


def test_a_file_that_is_not_there_is_said_when_connecting(tmp_path: Path) -> None:
    for connect in (aio.connect, headgate.connect):
        with pytest.raises(FileNotFoundError, match=r"ca\.pem"):
            connect("localhost:7070", tls=headgate.Tls(ca=tmp_path / "ca.pem"))


@pytest.mark.parametrize("half", [headgate.Tls(certificate="me.pem"), headgate.Tls(key="me.key")], ids=["certificate", "key"])
def test_a_certificate_without_its_key_and_a_key_alone_are_refused(half: headgate.Tls) -> None:
    with pytest.raises(headgate.InvalidArgumentError, match="belong together"):
        headgate.connect("localhost:7070", tls=half)
