"""Builds a writer, runs it, and drains it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from headgate_proto.api.v1.ingest_pb2_grpc import add_IngestServiceServicer_to_server
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.exchange_pb2_grpc import add_ExchangeServiceServicer_to_server
from headgate_runtime.caller_rates import CallerRates
from headgate_runtime.coordinator_client import CoordinatorClient
from headgate_runtime.grpc_server import Server
from headgate_runtime.lifecycle import announce_ready
from headgate_runtime.limits import CALL_BYTES, MAX_MESSAGE_BYTES, RECEIVED_BYTES, WAITING_CALLS, DoorLimits
from headgate_runtime.logs import get_logger
from headgate_runtime.metrics import metrics, served, watch_access
from headgate_runtime.threads import FailStopThreads
from headgate_runtime.turns import Turns
from headgate_runtime.world import Clock, World
from headgate_tables.errors import SyncFailedError
from headgate_tables.system import SystemIds
from headgate_writer.admission import Admission
from headgate_writer.buffers import MemoryBudget
from headgate_writer.client_stream import StreamResources
from headgate_writer.control import ControlClient, ControlHandler
from headgate_writer.exchange import ExchangeService
from headgate_writer.ipc_limits import Limits
from headgate_writer.metrics import Refusals, WriterMetrics
from headgate_writer.principal_rates import PrincipalRates
from headgate_writer.service import IngestService
from headgate_writer.settings import PROCESS_BYTES, WriterSettings
from headgate_writer.table_writer import WriterResources
from headgate_writer.tables import Tables

_log = get_logger()

_STRANGER_BYTES = 4 << 20
_FEWEST_CALLS = 32
"""At any memory limit: a program is expected to have so many channels."""
INGEST = "headgate.api.v1.IngestService"
_APPEND = f"/{INGEST}/Append"
_EXCHANGE = "/headgate.cluster.v1.ExchangeService/Exchange"
_ANYTHING = "this writer opens whatever a coordinator names, with its own rights: set store, the root of all tables"
_OPENS = 2
"""Opens of a caller for each of its refusals a second. An open takes 1 ms of this loop, and some of its table's owner."""
_LONGEST_OPEN_S = 2.0
"""Longer than a program that opens again at once needs to cost little, shorter than its deadline."""
_GRACE_S = 1.0
"""For the last answers of streams that have ended."""


async def serve(settings: WriterSettings, drain: asyncio.Event, world: World) -> None:
    """Runs a writer until ``drain`` is set and the coordinators have released it, or ``drain_timeout`` is over.

    Raises SyncFailedError, in a group: the disk failed to make data durable, so this process must not write any more.
    """
    async with running(settings, world) as writer:
        await _first(writer.coordinators.welcomed, drain)
        if not drain.is_set():
            await writer.server.health.set(True, INGEST)
            announce_ready(writer.address)
            await drain.wait()
        await writer.leave()


@dataclass(frozen=True, slots=True)
class Writer:
    """A running writer. It serves clients and writers at ``address``, and Prometheus at ``metrics_address`` (empty: not)."""

    settings: WriterSettings
    server: Server
    address: str
    metrics_address: str
    tables: Tables
    coordinators: ControlClient
    budget: MemoryBudget

    async def leave(self) -> None:
        """Drains: moves clients to other writers, and waits until accepted rows are committed and key groups are with others."""
        await self.server.health.set(False, INGEST)
        self.tables.move_clients()
        try:
            async with asyncio.timeout(self.settings.drain_timeout):
                self.coordinators.leave()
                await self.coordinators.released()
        except TimeoutError:
            _log.warning("drain_timeout is over: clients send uncommitted rows again, to other writers")


@contextlib.asynccontextmanager
async def running(settings: WriterSettings, world: World) -> AsyncIterator[Writer]:
    """Serves clients and writers, and connects to coordinators, until the block ends."""
    if settings.believes_others:
        _log.warning(_ANYTHING, listen=settings.listen, cluster_listen=settings.cluster_listen, coordinator=settings.coordinator)
    process = world.ids.token()
    # The largest bucket is flushed at half of the hard limit. Higher: larger files; lower: more room for bursts.
    budget = MemoryBudget(settings.buffer_bytes // 2, settings.buffer_bytes)
    ingest_budget = MemoryBudget(settings.ingest_bytes, settings.ingest_bytes)
    refusals = Refusals()
    with (
        ThreadPoolExecutor(settings.threads, "cpu") as cpu,
        FailStopThreads(settings.threads, "flush", SyncFailedError) as flushing,
        served(registry := metrics("writer"), settings) as metrics_address,
    ):
        async with asyncio.TaskGroup() as group:
            parts = WriterResources(process, settings, SystemIds(), world, budget, ingest_budget, cpu, flushing)
            tables = Tables(parts, settings.store, settings.storage_options, group)
            WriterMetrics(registry, tables, refusals, budget)
            hello = wire.Hello(process=process)
            handler = ControlHandler(hello, tables, world)
            coordinators = CoordinatorClient(
                settings.coordinator, handler, settings, world.clock, start_timeout=settings.start_timeout
            )
            server = Server(settings, limits=door_limits(settings), clock=world.clock)
            watch_access(registry, server.access)
            shared = StreamResources(
                Admission(Limits()),
                (ingest_budget, budget),
                server.requests.of_method(_APPEND),
                server.budget,
                cpu,
                refusals,
                server.tarpit,
                _open_rates(settings, world.clock),
                Turns(),
                PrincipalRates(world.clock),
                _in_flight(settings),
                world.reached,
            )
            add_IngestServiceServicer_to_server(IngestService(tables, coordinators, shared, settings.attach_timeout), server.grpc)
            exchange = ExchangeService(tables, process, budget, cpu, server.requests.of_method(_EXCHANGE))
            add_ExchangeServiceServicer_to_server(exchange, server.cluster)
            address = hello.address = settings.advertised(await server.start())
            hello.exchange_address = settings.cluster_advertised(server.cluster_address)
            running = [group.create_task(each) for each in (coordinators.run(), flushing.failed(), server.access.run())]
            try:
                yield Writer(settings, server, address, metrics_address, tables, coordinators, budget)
            finally:
                for task in running:
                    task.cancel()
                tables.close()
                await server.stop(_GRACE_S)


def _open_rates(settings: WriterSettings, clock: Clock) -> CallerRates:
    """As many opens at once as there are places, so that no program waits for its channels; then _OPENS for each refusal."""
    return CallerRates(clock, door_limits(settings).calls, _OPENS * settings.refusals, _LONGEST_OPEN_S)


def door_limits(settings: WriterSettings) -> DoorLimits:
    """What calls may take: a quarter of what the process leaves for streams, an eighth for requests that come in parts."""
    rest = settings.memory_limit - PROCESS_BYTES
    return DoorLimits(
        calls=max(_FEWEST_CALLS, rest // 4 // (RECEIVED_BYTES + CALL_BYTES)),
        waiting=min(WAITING_CALLS, rest // 3 // CALL_BYTES),
        read_bytes=max(4 * MAX_MESSAGE_BYTES, rest // 8),
        stranger_bytes=_STRANGER_BYTES,
    )


def _in_flight(settings: WriterSettings) -> int:
    """Wire bytes in flight of one connection: at most all the memory, or it would wait for a checkpoint that needs its rows."""
    return min(settings.max_in_flight, settings.buffer_bytes)


async def _first(*events: asyncio.Event) -> None:
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
