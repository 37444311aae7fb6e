"""A real Redis of the test's own."""

import socket
import time
from collections.abc import Mapping
from pathlib import Path

from demo.ports import free_port
from headgate_cli.dev.private import PrivateFolder
from headgate_cli.dev.processes import redis_process
from headgate_cli.dev.redis import Redis, find_redis, prepare_redis
from support.processes import READY_S, Died, Process


def start_redis(log: Path, port: int = 0, *, env: Mapping[str, str] | None = None) -> Process:
    """Ready when this returns; nothing is written to disk, so a restart begins empty. Port 0 takes a free one."""
    port = port or free_port()
    options = {"port": str(port), "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": str(log.parent)}
    command = [find_redis(), *(word for name, value in options.items() for word in (f"--{name}", value))]
    process = Process("redis", command, log, env=env)
    process.address = f"127.0.0.1:{port}"
    deadline = time.monotonic() + READY_S
    while not answers(process.address):
        if not process.is_alive or time.monotonic() > deadline:
            raise Died(f"redis did not start\n{process.tail()}")
        time.sleep(0.01)
    return process


def start_private_redis(base: Path, password: str) -> tuple[Redis, Process]:
    """That of `headgate dev`, with its state below ``base``; ready when this returns."""
    prepared = prepare_redis(PrivateFolder.below(base / "headgate", "dev", "1"), find_redis(), password)
    process = Process("redis", redis_process(prepared).argv, base / "redis.log")
    deadline = time.monotonic() + READY_S
    while not prepared.socket.exists():
        if not process.is_alive or time.monotonic() > deadline:
            raise Died(f"redis did not start\n{process.tail()}")
        time.sleep(0.01)
    return prepared, process


def answers(address: str) -> bool:
    """Whether a Redis answers PING there."""
    try:
        return ask(address, "PING") == "+PONG"
    except OSError:
        return False


def ask(address: str, command: str) -> str:
    """The first line of the answer to an inline command."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=READY_S) as connection:
        connection.sendall(f"{command}\r\n".encode())
        with connection.makefile("r") as answer:
            return answer.readline().strip()
