"""A program goes on while the files of its ``Tls`` are renewed: newer connections use them, open ones stay, no call fails."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

import headgate
from headgate import aio, transport
from headgate.credentials import given
from headgate_proto.api.v1 import errors_pb2 as err
from headgate_runtime.tls import server_credentials
from support.certificates import Authority, Certificate, self_signed
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.processes import READY_S
from support.scripted_service import Cluster, error, scripted_cluster
from support.scripted_table import SCHEMA, ids, rows

PINGS = ("grpc.keepalive_time_ms", "grpc.keepalive_timeout_ms", "grpc.http2.ping_timeout_ms")
EXPIRED = err.CODE_UNAUTHENTICATED


@dataclass(frozen=True, slots=True)
class Place:
    """``folder`` has the program's files, those of the server and of whom it takes. ``authority``: of the first."""

    folder: Path
    authority: Authority
    cluster: Cluster

    @property
    def tls(self) -> headgate.Tls:
        return headgate.Tls(*(self.folder / name for name in ("ca.pem", "me.pem", "me.key")))

    def issue(self, name: str) -> Certificate:
        return self.authority.issue(name, [f"{name}.example.org"])

    def take(self, issued: Certificate) -> None:
        """The program's certificate from now on."""
        copy(issued.cert, self.folder / "me.pem")
        copy(issued.key, self.folder / "me.key")

    def connect(self, address: str = "") -> aio.Headgate:
        return aio.connect(address or self.cluster.coordinator, tls=self.tls)


def copy(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """The certificate is "first". Connections are lost for no reason but the test's: a machine that is busy elsewhere may let a
    ping wait for longer than the SDK does.
    """
    options = dict(transport._OPTIONS) | dict.fromkeys(PINGS, round(1_000 * READY_S))
    monkeypatch.setattr(transport, "_OPTIONS", list(options.items()))
    authority, server = Authority(tmp_path / "authority"), self_signed(tmp_path / "server")
    for source, name in {server.cert: "ca.pem", authority.cert: "clients.pem"}.items():
        copy(source, tmp_path / name)
    files = (str(server.cert), str(server.key), str(tmp_path / "clients.pem"))
    async with scripted_cluster(writers=2, credentials=lambda: server_credentials(*files)) as cluster:
        made = Place(tmp_path, authority, cluster)
        made.take(made.issue("first"))
        yield made


@contextlib.asynccontextmanager
async def before(address: str) -> AsyncIterator[tuple[CuttingProxy, str]]:
    """A proxy, and its address by the name in the server's certificate."""
    async with cutting_proxy(address.replace("localhost", "127.0.0.1")) as proxy:
        yield proxy, proxy.address.replace("127.0.0.1", "localhost")


async def test_calls_show_the_newest_certificate(place: Place) -> None:
    names = ["first", "second", "third"]
    async with place.connect() as hg:
        for name in names:
            if name != "first":
                place.take(place.issue(name))
            for _ in range(2):
                await hg.tables()
    assert place.cluster.certificates == [name for name in names for _ in range(2)]


async def test_blocking_calls_do_so_too(place: Place) -> None:
    def call() -> None:
        with headgate.connect(place.cluster.coordinator, tls=place.tls) as hg:
            hg.tables()
            place.take(place.issue("second"))
            hg.tables()

    await asyncio.to_thread(call)
    assert place.cluster.certificates == ["first", "second"]


async def test_a_stream_stays_and_goes_on_with_the_newer_certificate_when_the_server_ends_it(place: Place) -> None:
    cluster = place.cluster
    async with place.connect() as hg:
        table = await hg.create_table("t", SCHEMA, key="id")
        async with table.channel("c") as channel:
            await channel.upsert(rows(0, 10))
            await channel.flush()
            place.take(place.issue("second"))
            await hg.tables()
            await channel.upsert(rows(10, 20))
            await channel.flush()
            assert len(cluster.opens) == 1, "it was not ended"
            cluster.knobs.ended = [error(EXPIRED, "the certificate has expired")]
            await channel.upsert(rows(20, 30))
            await channel.flush()
            await channel.upsert(rows(30, 40))
    assert ids(cluster) == list(range(40))
    assert len(cluster.opens) == 2
    assert len({writer for writer, *_ in cluster.opens}) == 1, "nothing is wrong with the writer"
    assert cluster.certificates[-1] == "second"


async def test_the_older_connection_is_closed_behind_its_last_stream(place: Place) -> None:
    cluster = place.cluster
    async with before(cluster.writers[0]) as (writer, at), before(cluster.coordinator) as (coordinator, address):
        cluster.listed = [at]
        async with place.connect(address) as hg:
            table = await hg.create_table("t", SCHEMA, key="id")
            async with table.channel("one") as one, table.channel("two") as two:
                place.take(place.issue("second"))
                async with table.channel("three") as three:
                    assert writer.connections == 2
                    await one.close()
                    await two.upsert(rows(0, 1))
                    await two.flush()
                    assert writer.connections == 2, "the older one has another stream"
                    await two.close()
                    async with asyncio.timeout(READY_S):
                        while writer.connections > 1 or coordinator.connections > 1:
                            await asyncio.sleep(0.01)
                    await three.upsert(rows(1, 2))
    assert ids(cluster) == [0, 1]


async def test_a_call_that_is_on_its_way_is_not_cut_off_by_a_renewal(place: Place) -> None:
    async with before(place.cluster.coordinator) as (proxy, address), place.connect(address) as hg:
        await hg.tables()
        proxy.hold()
        slow = asyncio.create_task(hg.listing())
        await asyncio.sleep(0)
        place.take(place.issue("second"))
        other = asyncio.create_task(hg.tables())
        await asyncio.sleep(0.1)
        proxy.let_pass()
        await slow
        await other
    assert sorted(place.cluster.certificates) == ["first", "first", "second"], "each call was sent once"


async def send_until_ended(channel: aio.Channel) -> NoReturn:
    """Raises what ended it."""
    while True:
        await channel.upsert(rows(0, 1))
        await channel.flush()


async def test_a_refusal_with_the_newest_certificate_is_raised(place: Place) -> None:
    cluster = place.cluster
    async with place.connect() as hg:
        table = await hg.create_table("t", SCHEMA, key="id")
        channel = await table.channel("c").open()
        cluster.knobs.ended = [error(EXPIRED, "the certificate has expired")]
        with pytest.raises(headgate.UnauthenticatedError, match="has expired"):
            await send_until_ended(channel)
        channel = await table.channel("c").open()
        place.take(place.issue("second"))
        cluster.knobs.ended = [error(EXPIRED, "the certificate has expired")]
        cluster.knobs.refuse_open = [error(EXPIRED, "nobody knows it")]
        with pytest.raises(headgate.UnauthenticatedError, match="nobody knows it"):
            await send_until_ended(channel)
    assert len(cluster.opens) == 3
    assert cluster.certificates[-1] == "second"


def cut(source: Path, target: Path, part: float = 0.5) -> None:
    content = source.read_bytes()
    target.write_bytes(content[: int(part * len(content))])


DAMAGES: dict[str, Callable[[Path, Certificate], None]] = {
    "the certificate alone": lambda own, new: copy(new.cert, own / "me.pem"),
    "the key alone": lambda own, new: copy(new.key, own / "me.key"),
    "half a certificate": lambda own, new: cut(new.cert, own / "me.pem"),
    "an empty certificate": lambda own, new: cut(new.cert, own / "me.pem", 0),
    "no key": lambda own, _: (own / "me.key").unlink(),
    "half an authority": lambda own, _: cut(own / "ca.pem", own / "ca.pem"),
    "no authority": lambda own, _: (own / "ca.pem").unlink(),
}


def complaints(caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    return (each.getMessage() for each in caplog.records if each.name == "headgate" and each.levelno == logging.WARNING)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_files_that_cannot_be_used_yet_change_nothing_and_are_said_once(
    damage: str, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    server = (place.folder / "ca.pem").read_bytes()
    async with place.connect() as hg:
        for time, name in enumerate(("second", "third"), 1):
            DAMAGES[damage](place.folder, new := place.issue(name))
            for _ in range(3):
                await hg.tables()
            assert place.cluster.certificates[-3:] == [["first", "second"][time - 1]] * 3
            said = list(complaints(caplog))
            assert len(said) == time
            assert str(place.folder) in said[-1]
            assert said[-1].endswith("Until then, what was read before counts.")
            (place.folder / "ca.pem").write_bytes(server)
            place.take(new)
            await hg.tables()
            assert place.cluster.certificates[-1] == name
    assert "PRIVATE" not in caplog.text


async def test_both_sides_authorities_are_rotated_under_a_stream(place: Place) -> None:
    """The rows go on over the open connection, and over a newer one when that is cut."""
    cluster, folder = place.cluster, place.folder
    newer, server = Authority(folder / "newer"), self_signed(folder / "newer server")
    async with before(cluster.writers[0]) as (proxy, at), place.connect() as hg:
        cluster.listed = [at]
        table = await hg.create_table("t", SCHEMA, key="id")
        async with table.channel("c") as channel:
            await channel.upsert(rows(0, 10))
            await channel.flush()
            (folder / "clients.pem").write_bytes(place.authority.cert.read_bytes() + newer.cert.read_bytes())
            (folder / "ca.pem").write_bytes((folder / "ca.pem").read_bytes() + server.cert.read_bytes())
            await hg.tables()
            place.take(newer.issue("second", ["second.example.org"]))
            await hg.tables()
            copy(newer.cert, folder / "clients.pem")
            copy(server.cert, folder / "server" / "cert.pem")
            copy(server.key, folder / "server" / "key.pem")
            copy(server.cert, folder / "ca.pem")
            await hg.tables()
            await channel.upsert(rows(10, 20))
            await channel.flush()
            assert len(cluster.opens) == 1
            proxy.cut()
            await channel.upsert(rows(20, 30))
            await channel.flush()
    assert ids(cluster) == list(range(30))
    assert len(cluster.opens) == 2
    assert cluster.certificates[-1] == "second"


def test_what_does_not_belong_together_is_said_when_connecting(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    one, other = authority.issue("one", ["one"]), authority.issue("other", ["other"])
    with pytest.raises(
        headgate.InvalidArgumentError, match=r"one/cert\.pem and .*other/key\.pem are not PEM files of a certificate"
    ):
        headgate.connect("localhost:7070", tls=headgate.Tls(authority.cert, one.cert, other.key))
    with pytest.raises(headgate.InvalidArgumentError, match=r"one/key\.pem is no PEM file of certificates"):
        headgate.connect("localhost:7070", tls=headgate.Tls(one.key))


@pytest.mark.parametrize("emptied", ["me.pem", "me.key"])
def test_a_file_that_is_empty_at_each_look_counts_for_nothing(
    emptied: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its writer is done between two looks, when OpenSSL reads the files, and has begun once more at the second one."""
    authority, own = Authority(tmp_path / "authority"), Certificate(tmp_path / "me.pem", tmp_path / "me.key")
    issued = authority.issue("one", ["me"])
    copy(issued.cert, own.cert)
    copy(issued.key, own.key)
    look = given(None, headgate.Tls(None, own.cert, own.key))
    before, read_bytes = look(), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"" if path.name == emptied else read_bytes(path))
    assert look() == before
    assert "Until then, what was read before counts." in caplog.text


@pytest.mark.slow
def test_a_pair_that_is_replaced_while_it_is_read_counts_as_a_whole(tmp_path: Path) -> None:
    authority, own = Authority(tmp_path / "authority"), Certificate(tmp_path / "me.pem", tmp_path / "me.key")
    issued = [authority.issue(f"{number}", ["me"]) for number in range(300)]
    pairs = {each.cert.read_bytes(): each.key.read_bytes() for each in issued}

    def renew() -> None:
        for each in issued:
            copy(each.cert, own.cert)
            copy(each.key, own.key)

    renew()
    look = given(None, headgate.Tls(None, own.cert, own.key))
    (renewing := threading.Thread(target=renew)).start()
    seen = set()
    while renewing.is_alive() or not seen:
        shown = look().pem
        assert shown is not None
        assert shown.certificate is not None
        assert pairs[shown.certificate] == shown.key
        seen.add(shown.certificate)
    renewing.join()
    pem = look().pem
    assert pem is not None
    assert pem.certificate == issued[-1].cert.read_bytes()
