"""The harness itself: processes that die where they should, links that cut, Redis that comes and goes, nothing left behind."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate_runtime.environment import ENVIRONMENT
from support.disks import full, read_only, small_disk, until_done
from support.links import Link, owner_of_port
from support.moved_clock import move_clock
from support.processes import READY_S, Died, Process, child_environment
from support.redis_server import answers, ask, start_redis
from support.stepping import hits


@contextmanager
def step_service(folder: Path, *flags: str, name: str = "one", program: str = "") -> Iterator[Process]:
    record = ["--record", str(folder / "steps")]
    command = [sys.executable, "-m", "support.stepping", "support.step_service", *record, *flags, "--", name]
    process = Process(name, command, folder / f"{name}.log", program=program)
    try:
        process.wait_ready()
        yield process
    finally:
        process.kill()


@pytest.fixture(params=["", "support.step_service"], ids=["fresh", "forked"])
def program(request: pytest.FixtureRequest) -> str:
    """How a process comes to be: as an interpreter of its own, or from a parent that has imported its program."""
    return str(request.param)


@contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=READY_S) as connection:
        yield connection


def asked(connection: socket.socket) -> bytes:
    connection.sendall(b"x")
    return connection.recv(100)


@pytest.mark.slow
def test_a_process_kills_itself_at_the_named_hit_of_a_step_and_every_hit_is_recorded(tmp_path: Path, program: str) -> None:
    with step_service(tmp_path, "--kill-at", "late:2", program=program) as process, connected(process.address) as connection:
        process.expect_end()
        assert asked(connection) == b"+one\n"
        assert process.is_alive
        assert asked(connection) == b""
        assert process.wait_end() == -signal.SIGKILL
        assert not process.ended_unasked
    assert hits(tmp_path / "steps") == {"early": 2, "late": 2}


def test_a_process_stops_itself_at_a_step_and_goes_on_when_resumed(tmp_path: Path, program: str) -> None:
    with step_service(tmp_path, "--pause-at", "early:1", program=program) as process, connected(process.address) as connection:
        connection.sendall(b"x")
        process.wait_stopped()
        assert hits(tmp_path / "steps") == {"early": 1}
        process.resume()
        assert connection.recv(100) == b"+one\n"


@pytest.mark.slow
def test_an_end_that_nobody_asked_for_is_told_apart_from_a_drain(tmp_path: Path, program: str) -> None:
    with step_service(tmp_path, "--kill-at", "early:1", program=program) as process, connected(process.address) as connection:
        assert asked(connection) == b""
        process.wait_end()
        assert process.ended_unasked
    with step_service(tmp_path, program=program) as process:
        assert process.terminate() == 0
        assert not process.ended_unasked


@pytest.mark.slow
def test_a_forked_process_begins_as_a_fresh_one_would(tmp_path: Path) -> None:
    """The same arguments, environment, import path, threads and signals, no descriptors of the one that forked it."""
    command = [sys.executable, "-m", "support.beginning", "--some", "flags"]
    begun, log = [], tmp_path / "log"
    for program in ("", "support.beginning"):
        process = Process("one", command, log, env={**ENVIRONMENT, "A": "b"}, program=program)
        assert process.wait_end() == 3
        begun.append(json.loads(log.read_text()))
        log.unlink()
    assert begun[0] == begun[1]


def test_a_process_that_is_never_ready_fails_with_the_end_of_its_log(tmp_path: Path) -> None:
    process = Process("bad", [sys.executable, "-c", "raise SystemExit('no store')"], tmp_path / "bad.log")
    with pytest.raises(Died, match="no store"):
        process.wait_ready()


@pytest.mark.slow
def test_nothing_outlives_the_test_run(tmp_path: Path, program: str) -> None:
    source = (
        "import sys, pathlib, os, signal\n"
        "from support import forked\n"
        "from support.processes import Process\n"
        "with forked.serving():\n"
        "    command = [sys.executable, '-m', 'support.step_service', 'c']\n"
        "    child = Process('c', command, pathlib.Path(sys.argv[1]), program=sys.argv[2])\n"
        "    child.wait_ready()\n"
        "    print(child.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", source, str(tmp_path / "c.log"), program]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120, env=child_environment({}), check=False)
    with contextlib.suppress(ProcessLookupError):
        watched = os.pidfd_open(int(told.stdout))
        ended, _, _ = select.select([watched], [], [], 60)
        os.close(watched)
        assert ended, "it lives on"


def test_wall_clocks_of_another_process_that_may_open_no_file_move_while_it_runs_and_come_back(tmp_path: Path) -> None:
    program = (
        "import pathlib, resource, sys, time\n"
        "from headgate_runtime import world\n"
        "from headgate_tables import system\n"
        "from support.moved_clock import follow_clock\n"
        "follow_clock(pathlib.Path(sys.argv[1]))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "for _ in sys.stdin:\n"
        "    clocks = world.SystemClock(), system.SystemClock()\n"
        "    print(*(clock.now_ms() // 1000 - time.time_ns() // 10**9 for clock in clocks))\n"
    )
    command = [sys.executable, "-u", "-c", program, str(tmp_path / "one.clock")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=child_environment({})
    ) as told:
        assert told.stdin is not None
        assert told.stdout is not None
        for ahead in (None, 34_560_000, 0, -3600):
            if ahead is not None:
                move_clock(tmp_path / "one.clock", ahead)
            told.stdin.write("\n")
            for said in told.stdout.readline().split():
                assert abs(int(said) - (ahead or 0)) <= 60  # two readings, between which a busy machine may do other things
        told.stdin.close()


def test_a_cut_with_reset_breaks_connections_and_refuses_new_ones_until_healed(tmp_path: Path) -> None:
    with step_service(tmp_path) as process, link_to(process) as link:
        with connected(link.address) as connection:
            assert asked(connection) == b"+one\n"
            link.cut()
            with pytest.raises(ConnectionResetError):
                asked(connection)
        with pytest.raises(OSError, match=r"reset|Broken pipe"), connected(link.address) as connection:
            asked(connection)
        link.heal()
        with connected(link.address) as connection:
            assert asked(connection) == b"+one\n"


def test_a_stalled_link_delivers_after_healing_what_was_under_way(tmp_path: Path) -> None:
    with step_service(tmp_path) as process, link_to(process) as link, connected(link.address) as connection:
        assert asked(connection) == b"+one\n"
        link.cut(kind="stall")
        connection.sendall(b"x")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        assert hits(tmp_path / "steps")["late"] == 1
        link.heal()
        connection.settimeout(30)
        assert connection.recv(100) == b"+one\n"


def test_a_cut_between_two_leaves_the_others_connected(tmp_path: Path) -> None:
    def source(port: int) -> str:
        return owner_of_port(port, iter([("me", os.getpid())])) or "stranger"

    with step_service(tmp_path) as process, link_to(process, source) as link, connected(link.address) as connection:
        link.cut("stranger")
        assert asked(connection) == b"+one\n"
        link.cut("me")
        with pytest.raises(ConnectionResetError):
            asked(connection)


def test_the_process_behind_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, connected(f"127.0.0.1:{listener.getsockname()[1]}") as mine:
        port = mine.getsockname()[1]
        assert owner_of_port(port, iter([("init", 1), ("me", os.getpid())])) == "me"
        assert owner_of_port(port, iter([])) == ""


def test_redis_loses_everything_when_killed_and_comes_back_at_its_port(tmp_path: Path) -> None:
    first = start_redis(tmp_path / "redis.log")
    try:
        assert ask(first.address, "SET key value") == "+OK"
        first.kill()
        assert not answers(first.address)
        second = start_redis(tmp_path / "redis.log", int(first.address.rpartition(":")[2]))
        try:
            assert second.address == first.address
            assert ask(second.address, "EXISTS key") == ":0"
        finally:
            second.kill()
    finally:
        first.kill()


def test_a_disk_has_no_room_for_a_while_and_nobody_writes_to_one_that_is_read_only(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        (disk / "old").write_bytes(b"x" * 5000)
        with (disk / "open").open("wb", buffering=0) as file:
            with full(disk), pytest.raises(OSError, match="No space left"):
                file.write(b"x")
            with read_only(disk), pytest.raises(OSError, match="Read-only file system"):
                (disk / "new").touch()
        (disk / "new").write_bytes(b"x" * 5000)


def test_a_mount_that_is_refused_for_good_says_what_was_refused_and_why() -> None:
    refused = ["sh", "-c", "echo the mount is busy >&2; exit 32"]
    with pytest.raises(TimeoutError, match=r"exit 32.*: the mount is busy"):
        until_done(lambda: subprocess.run(refused, capture_output=True, text=True, check=False), limit=0.05)


@contextmanager
def link_to(process: Process, source=lambda port: "anybody") -> Iterator[Link]:
    link = Link(source)
    host, _, port = process.address.rpartition(":")
    link.upstream = (host, int(port))
    try:
        yield link
    finally:
        link.close()
