"""A program goes on while the file of its token is renewed: what begins brings the newer one, no call fails."""

import asyncio
import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import headgate
from headgate import aio
from headgate_cli.cluster import Access
from headgate_cli.options import cluster_options
from headgate_proto.api.v1 import errors_pb2 as err
from support.certificates import self_signed
from support.cutting_proxy import cutting_proxy
from support.scripted_service import Cluster, error
from support.scripted_table import SCHEMA, ids, rows


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (path := tmp_path / "token").write_text("first\n")
    return path


def brought(cluster: Cluster) -> list[str]:
    return [call["authorization"].removeprefix("Bearer ") for call in cluster.calls]


async def test_calls_bring_what_the_file_holds(cluster: Cluster, file: Path) -> None:
    async with aio.connect(cluster.coordinator, token=file) as hg:
        await hg.tables()
        file.write_text("second")
        await hg.tables()
    assert brought(cluster) == ["first", "second"]


async def test_a_call_that_is_refused_with_an_older_token_is_sent_again_with_the_newer_one(cluster: Cluster, file: Path) -> None:
    async with cutting_proxy(cluster.coordinator) as proxy, aio.connect(proxy.address, token=file) as hg:
        await hg.tables()
        proxy.hold()
        call = asyncio.create_task(hg.tables())
        await asyncio.sleep(0)
        cluster.knobs.token = "second"
        file.write_text("second\n")
        proxy.let_pass()
        assert await call == []
    assert brought(cluster) == ["first", "first", "second"]


async def test_a_stream_whose_token_was_revoked_goes_on_with_the_newer_one(cluster: Cluster, file: Path) -> None:
    async with aio.connect(cluster.coordinator, token=file) as hg:
        table = await hg.create_table("t", SCHEMA, key="id")
        async with table.channel("c") as channel:
            await channel.upsert(rows(0, 1))
            await channel.flush()
            file.write_text("second\n")
            cluster.knobs.token = "second"
            cluster.knobs.ended = [error(err.CODE_UNAUTHENTICATED, "it was revoked")]
            await channel.upsert(rows(1, 2))
            await channel.flush()
            await channel.upsert(rows(2, 3))
    assert ids(cluster) == [0, 1, 2]
    assert brought(cluster)[-1] == "second"


async def test_a_token_that_nobody_knows_is_refused_once(cluster: Cluster, file: Path) -> None:
    cluster.knobs.token = "another"
    async with aio.connect(cluster.coordinator, token=file, timeout=20) as hg:
        with pytest.raises(headgate.UnauthenticatedError):
            await hg.tables()
    assert brought(cluster) == ["first"]


@pytest.mark.parametrize("content", ["", "se cond", "second\nthird", "\xff"])
async def test_a_file_without_a_token_changes_nothing_and_is_said_once_without_its_content(
    content: str, cluster: Cluster, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with aio.connect(cluster.coordinator, token=file) as hg:
        file.write_text(content)
        for _ in range(2):
            await hg.tables()
        file.unlink()
        await hg.tables()
        file.write_text("second")
        await hg.tables()
    assert brought(cluster) == ["first", "first", "first", "second"]
    [said] = [each.getMessage() for each in caplog.records if each.name == "headgate"]
    assert said.startswith(f"{file}: a token has visible ASCII characters alone")
    assert "cond" not in said


def test_a_file_that_cannot_be_used_is_said_when_connecting(file: Path) -> None:
    file.write_text("a\nb")
    with pytest.raises(headgate.InvalidArgumentError, match="Write it alone into the file"):
        headgate.connect("localhost:1", token=file)
    file.unlink()
    with pytest.raises(FileNotFoundError, match="token"):
        headgate.connect("localhost:1", token=file)


async def test_a_pipe_is_read_once(cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As a shell makes one: ``<(command)``."""

    def pipe(content: bytes) -> Path:
        read, write = os.pipe()
        os.write(write, content)
        os.close(write)
        return Path(f"/dev/fd/{read}")

    own = self_signed(tmp_path / "own")
    files = [pipe(path.read_bytes()) for path in (own.cert, own.cert, own.key)]
    tls = headgate.Tls(*files)
    known = tls.read(None)
    assert (known.ca, known.certificate, known.key) == (own.cert.read_bytes(), own.cert.read_bytes(), own.key.read_bytes())
    assert tls.read(known) == known
    async with aio.connect(cluster.coordinator, token=(token := pipe(b"first\n"))) as hg:
        for _ in range(2):
            await hg.tables()
    assert brought(cluster) == ["first", "first"]
    assert not caplog.records
    for path in (*files, token):
        os.close(int(path.name))


def test_a_command_gives_the_file_and_not_what_it_held_at_its_start(file: Path) -> None:
    given: list[Access] = []

    @click.command()
    @cluster_options()
    def command(access: Access) -> None:
        given.append(access)

    for options, environment in ((["--token-file", str(file)], {}), ([], {"HEADGATE_TOKEN": "first"}), ([], {})):
        assert CliRunner().invoke(command, options, env=environment).exit_code == 0
    read, write = os.pipe()
    os.write(write, b"piped\n")
    os.close(write)
    assert CliRunner().invoke(command, ["--token-file", f"/dev/fd/{read}"]).exit_code == 0
    os.close(read)
    assert [access.token for access in given] == [file, "first", "", "piped"]
