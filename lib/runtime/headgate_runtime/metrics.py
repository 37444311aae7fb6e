"""Prometheus metrics: one registry per process, passed to the code that counts, and served if the settings name an address."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge, GCCollector, Info, PlatformCollector, ProcessCollector, start_http_server

from headgate_runtime.listening import ListenError
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.values import Address


def metrics(service: str) -> CollectorRegistry:
    """Returns a registry with the process's own metrics (CPU, memory, file descriptors) and the service's name."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    Info("headgate", "Which service this is", registry=registry).info({"service": service})
    return registry


class AccessLike(Protocol):
    """Access control, as far as it is watched."""

    @property
    def file_problem(self) -> str: ...

    @property
    def keys_problem(self) -> str: ...


def watch_access(registry: CollectorRegistry, access: AccessLike) -> None:
    """Adds what may be wrong with the rights of callers."""
    wrong = Gauge("headgate_access_file_wrong", "1 while the access file is wrong; what it said before holds", registry=registry)
    wrong.set_function(lambda: bool(access.file_problem))
    stale = Gauge("headgate_issuer_keys_stale", "1 while the issuer's keys cannot be fetched", registry=registry)
    stale.set_function(lambda: bool(access.keys_problem))


@contextlib.contextmanager
def served(registry: CollectorRegistry, settings: ServiceSettings) -> Iterator[str]:
    """Serves the metrics on a thread, and yields the bound host:port, "" without ``metrics_listen``. Raises ListenError.

    Call it on the event loop, whose tasks it counts: a number that only grows is a leak.
    """
    loop = asyncio.get_running_loop()
    tasks = Gauge("headgate_event_loop_tasks", "Tasks of the event loop", registry=registry)
    tasks.set_function(lambda: len(asyncio.all_tasks(loop)))
    if not settings.metrics_listen:
        yield ""
        return
    address = Address.parse(settings.metrics_listen)
    try:
        server, thread = start_http_server(address.port, address.host, registry)
    except OSError as e:
        raise ListenError(address, e.errno, str(e.strerror)) from e
    try:
        yield str(address._replace(port=server.server_port))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class CappedLabel:
    """Turns names that users choose into values of a label: the first ``limit`` stay as they are, all others become "other".

    Without the limit, each name would make a time series that stays in the process and in Prometheus for good.
    """

    def __init__(self, limit: int = 1000) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def of(self, name: str) -> str:
        """Returns the label's value for ``name``, the same each time."""
        if name not in self._known and len(self._known) < self._limit:
            self._known.add(name)
        return name if name in self._known else "other"
