"""Redis with TLS and an ACL user: a real server behind real TLS, and what settings say of it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from headgate_cli.dev.redis import Redis
from headgate_coordinator.leadership import redis_access
from headgate_coordinator.leadership.leases import Holder, Leases
from headgate_coordinator.leadership.redis_access import host_of, open_redis, plaintext_problem, redis_of
from headgate_coordinator.settings import CoordinatorSettings
from headgate_runtime.lifecycle import StartError
from headgate_runtime.settings import load_settings
from support.certificates import Certificate, self_signed
from support.processes import READY_S
from support.redis_server import start_private_redis, start_redis
from support.tls_front import tls_front

PASSWORD = "correct-horse"
ANY_CHARACTERS = "h/o%41r?s#e@:"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    prepared, process = start_private_redis(tmp_path_factory.mktemp("redis"), PASSWORD)
    yield prepared
    process.kill()


@pytest.fixture(scope="module")
def server_of_any_characters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    prepared, process = start_private_redis(tmp_path_factory.mktemp("redis"), ANY_CHARACTERS)
    yield prepared
    process.kill()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Certificate]:
    folder = tmp_path_factory.mktemp("certificates")
    return {name: self_signed(folder / name) for name in ("redis", "coordinator", "stranger")}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis of a busy machine is no silent one."""
    monkeypatch.setattr(redis_access, "ANSWER_S", READY_S)


def settings(**given: Any) -> CoordinatorSettings:
    return CoordinatorSettings(store="/lake", **{name: str(value) for name, value in given.items()})


async def reached(settings: CoordinatorSettings) -> tuple[bool, str]:
    """Whether a lease could be taken there, and what was said if not."""
    leases = Leases(redis_of(settings), "test", Holder("one", "1", "one:1"), ttl_s=5.0)
    try:
        await leases.take_lease("t")
    finally:
        await leases.close()
    return leases.reachable, leases.last_error


async def test_with_tls_and_an_acl_user_leases_are_taken(server: Redis, certificates: dict[str, Certificate]) -> None:
    shown, own = certificates["redis"], certificates["coordinator"]
    async with tls_front(server.socket, shown) as port:
        url = f"rediss://headgate:{PASSWORD}@localhost:{port}/0"
        assert await reached(settings(redis=url, redis_ca=shown.cert)) == (True, "")
    async with tls_front(server.socket, shown, asks_for=own.cert) as port:
        url = f"rediss://headgate:{PASSWORD}@localhost:{port}/0"
        both = settings(redis=url, redis_ca=shown.cert, redis_cert=own.cert, redis_key=own.key)
        assert await reached(both) == (True, "")
        assert not (await reached(settings(redis=url, redis_ca=shown.cert)))[0], "the server asks for a certificate"


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("rediss://headgate:correct-horse@localhost:{}/0", "stranger"),
        ("rediss://headgate:correct-horse@localhost:{}/0", ""),
        ("rediss://headgate:correct-horse@127.0.0.1:{}/0", "redis"),
        ("rediss://headgate:correct-horsf@localhost:{}/0", "redis"),
        ("rediss://default:correct-horse@localhost:{}/0", "redis"),
        ("redis://headgate:correct-horse@localhost:{}/0", ""),
    ],
    ids=["another authority", "the system's authorities", "another name", "another password", "another user", "no TLS"],
)
async def test_without_the_right_server_user_or_password_none_is_taken(
    url: str, authority: str, server: Redis, certificates: dict[str, Certificate]
) -> None:
    """And what is said of it holds no password."""
    shown = certificates["redis"]
    async with tls_front(server.socket, shown) as port:
        given = {"redis": url.format(port)} | ({"redis_ca": certificates[authority].cert} if authority else {})
        found, said = await reached(settings(**given))
    assert not found
    assert said
    assert "correct" not in said


def test_the_password_is_in_no_repr_and_no_message(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"redis://headgate:{PASSWORD}@example.org/0"
    assert PASSWORD not in repr(settings(redis=url))
    monkeypatch.setenv("HEADGATE_REDIS", f"http://headgate:{PASSWORD}@example.org/0")
    with pytest.raises(SystemExit):
        load_settings(CoordinatorSettings, ["--store", "/lake"], prog="coordinator", about="")
    assert "rediss://" in (said := capsys.readouterr().err)
    assert PASSWORD not in said
    for flag in (["--redis", url], [f"--redis={url}"]):
        with pytest.raises(SystemExit):
            load_settings(CoordinatorSettings, ["--store", "/lake", *flag], prog="coordinator", about="")
        assert "HEADGATE_REDIS" in (said := capsys.readouterr().err)
        assert PASSWORD not in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"redis": "localhost:6379"}, "redis://host:port"),
        ({"redis": "http://localhost:6379"}, "redis://host:port"),
        ({"redis": "redis://h/0", "redis_ca": __file__}, "write redis as rediss://"),
        ({"redis": "rediss://h/0", "redis_cert": __file__}, "belong together"),
        ({"redis": "rediss://h/0", "redis_ca": "/gone.pem"}, "no file /gone.pem"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        settings(**wrong)


@pytest.mark.parametrize(
    "url",
    [
        "redis://headgate:hor/se@example.org/0",
        "redis://headgate:12/se@example.org/0",
        "redis://headgate:12#se@example.org/0",
        "redis://headgate:12?se@example.org/0",
        "redis://headgate:hor%se@example.org/0",
        "redis://headgate:hor[se@example.org/0",
        "redis://headgate:horse\n@example.org/0",
        "redis://headgate:horse@example.org:99999/0",
        "redis://headgate:horse@example.org:0/0",
        "redis://headgate:horse@example.org:port/0",
        "redis://headgate:horse@example.org/leases",
        "unix://headgate:hor/se@/run/redis.sock",
        "unix://headgate:horse@",
    ],
)
def test_an_address_that_would_be_read_otherwise_is_refused_without_its_password(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands between : and / is read as a port, and the error of a port repeats it."""
    monkeypatch.setenv("HEADGATE_REDIS", url)
    with pytest.raises(SystemExit):
        load_settings(CoordinatorSettings, ["--store", "/lake"], prog="coordinator", about="")
    said = capsys.readouterr().err
    assert "write / as %2F" in said
    assert "redis_password" in said
    assert not [part for part in ("hor", "12", "se@", "99999") if part in said]


@pytest.mark.parametrize("option", ["colour=red", "db=first", "ssl_cert_reqs=perhaps"])
def test_an_option_that_the_client_does_not_know_ends_the_start_without_the_password(option: str) -> None:
    with pytest.raises(StartError, match="an option behind the") as refused:
        redis_of(settings(redis=f"rediss://headgate:{PASSWORD}@example.org/0?{option}"))
    assert PASSWORD not in str(refused.value)


async def test_a_password_of_its_own_may_have_any_characters(
    server_of_any_characters: Redis, certificates: dict[str, Certificate]
) -> None:
    server, shown = server_of_any_characters, certificates["redis"]
    given = {"redis": f"unix://headgate@{quote(str(server.socket))}", "redis_password": ANY_CHARACTERS}
    assert await reached(settings(**given)) == (True, "")
    assert not (await reached(settings(redis=given["redis"])))[0]
    async with tls_front(server.socket, shown) as port:
        by_tls = given | {"redis": f"rediss://headgate@localhost:{port}/0", "redis_ca": str(shown.cert)}
        assert await reached(settings(**by_tls)) == (True, "")
    assert ANY_CHARACTERS not in repr(settings(**given))


@pytest.mark.parametrize("url", ["redis://headgate:a@h/0", "redis://h/0?password=a"])
def test_of_two_passwords_none_is_chosen(url: str) -> None:
    with pytest.raises(ValueError, match="leave one of them out"):
        settings(redis=url, redis_password="b")
    for right in ({"redis": "redis://headgate@h/0", "redis_password": "b"}, {"redis": url, "redis_password": ""}):
        settings(**right)


def test_a_password_with_a_line_s_end_is_refused() -> None:
    with pytest.raises(ValueError, match="redis_password: want visible characters"):
        settings(redis_password=f"{PASSWORD}\n")


def test_what_others_on_the_network_could_read_or_do_is_said() -> None:
    for safe in ("redis://127.0.0.1:1/0", "redis://u:p@localhost/0", "unix://u:p@/a/b?db=0", "rediss://u:p@far.example/0"):
        assert plaintext_problem(settings(redis=safe)) is None
    for given in ({"redis": "redis://u:p@far.example/0"}, {"redis": "redis://u@far.example/0", "redis_password": "p"}):
        assert "plaintext" in (plaintext_problem(settings(**given)) or "")
    assert "anybody" in (plaintext_problem(settings(redis="redis://far.example/0")) or "")
    assert [host_of(url) for url in ("unix://u:p@/a/b?db=0", "rediss://u:p@far.example:1/0")] == ["", "far.example"]


async def test_a_socket_is_reached_by_its_path(server: Redis, tmp_path: Path) -> None:
    async with open_redis(server.url) as client:
        assert await client.ping()
    assert await reached(settings(redis=server.url)) == (True, "")


async def test_after_a_restart_of_redis_no_command_is_sent_to_a_closed_connection(tmp_path: Path) -> None:
    server = start_redis(tmp_path / "redis.log")
    client = open_redis(f"redis://{server.address}")
    try:
        await asyncio.gather(*(client.ping() for _ in range(3)))  # each keeps a connection of its own
        server.kill()
        server = await asyncio.to_thread(start_redis, tmp_path / "redis.log", int(server.address.rpartition(":")[2]))
        assert await asyncio.gather(*(client.ping() for _ in range(3))) == [True] * 3
    finally:
        await client.aclose()
        server.kill()
