"""`headgate dev`: a whole cluster on this machine."""

import asyncio
import contextlib
import os
import re
import signal
import socket
from pathlib import Path
from typing import TypedDict, Unpack
from urllib.parse import unquote

import click

from headgate.profiles import state_folder
from headgate_cli.dev.credentials import credentials_in, published
from headgate_cli.dev.forking import ForkingStarter
from headgate_cli.dev.others import Running, alone, port_taken
from headgate_cli.dev.printing import DEFAULT_PORT, EventPrinter
from headgate_cli.dev.private import PrivateFolder
from headgate_cli.dev.processes import SERVICE_MODULES, Cluster, redis_process, service_processes
from headgate_cli.dev.redis import find_redis, prepare_redis
from headgate_cli.dev.supervisor import Supervisor
from headgate_cli.output import Output, json_option
from headgate_tables.system import System

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class ClusterOptions(TypedDict):
    """Options of ``headgate dev`` that shape the cluster."""

    port: int
    coordinators: int
    writers: int
    compactors: int
    checkpoint_interval: str


@click.command("dev", short_help="Run a cluster on this machine.")
@click.option(
    "--store",
    default="headgate-data",
    show_default=True,
    help="Folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix of the tables.",
)
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(1, 65_000), help="Port of the first coordinator."
)
@click.option("--coordinators", default=1, show_default=True, type=click.IntRange(1, 16), help="Number, on consecutive ports.")
@click.option("--writers", default=2, show_default=True, type=click.IntRange(0, 64), help="Number.")
@click.option("--compactors", default=1, show_default=True, type=click.IntRange(0, 64), help="Number.")
@click.option(
    "--checkpoint-interval",
    default="1s",
    show_default=True,
    help="How often rows become queryable. Shorter: fresher rows, but more and smaller files. Production default: 10s.",
)
@click.option("--logs", type=click.Path(file_okay=False, path_type=Path), help="Folder for logs. [STORE/.headgate/dev]")
@click.option("--verbose", "-v", is_flag=True, help="Show logs here instead of writing them to files.")
@click.option("--grace", default=60.0, show_default=True, help="Seconds that a process may drain after Ctrl-C.")
@json_option
@click.pass_obj
def dev(output: Output, /, store: str, logs: Path | None, verbose: bool, grace: float, **options: Unpack[ClusterOptions]) -> None:
    """Runs a cluster on this machine: Redis, coordinators, writers and compactors.

    Restarts processes that die. Ctrl-C stops all of them in order, a second Ctrl-C at once. The tables stay in the store, and the
    next `headgate dev` continues with them. Everything listens on 127.0.0.1 only, Redis on a socket of this user.

    \b
    Examples:
      headgate dev
      headgate dev --writers 3 --coordinators 2 --store /data/lake
      AWS_ENDPOINT=http://localhost:9000 AWS_ALLOW_HTTP=true headgate dev --store s3://lake/dev
      GOOGLE_APPLICATION_CREDENTIALS=key.json headgate dev --store gs://lake/dev
      AZURE_STORAGE_ACCOUNT_NAME=… AZURE_STORAGE_ACCOUNT_KEY=… headgate dev --store az://lake/dev
      HEADGATE_CHECKPOINT_BYTES=64MiB headgate dev       any setting that `headgate coordinator --help` lists

    With --json, each line is an object with "event": started, serving, ready (connect, store), died (exit, restart_in_s),
    stopping, stopped, killed. Events of a process have its "name" (redis, coordinator-N, writer-N, compactor-N) and "pid".
    """  # noqa: D301 - click wants the backspace
    state = state_folder(os.environ)
    url = _address_of(store)
    with alone(state, Running.here(options["port"], options["coordinators"], url)) as private:
        _check_free(options["port"], options["coordinators"], state)
        with ForkingStarter(SERVICE_MODULES) as starter:  # first, since it imports meanwhile
            cluster = _cluster(private, url, **options)
            with published(cluster.credentials.profile, cluster.ports, state):
                _run_logged(output, cluster, starter, logs, verbose, grace)


def _address_of(store: str) -> str:
    """Raises OptionError for one that the services would refuse, each in its log."""
    if not _SCHEME.match(store):
        return Path(store).absolute().as_uri()
    from headgate_tables.storage.open import open_store  # a folder of this machine does without the object stores' client

    open_store(store, None, System.real().ids)
    return store


def _run_logged(
    output: Output, cluster: Cluster, starter: ForkingStarter, logs: Path | None, verbose: bool, grace: float
) -> None:
    folder = None if verbose else logs or _log_folder(cluster.store)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    printer = EventPrinter(output, cluster, folder)
    supervisor = Supervisor(printer.event, starter, folder, grace)
    asyncio.run(_run(supervisor, cluster, printer))


async def _run(supervisor: Supervisor, cluster: Cluster, printer: EventPrinter) -> None:
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            supervisor.kill()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    waves = [[redis_process(cluster.redis)], service_processes(cluster)]
    await supervisor.run(waves, printer.ready, stop)


def _cluster(
    private: PrivateFolder, url: str, port: int, coordinators: int, writers: int, compactors: int, checkpoint_interval: str
) -> Cluster:
    system = System.real()
    redis = prepare_redis(private, find_redis(), system.ids.token())
    credentials = credentials_in(private, system)
    options = {"coordinator": ["--checkpoint-interval", checkpoint_interval]}
    return Cluster(url, port, coordinators, writers, compactors, redis, credentials, _free_ports(coordinators), options)


def _free_ports(number: int) -> list[int]:
    """Different ones, that were free a moment ago."""
    with contextlib.ExitStack() as open_sockets:
        listeners = [open_sockets.enter_context(socket.socket()) for _ in range(number)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in listeners]


def _check_free(first: int, number: int, state: Path) -> None:
    for port in range(first, first + number):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError as error:
                raise port_taken(port, PrivateFolder.below(state, "dev")) from error


def _log_folder(store: str) -> Path:
    root = Path(unquote(store.removeprefix("file://"))) if store.startswith("file:") else Path("headgate-dev")
    return root / ".headgate" / "dev"
