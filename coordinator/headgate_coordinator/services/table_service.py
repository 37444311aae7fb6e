"""TableService: tables, writers for a client's rows, and the state of the cluster. Calls of the storage run on threads."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

import pyarrow as pa
import structlog
from grpc.aio import ServicerContext

from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.services.creations import Creations
from headgate_coordinator.services.schemas import read_schema
from headgate_coordinator.services.storage_calls import StorageCalls
from headgate_coordinator.services.table_quota import TableQuota, made_tables
from headgate_coordinator.tables.described import DescribedTable, InGrace, NewTable
from headgate_coordinator.tables.storage import TableStorage
from headgate_proto.api.v1 import tables_pb2 as api
from headgate_proto.api.v1 import tables_pb2_grpc as rpc
from headgate_runtime.access.identity import CallerKind
from headgate_runtime.access.rights import Right
from headgate_runtime.descriptions import describe
from headgate_runtime.errors import RpcError, from_tables
from headgate_runtime.grpc_server import call
from headgate_tables.errors import FixCall, TablesError
from headgate_tables.face.log import parse_time

_log = structlog.get_logger()
_T = TypeVar("_T")


class TableService(StorageCalls, rpc.TableServiceServicer):
    """``access_alarms``: of the server's access control. ``creations``: what new tables may cost."""

    def __init__(
        self,
        state: CoordinatorState,
        storage: TableStorage,
        threads: Executor,
        created: asyncio.Event,
        access_alarms: Callable[[], Sequence[str]],
        creations: Creations,
    ) -> None:
        super().__init__(state, storage, threads, created)
        self._creations = creations
        self._table_quota = TableQuota(lambda known: self._blocking(lambda: made_tables(storage, known)))
        self._access_alarms = access_alarms

    async def CreateTable(
        self, request: api.CreateTableRequest, context: ServicerContext[api.CreateTableRequest, api.CreateTableResponse]
    ) -> api.CreateTableResponse:
        caller = call(context)
        principal, most = caller.identity.principal, caller.usage().tables
        creator = principal if caller.identity.kind is CallerKind.CLIENT else ""
        with self._creations.counted(caller.sharer):
            async with self._creations.reading(caller.sharer):
                schema = await self._blocking(lambda: read_schema(request.schema))
            async with self._table_quota.counted(request.name, principal, most):
                described = await self._blocking(lambda: self._storage.create(_wanted(request, schema, creator)))
        self._created.set()
        return api.CreateTableResponse(table=_description(described))

    async def DescribeTable(
        self, request: api.DescribeTableRequest, _context: ServicerContext[api.DescribeTableRequest, api.DescribeTableResponse]
    ) -> api.DescribeTableResponse:
        described = await self._blocking(lambda: self._storage.describe(request.name, request.table_uuid))
        return api.DescribeTableResponse(table=_description(described))

    async def ListTables(
        self, _request: api.ListTablesRequest, context: ServicerContext[api.ListTablesRequest, api.ListTablesResponse]
    ) -> api.ListTablesResponse:
        caller = call(context)
        found = await self._blocking(self._storage.list)
        return api.ListTablesResponse(
            tables=[_description(table) for table in found.described if caller.may(Right.READ, table.name)],
            unreadable=[name for name in found.unreadable if caller.may(Right.READ, name)],
            dropped=[_in_grace(each) for each in found.in_grace if caller.may(Right.READ, each.name)],
        )

    async def FindWriters(
        self, _request: api.FindWritersRequest, _context: ServicerContext[api.FindWritersRequest, api.FindWritersResponse]
    ) -> api.FindWritersResponse:
        return api.FindWritersResponse(addresses=[session.address for session in self._state.writers.by_load()])

    async def Status(
        self, request: api.StatusRequest, context: ServicerContext[api.StatusRequest, api.StatusResponse]
    ) -> api.StatusResponse:
        caller, state = call(context), self._state
        asked = [request.table] if request.table else [*state.owned, *state.troubles]
        tables = [table for table in asked if caller.may(Right.READ, table)]
        return api.StatusResponse(
            coordinator=state.own.name,
            coordinators=[api.CoordinatorStatus(name=each.name, address=each.address) for each in state.coordinators],
            writers=[
                api.WriterStatus(
                    process=session.process,
                    address=session.address,
                    leaving=session.leaving,
                    uncommitted_bytes=session.uncommitted_bytes,
                )
                for session in state.writers
            ],
            compactors=[
                api.CompactorStatus(
                    process=session.process,
                    host=session.host,
                    leaving=session.leaving,
                    free=session.free,
                    running=len(session.attempts),
                )
                for session in state.compactors
            ],
            tables=[state.table_status(table) for table in sorted(tables)],
            redis_reachable=bool(state.redis_reachable),
            alarms=self._alarms() if caller.may(Right.OPERATE, None) else [],
        )

    def _alarms(self) -> list[str]:
        listing = self._state.listing_outage.alarm
        return [*([listing.text] if listing else []), *self._access_alarms()]

    async def _blocking(self, work: Callable[[], _T]) -> _T:
        try:
            return await super()._blocking(work)
        except TablesError as error:
            if not isinstance(error, FixCall):
                _log.warning("storage refused a call", error=str(error), kind=type(error).__name__)
            raise RpcError(from_tables(error)) from error


def _wanted(request: api.CreateTableRequest, schema: pa.Schema, creator: str) -> NewTable:
    return NewTable(
        request.name,
        schema,
        list(request.record_key),
        list(request.partition_by),
        request.ordering or None,
        request.buckets,
        request.hive_style,
        request.exist_ok,
        request.table_version,
        creator,
    )


def _in_grace(found: InGrace) -> api.DroppedTable:
    grace = found.grace
    return api.DroppedTable(
        name=found.name,
        table_uuid=found.table,
        dropped_ms=parse_time(grace.time),
        until_ms=grace.until,
        principal=grace.by,
    )


def _description(table: DescribedTable) -> api.TableDescription:
    return describe(table.name, table.url, table.definition, table.format_version, table.evolve)
