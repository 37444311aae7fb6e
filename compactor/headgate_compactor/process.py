"""Builds a compactor, runs it, and drains it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from headgate_compactor.attempt_pool import AttemptPool
from headgate_compactor.metrics import CompactorMetrics
from headgate_compactor.runner import AttemptRunner
from headgate_compactor.settings import CompactorSettings
from headgate_compactor.sizes import by_size, spark_runner
from headgate_compactor.work_streams import WorkClient, WorkHandler
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.coordinator_client import CoordinatorClient
from headgate_runtime.grpc_server import Server
from headgate_runtime.lifecycle import announce_ready
from headgate_runtime.limits import DoorLimits
from headgate_runtime.metrics import metrics, served
from headgate_runtime.world import World
from headgate_tables.system import SystemIds

_GRACE_S = 0.5
_HEALTH_ONLY = DoorLimits(message_bytes=4 << 10)
_RELEASE_S = 5.0
"""How long coordinators have to acknowledge the last reports."""


@dataclass(frozen=True, slots=True)
class Compactor:
    """A running compactor. It serves health at ``address``, and Prometheus at ``metrics_address`` (empty: not)."""

    process: str
    server: Server
    address: str
    metrics_address: str
    pool: AttemptPool
    coordinators: WorkClient

    async def drain(self, timeout_s: float) -> None:
        """Finishes attempts that run, or returns them after ``timeout_s``. Waits until all coordinators have the reports."""
        self.pool.begin_drain()
        self.coordinators.leave()
        await self.pool.finish(timeout_s)
        await self.coordinators.released()


async def serve(settings: CompactorSettings, drain: asyncio.Event, world: World) -> None:
    """Runs a compactor until ``drain`` is set and every attempt is finished or returned.

    Raises SyncFailedError, in a group: the disk failed to make data durable, so this process must not write any more.
    """
    async with running(settings, world) as compactor:
        await compactor.server.health.set(True)
        announce_ready(compactor.address)
        await drain.wait()
        await compactor.server.health.set(False)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.drain_timeout + _RELEASE_S):
                await compactor.drain(settings.drain_timeout)


@contextlib.asynccontextmanager
async def running(settings: CompactorSettings, world: World) -> AsyncIterator[Compactor]:
    """Connects to coordinators and takes attempts until the block ends. Drops attempts that still run then."""
    process = world.ids.token()
    runner = AttemptRunner(process, settings.storage_options, SystemIds(), settings.store)
    large = spark_runner(settings)
    hello = wire.CompactorHello(process=process, host=world.host)
    with (
        ThreadPoolExecutor(settings.operations, "compact") as threads,
        served(registry := metrics("compactor"), settings) as metrics_address,
        contextlib.closing(large) if large else contextlib.nullcontext(),
    ):
        async with asyncio.TaskGroup() as group:
            run = by_size(runner.run, large.run, settings.spark_above) if large else runner.run
            pool = AttemptPool(settings.operations, run, threads, group, world)
            CompactorMetrics(registry, pool)
            coordinators = CoordinatorClient(
                settings.coordinator, WorkHandler(hello, pool), settings, world.clock, start_timeout=settings.start_timeout
            )
            server = Server(settings, limits=_HEALTH_ONLY)
            address = settings.advertised(await server.start())
            looking = group.create_task(coordinators.run())
            try:
                yield Compactor(process, server, address, metrics_address, pool, coordinators)
            finally:
                looking.cancel()
                await server.stop(_GRACE_S)
