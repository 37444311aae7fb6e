"""Other names for tables, for MaintenanceService (rule D11)."""

import asyncio

from headgate_coordinator.core.refusals import RENAMING
from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.services.drops import Blocking, check_uuid
from headgate_coordinator.tables.storage import TableStorage
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_runtime.errors import RpcError, rpc_error
from headgate_tables.catalog import check_name
from headgate_tables.errors import OptionError, TableRenamedError
from headgate_tables.face.owner import Table


class Renames:
    """``changed`` is set when a table has another name, so that nobody waits for the next scan."""

    def __init__(self, state: CoordinatorState, storage: TableStorage, blocking: Blocking, changed: asyncio.Event) -> None:
        self._state = state
        self._storage = storage
        self._blocking = blocking
        self._changed = changed

    async def answer(self, request: api.RenameRequest, caller: str) -> api.RenameResponse:
        """Renames the table that the request means. Raises RpcError, TablesError."""
        name, to = request.table, request.to
        check_name(to)
        if name == to:
            raise OptionError(f"the table is called {to!r} already", fix="Choose another name.")
        try:
            await self._rename(name, to, request.table_uuid, caller)
        except TableRenamedError:
            # It may be by a call of which the answer was lost.
            before = await self._blocking(lambda: self._storage.endings.former(name))
            if before is None or (before.table, before.renamed) != (request.table_uuid, to):
                raise
        return api.RenameResponse()

    async def _rename(self, name: str, to: str, uuid: str, caller: str) -> None:
        owned = self._state.owned.get(name)
        if owned is None:
            described = await self._blocking(lambda: self._storage.describe(name))
            check_uuid(described.definition, uuid)
            raise RpcError(self._state.not_served_error(name))

        def check(table: Table) -> None:
            if table.definition is not None:
                check_uuid(table.definition, uuid)

        def rename(table: Table) -> None:
            check(table)
            self._storage.endings.rename(name, table, to, caller)

        # Looked at first: a request that is refused must not end channels.
        await owned.call_table(check)
        if to in await self._blocking(self._storage.table_names):
            raise rpc_error(errors_pb2.CODE_TABLE_EXISTS, f"there is a table {to}", "Choose another name.")
        await owned.call_table_alone(RENAMING, rename)
        self._changed.set()
