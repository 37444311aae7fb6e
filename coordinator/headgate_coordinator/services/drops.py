"""Drops of tables, for MaintenanceService: the owner's handle drops the table, or that of the next try to open it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from headgate_coordinator.core.refusals import DROPPING
from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.services import maintenance_answers as answers
from headgate_coordinator.services.meant_table import MeantTable
from headgate_coordinator.tables.storage import TableStorage
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_runtime.errors import RpcError, rpc_error
from headgate_tables.errors import NotATableError, OptionError, TableDroppedError, TableInGraceError
from headgate_tables.face.owner import Table
from headgate_tables.face.results import DropResult

_T = TypeVar("_T")


class Blocking(Protocol):
    """Runs a call that blocks on a thread."""

    def __call__(self, work: Callable[[], _T], /) -> Awaitable[_T]: ...


class Drops:
    """``changed`` is set when a table has left the store, so that nobody waits for the next scan."""

    def __init__(self, state: CoordinatorState, storage: TableStorage, blocking: Blocking, changed: asyncio.Event) -> None:
        self._state = state
        self._storage = storage
        self._blocking = blocking
        self._changed = changed

    async def answer(self, request: api.DropRequest, caller: str) -> api.DropResponse:
        """Drops the table that the request means. Raises RpcError, TablesError."""
        name = request.table
        try:
            done = await self._drop(request, MeantTable(name, request.table_uuid), caller)
        except TableInGraceError:
            raise self._not_now(name) from None
        except (NotATableError, OptionError) as error:
            # It may be this very table, dropped by a call of which the answer was lost. Its end is noted before its entry goes:
            # who looks in that order, too, may miss both.
            dropping = isinstance(error, TableDroppedError) and name in await self._blocking(self._storage.table_names)
            before = await self._blocking(lambda: self._storage.endings.ended(name, request.table_uuid))
            if before is not None and not before.renamed:
                return answers.dropped_before(before)
            if not dropping:
                raise
            raise rpc_error(
                errors_pb2.CODE_UNAVAILABLE,
                "the table is dropped, and its files are still being deleted",
                "Send the same again shortly: the answer comes when all is deleted.",
            ) from None
        return answers.dropped(done)

    async def bring_back(self, name: str, caller: str) -> api.UndropResponse:
        """Brings a table back that is in its grace time (rule D9). Raises RpcError, TablesError."""
        if (owned := self._state.owned.get(name)) is not None:
            # One that has just been dropped here refuses this: its ownership is ending.
            await owned.call_table(lambda table: table.check_owner())
            return api.UndropResponse()
        if name in self._state.troubles:
            undropped = await self._state.adoptions.request_adoption(name, lambda table: table.undrop(caller))
            self._storage.note_change(name)
            return api.UndropResponse(undropped=undropped)
        if name not in await self._blocking(self._storage.table_names):
            await self._blocking(lambda: self._storage.describe(name))
        raise self._not_now(name)

    def _not_now(self, name: str) -> RpcError:
        """The error for a table in its grace time that this coordinator does not hold, or holds since this moment."""
        trouble = self._state.troubles.get(name)
        if trouble is not None and trouble.in_grace:
            return rpc_error(errors_pb2.CODE_UNAVAILABLE, "the table is changing hands", "Send the same again shortly.")
        return RpcError(self._state.not_served_error(name))

    async def _drop(self, request: api.DropRequest, meant: MeantTable, caller: str) -> DropResult:
        name, plan_only = request.table, request.plan_only

        def plan(table: Table) -> DropResult:
            meant.check(table)
            return table.drop(plan_only=True)

        def drop(table: Table) -> DropResult:
            meant.check(table)
            try:
                return self._storage.endings.drop(name, table, caller, request.grace_ms)
            finally:  # after an error it may be dropped as well
                self._storage.note_change(name)

        if (owned := self._state.owned.get(name)) is not None:
            # Checked first: a request for another table must not end channels.
            await owned.call_table(meant.check)
            if plan_only:
                # On a handle of its own: a listing may take minutes, and no checkpoint commits behind it.
                return await self._blocking(lambda: self._storage.read(name, plan))
            found = await owned.call_table_alone(DROPPING, drop)
        elif name in self._state.troubles:
            found = await self._state.adoptions.request_adoption(name, plan if plan_only else drop)
        else:
            await self._blocking(lambda: meant.check_stored(self._storage))
            raise RpcError(self._state.not_served_error(name))
        if not plan_only:
            self._changed.set()
        return found
