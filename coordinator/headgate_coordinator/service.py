"""Builds and runs a coordinator, from start to drain."""

import asyncio
from collections.abc import Callable

import structlog

from headgate_coordinator.gauges import Gauges
from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.leadership.elections import Elections
from headgate_coordinator.leadership.leases import Holder, Leases
from headgate_coordinator.leadership.redis_access import plaintext_problem, redis_of
from headgate_coordinator.leadership.witnesses import TimeWitnesses
from headgate_coordinator.metrics import Metrics
from headgate_coordinator.services.compaction_service import CompactionService
from headgate_coordinator.services.coordination_service import CoordinationService
from headgate_coordinator.services.creations import Creations
from headgate_coordinator.services.maintenance_service import MaintenanceService
from headgate_coordinator.services.table_service import TableService
from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.storage import TableStorage
from headgate_proto.api.v1.maintenance_pb2_grpc import add_MaintenanceServiceServicer_to_server
from headgate_proto.api.v1.tables_pb2_grpc import add_TableServiceServicer_to_server
from headgate_proto.cluster.v1.compaction_pb2_grpc import add_CompactionServiceServicer_to_server
from headgate_proto.cluster.v1.coordination_pb2_grpc import add_CoordinationServiceServicer_to_server
from headgate_runtime.grpc_server import Server
from headgate_runtime.metrics import metrics, served, watch_access
from headgate_runtime.threads import FailStopThreads
from headgate_runtime.world import World
from headgate_tables.errors import SyncFailedError
from headgate_tables.system import System

THREADS = 8
"""Concurrent calls to the store, besides committers'. More: takeovers of many tables are faster, with more requests at once."""
GRACE_S = 1.0
"""Time for calls to end after the drain; control streams end with it."""
SERVICES = (
    "headgate.api.v1.TableService",
    "headgate.api.v1.MaintenanceService",
    "headgate.cluster.v1.CoordinationService",
    "headgate.cluster.v1.CompactionService",
)

_log = structlog.get_logger()


async def serve(
    settings: CoordinatorSettings,
    world: World,
    draining: asyncio.Event,
    ready: Callable[[str], None],
    *,
    system: System | None = None,
) -> None:
    """Runs a coordinator until it has drained.

    ``ready`` gets host:port once the coordinator answers and has looked for tables; nothing if it has to drain before.

    Raises ListenError, OptionError for an impossible store, StartError, also in groups, SyncFailedError (hazard H14).
    """
    system = system or System.real()
    guard = GuardedClock(system.clock, world.clock)
    storage = TableStorage(settings, world, system, guard)
    state = CoordinatorState()
    created = asyncio.Event()
    registry = metrics("coordinator")
    counters = Metrics(registry)
    Gauges(registry, asyncio.get_running_loop(), state.figures, counters.labels)
    with FailStopThreads(THREADS, "store", SyncFailedError) as threads, served(registry, settings):
        server = Server(settings, clock=world.clock, front=settings.front, route=state.cluster_address_of)
        watch_access(registry, server.access)
        creations = Creations(world.clock, settings.refusals / 10)
        tables = TableService(state, storage, threads, created, lambda: server.access.alarms, creations)
        maintenance = MaintenanceService(state, storage, threads, created, world.clock, draining)
        for each in {server.grpc, server.cluster}:
            add_TableServiceServicer_to_server(tables, each)
            add_MaintenanceServiceServicer_to_server(maintenance, each)
        add_CoordinationServiceServicer_to_server(_coordination(state, settings, world, server), server.cluster)
        decode = server.requests.of_method("/headgate.cluster.v1.CompactionService/Work")
        compaction = CompactionService(state.compactors, decode, world.clock, timeout_s=settings.compactor_timeout)
        add_CompactionServiceServicer_to_server(compaction, server.cluster)
        bound = await server.start()
        address = settings.advertised(bound)
        own = state.own = Holder(
            settings.name or address, world.ids.token(), address, settings.cluster_advertised(server.cluster_address)
        )
        leases = Leases(redis_of(settings), settings.cluster, own, ttl_s=settings.lease_ttl)
        witnesses = TimeWitnesses(leases, settings.redis, settings.store, settings.storage_options, guard, world.clock, threads)
        elections = Elections(state, leases, storage, settings, world, counters, threads, created, guard, witnesses)
        try:
            for problem in filter(None, (plaintext_problem(settings), await leases.setup_problem())):
                _log.warning("redis is not set up for leases", problem=problem)
            async with asyncio.TaskGroup() as tasks:
                watching = [tasks.create_task(threads.failed()), tasks.create_task(server.access.run())]
                owning = tasks.create_task(elections.run(draining))
                owning.add_done_callback(lambda _: [task.cancel() for task in watching])
                await elections.first_look_done.wait()
                if not draining.is_set():
                    await server.health.set(True, *SERVICES)
                    ready(bound)
        finally:
            for session in [*state.writers, *state.compactors]:
                session.end_stream("the coordinator has ended", flush=True)
            await server.stop(GRACE_S)
            await leases.close()


def _coordination(state: CoordinatorState, settings: CoordinatorSettings, world: World, server: Server) -> CoordinationService:
    return CoordinationService(
        state.writers,
        state.coordinator_addresses,
        server.requests.of_method("/headgate.cluster.v1.CoordinationService/Control"),
        world.clock,
        writer_timeout_s=settings.writer_timeout,
        heartbeat_s=settings.heartbeat_interval,
        domain=settings.cluster_domain,
    )
