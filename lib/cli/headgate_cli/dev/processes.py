"""The processes of a cluster on this machine: how each is started, how it reports that it is ready, and when it stops."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from headgate_cli.dev.credentials import DevCredentials
from headgate_cli.dev.redis import Redis
from headgate_runtime.environment import ENVIRONMENT


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """How to run one process. ``served_address``: the address in a line of stdout that says that the process serves, else None.

    ``environment`` may hold secrets, ``argv`` never: other users can read it.

    Processes of a lower ``stage`` stop first: writers commit their rows while coordinators and Redis still answer.
    """

    name: str
    argv: Sequence[str]
    stage: int
    served_address: Callable[[str], str | None]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def module(self) -> str | None:
        """The Python module that it runs as a program, if it does."""
        return self.argv[2] if self.argv[:2] == [sys.executable, "-m"] else None

    @property
    def arguments(self) -> Sequence[str]:
        """Of the module."""
        return self.argv[3:]


@dataclass(frozen=True, slots=True)
class Cluster:
    """The options of ``headgate dev``. ``options``: further arguments by kind of service.

    ``cluster_ports``: of the coordinators, for services; ``port`` and those after it are for clients.
    """

    store: str
    port: int
    coordinators: int
    writers: int
    compactors: int
    redis: Redis
    credentials: DevCredentials
    cluster_ports: Sequence[int]
    options: Mapping[str, Sequence[str]]

    @property
    def ports(self) -> Sequence[int]:
        """Of the coordinators."""
        return range(self.port, self.port + self.coordinators)


WORKERS, COORDINATORS, REDIS = 0, 1, 2

SERVICE_MODULES = (
    "headgate_runtime.logs",
    "headgate_coordinator.service",
    "headgate_writer.process",
    "headgate_compactor.process",
)
"""What the services import until they serve."""


def redis_process(redis: Redis) -> ProcessSpec:
    """It ends with the cluster, and what it holds with it."""
    socket = str(redis.socket)
    return ProcessSpec(
        "redis",
        [redis.program, str(redis.config)],
        REDIS,
        lambda line: socket if "ready to accept connections" in line.lower() else None,
    )


def service_processes(cluster: Cluster) -> list[ProcessSpec]:
    """Coordinators on consecutive ports from ``port``; writers and compactors on free ports."""
    among_services = [f"127.0.0.1:{port}" for port in cluster.cluster_ports]
    redis = {"HEADGATE_REDIS": cluster.redis.url, "HEADGATE_REDIS_PASSWORD": ""}  # not that of another cluster
    processes = []
    for number, (port, own) in enumerate(zip(cluster.ports, among_services, strict=True), 1):
        argv = ["--listen", f"127.0.0.1:{port}", "--cluster-listen", own]
        argv += ["--name", f"coordinator-{number}", "--store", cluster.store]
        processes.append(_service(cluster, "coordinator", number, argv, COORDINATORS, redis))
    for kind, count in (("writer", cluster.writers), ("compactor", cluster.compactors)):
        argv = ["--listen", "127.0.0.1:0", "--coordinator", ",".join(among_services), "--store", cluster.store]
        argv += ["--cluster-listen", "127.0.0.1:0"] if kind == "writer" else []
        processes += [_service(cluster, kind, number, argv, WORKERS) for number in range(1, count + 1)]
    return processes


def _service(
    cluster: Cluster, kind: str, number: int, argv: Sequence[str], stage: int, environment: Mapping[str, str] | None = None
) -> ProcessSpec:
    own = [*argv, *cluster.credentials.flags(kind), *cluster.options.get(kind, ())]
    # With ENVIRONMENT set, a service does not restart itself (lifecycle.run_service).
    variables = {**ENVIRONMENT, **(environment or {})}
    return ProcessSpec(f"{kind}-{number}", [sys.executable, "-m", f"headgate_{kind}", *own], stage, _announced, variables)


def _announced(line: str) -> str | None:
    """The address in ``{"ready": "host:port"}``, which services print once they serve."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record.get("ready") if isinstance(record, dict) else None
