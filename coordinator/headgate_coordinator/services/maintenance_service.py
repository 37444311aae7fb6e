"""MaintenanceService: operators' requests to a table's owner. Each is checked, passed to the table and answered."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from concurrent.futures import Executor
from typing import Final, assert_never

import structlog
from grpc.aio import ServicerContext

from headgate_coordinator.core.refusals import ADOPTED, RESTORED
from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.services import maintenance_answers as answers
from headgate_coordinator.services.alterations import Alterations, read_alteration, read_columns
from headgate_coordinator.services.following import follow_plans
from headgate_coordinator.services.lives import LivesService, log_request
from headgate_coordinator.services.loans import lend
from headgate_coordinator.services.operator_errors import answered, answered_once, refused, says_nothing
from headgate_coordinator.services.truncations import read_partitions, truncate
from headgate_coordinator.tables.owned_table import OwnedTable
from headgate_coordinator.tables.slice_figures import stuck_loads
from headgate_coordinator.tables.storage import TableStorage
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_runtime.errors import RpcError, rpc_error
from headgate_runtime.grpc_server import principal
from headgate_runtime.world import Clock
from headgate_tables.errors import TablesError
from headgate_tables.face.operation import Plan
from headgate_tables.face.owner import Table
from headgate_tables.face.results import AdoptResult

_log = structlog.get_logger()

_SAVEPOINT_WORK: Final = {"comment": "savepoint", "remove": "end of a savepoint", "list": "list of savepoints"}
_SLICE_WORK: Final = {"set_aside": "set a slice aside", "readmit": "readmit a slice", "list": "list of slices"}
"""Names of requests in logs, by the field that is set."""


class MaintenanceService(LivesService):
    """Of the tables that this coordinator owns; adopts others, too."""

    def __init__(
        self,
        state: CoordinatorState,
        storage: TableStorage,
        threads: Executor,
        created: asyncio.Event,
        clock: Clock,
        draining: asyncio.Event,
    ) -> None:
        super().__init__(state, storage, threads, created)
        self._clock = clock
        self._draining = draining

    async def Compact(
        self, request: api.CompactRequest, context: ServicerContext[api.CompactRequest, api.CompactResponse]
    ) -> AsyncIterator[api.CompactResponse]:
        details = {"plan_only": request.plan_only, "sort": request.sort}
        owned = await self._owner(request.table, principal(context), "compact", **details)
        if request.plan_only:
            found = await answered(owned.call_table(lambda table: table.compact(plan_only=True, sort=request.sort)))
            yield api.CompactResponse(planned=answers.would_compact(found, owned.compactions.compactor_count))
            return
        try:
            also = await self._unsorted(owned) if request.sort else ()
            plans = await owned.call_table(lambda table: _plan(table, also))
            async for answer in follow_plans(owned.compactions, plans, self._clock):
                yield answer
        except TablesError as error:
            raise refused(error) from error

    async def _unsorted(self, owned: OwnedTable) -> Collection[tuple[str, str]]:
        """Looks at footers, one request each, beside the table's thread: checkpoints go on meanwhile."""
        return await self._blocking(await owned.call_table(lambda table: table.look_for_unsorted()))

    async def Clean(
        self, request: api.CleanRequest, context: ServicerContext[api.CleanRequest, api.CleanResponse]
    ) -> api.CleanResponse:
        owned = await self._owner(request.table, principal(context), "clean", plan_only=request.plan_only)
        return answers.cleaned(await answered(owned.call_table(lambda table: table.clean(plan_only=request.plan_only))))

    async def Archive(
        self, request: api.ArchiveRequest, context: ServicerContext[api.ArchiveRequest, api.ArchiveResponse]
    ) -> api.ArchiveResponse:
        owned = await self._owner(request.table, principal(context), "archive", plan_only=request.plan_only)
        return answers.archived(await answered(owned.call_table(lambda table: table.archive(plan_only=request.plan_only))))

    async def Savepoint(
        self, request: api.SavepointRequest, context: ServicerContext[api.SavepointRequest, api.SavepointResponse]
    ) -> api.SavepointResponse:
        what = request.WhichOneof("what")
        if what is None:
            raise says_nothing("comment, remove or list")
        owned = await self._owner(request.table, principal(context), _SAVEPOINT_WORK[what], instant=request.remove)
        user = principal(context)

        def call(table: Table) -> api.SavepointResponse:
            instant = ""
            match what:
                case "comment":
                    instant = table.savepoint(request.comment, user)
                case "remove":
                    instant = request.remove
                    table.remove_savepoint(instant)
                case "list":
                    pass
                case _:
                    assert_never(what)
            return answers.saved(instant, table)

        return await answered_once(context, owned.call_table(call))

    async def Restore(
        self, request: api.RestoreRequest, context: ServicerContext[api.RestoreRequest, api.RestoreResponse]
    ) -> api.RestoreResponse:
        owned = await self._owner(
            request.table, principal(context), "restore", instant=request.instant, plan_only=request.plan_only
        )
        # Planned first: a request for an instant without a savepoint must not end channels.
        found = await answered(owned.call_table(lambda table: table.restore(request.instant, plan_only=True)))
        if not request.plan_only:
            found = await answered_once(context, owned.call_table_alone(RESTORED, lambda table: table.restore(request.instant)))
        return answers.restored(found)

    async def Adopt(
        self, request: api.AdoptRequest, context: ServicerContext[api.AdoptRequest, api.AdoptResponse]
    ) -> api.AdoptResponse:
        name = request.table
        if request.future_times:
            return await self._accept_future_times(request, principal(context))
        log_request(
            principal(context),
            name,
            "adopt",
            buckets=request.buckets,
            roll_back=request.roll_back,
            remove_metadata_table=request.remove_metadata_table,
        )

        def call(table: Table) -> AdoptResult:
            return table.adopt(
                buckets=request.buckets or None,
                roll_back=request.roll_back,
                remove_metadata_table=request.remove_metadata_table,
            )

        if (owned := self._state.owned.get(name)) is not None:
            return answers.adopted(await answered(owned.call_table_alone(ADOPTED, call)))
        if name in self._state.troubles:
            return answers.adopted(await answered(self._state.adoptions.request_adoption(name, call)))
        if name in await answered(self._blocking(self._storage.table_names)):
            raise RpcError(self._state.not_served_error(name))
        found = await answered(self._blocking(lambda: self._storage.adopt_new(name, self._state.own.address, call)))
        self._created.set()
        return answers.adopted(found)

    async def Repair(
        self, request: api.RepairRequest, context: ServicerContext[api.RepairRequest, api.RepairResponse]
    ) -> api.RepairResponse:
        owned = await self._owner(request.table, principal(context), "repair")
        repaired = await answered(owned.call_table(lambda table: table.repair()))
        return api.RepairResponse(files=repaired.put_back, removed=repaired.removed)

    async def _accept_future_times(self, request: api.AdoptRequest, caller: str) -> api.AdoptResponse:
        """Accepts times in the future. Channels stay open: checkpoints wait meanwhile, and go on."""
        name = request.table
        log_request(caller, name, "acceptance of times in the future")
        if request.buckets or request.roll_back or request.remove_metadata_table:
            raise rpc_error(
                errors_pb2.CODE_INVALID_ARGUMENT,
                "future_times does not adopt a table, so buckets, roll_back and remove_metadata_table cannot go with it",
                "Send future_times alone, and adopt the table in another request.",
            )

        def go_on(table: Table) -> str:
            return table.accept_future_times()

        if (owned := self._state.owned.get(name)) is not None:
            floor = await answered(owned.call_table(go_on))
        elif name in self._state.troubles:
            floor = await answered(self._state.adoptions.request_adoption(name, go_on))
        else:
            raise RpcError(await self._why_not_here(name))
        return api.AdoptResponse(goes_on_from=floor)

    async def Configure(
        self, request: api.ConfigureRequest, context: ServicerContext[api.ConfigureRequest, api.ConfigureResponse]
    ) -> api.ConfigureResponse:
        changes: dict[str, str | None] = {**request.settings, **dict.fromkeys(request.unset)}
        owned = await self._owner(request.table, principal(context), "configure", changes=changes)

        def call(table: Table) -> api.ConfigureResponse:
            if not changes:
                return answers.settings(table.settings)
            settings = table.configure(changes)
            self._storage.note_change(request.table)
            return answers.settings(settings)

        return await answered(owned.call_table(call))

    async def ChangeVersion(
        self, request: api.ChangeVersionRequest, context: ServicerContext[api.ChangeVersionRequest, api.ChangeVersionResponse]
    ) -> api.ChangeVersionResponse:
        owned = await self._owner(
            request.table, principal(context), "change of the table version", table_version=request.table_version
        )

        def call(table: Table) -> api.ChangeVersionResponse:
            change = table.change_version(request.table_version)
            self._storage.note_change(request.table)
            return api.ChangeVersionResponse(before=change.before)

        return await answered(owned.call_table(call))

    async def Alter(
        self, request: api.AlterRequest, context: ServicerContext[api.AlterRequest, api.AlterResponse]
    ) -> api.AlterResponse:
        alteration = await self._blocking(lambda: read_alteration(request))
        plan_only = request.plan_only
        owned = await self._owner(request.table, principal(context), "alteration", change=str(alteration), plan_only=plan_only)
        altering = Alterations(owned, self._storage, self._blocking)
        return await answered(altering.answer(alteration, plan_only=plan_only))

    async def Evolve(
        self, request: api.EvolveRequest, context: ServicerContext[api.EvolveRequest, api.EvolveResponse]
    ) -> api.EvolveResponse:
        columns = await self._blocking(lambda: read_columns(request))
        owned = await self._owner(request.table, principal(context), "evolution", columns=columns.names)
        return await answered(Alterations(owned, self._storage, self._blocking).evolve(columns))

    async def Truncate(
        self, request: api.TruncateRequest, context: ServicerContext[api.TruncateRequest, api.TruncateResponse]
    ) -> api.TruncateResponse:
        partitions = read_partitions(request)
        owned = await self._owner(request.table, principal(context), "truncation", partitions=partitions)
        return await answered_once(context, truncate(owned, self._storage, partitions))

    async def Lend(
        self, request: api.LendRequest, context: ServicerContext[api.LendRequest, api.LendResponse]
    ) -> AsyncIterator[api.LendResponse]:
        owned = await self._owner(request.table, principal(context), "loan", longest_ms=request.longest_ms)
        async with contextlib.aclosing(lend(owned, self._storage, self._clock, self._draining, request.longest_ms)) as loan:
            async for answer in loan:
                yield answer

    async def Slice(
        self, request: api.SliceRequest, context: ServicerContext[api.SliceRequest, api.SliceResponse]
    ) -> api.SliceResponse:
        what = request.WhichOneof("what")
        if what is None:
            raise says_nothing("set_aside, readmit or list")
        name, loss = request.set_aside or request.readmit, request.accept_loss
        owned = await self._owner(request.table, principal(context), _SLICE_WORK[what], slice=name, accept_loss=loss)

        def call(table: Table) -> api.SliceResponse:
            match what:
                case "set_aside":
                    table.set_aside(request.set_aside, request.comment)
                case "readmit":
                    table.readmit(request.readmit, accept_loss=loss)
                case "list":
                    pass
                case _:
                    assert_never(what)
            return answers.stuck(stuck_loads(table))

        return await answered(owned.call_table(call))

    async def ListChannels(
        self, request: api.ListChannelsRequest, context: ServicerContext[api.ListChannelsRequest, api.ListChannelsResponse]
    ) -> api.ListChannelsResponse:
        owned = await self._owner(request.table, principal(context), "list of channels", prefix=request.prefix)
        lags = self._state.writers.lags_of(request.table)
        return await answered(owned.call_table(lambda table: answers.channels(table, request.prefix, request.after, lags)))

    async def _owner(self, table: str, caller: str, what: str, **details: object) -> OwnedTable:
        """Returns the table. Raises RpcError if it is not owned here."""
        log_request(caller, table, what, **details)
        owned = self._state.owned.get(table)
        if owned is None:
            raise RpcError(await self._why_not_here(table))
        return owned

    async def _why_not_here(self, table: str) -> errors_pb2.Error:
        """Returns the error for a table that is not owned here. Asks the storage too: the state may not know a new table yet, and
        there was one that was dropped.
        """
        if table in self._state.table_names or table in await answered(self._blocking(self._storage.table_names)):
            return self._state.not_served_error(table)
        await answered(self._blocking(lambda: self._storage.describe(table)))
        return self._state.not_served_error(table)


def _plan(table: Table, also: Collection[tuple[str, str]]) -> list[Plan]:
    """Plans all slices with logs that are in no plan, and those of ``also``, and returns all open plans."""
    table.plan_compaction(forced=True, also=also)
    return list(table.plans.values())
