"""Other names for tables, for MaintenanceService (rule D11)."""

import asyncio

from headgate_coordinator.core.refusals import RENAMING
from headgate_coordinator.leadership.coordinator_state import CoordinatorState
from headgate_coordinator.services.drops import Blocking
from headgate_coordinator.services.meant_table import MeantTable
from headgate_coordinator.tables.storage import TableStorage
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_runtime.errors import RpcError, rpc_error
from headgate_tables.catalog import check_name
from headgate_tables.errors import OptionError, TableExistsError, TableRenamedError
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
            await self._rename(MeantTable(name, request.table_uuid), to, caller)
        except TableExistsError as error:
            # As it is: what that error means to who creates a table is no advice here.
            raise rpc_error(errors_pb2.CODE_TABLE_EXISTS, error.message, error.fix) from None
        except TableRenamedError:
            # It may be by a call of which the answer was lost.
            before = await self._blocking(lambda: self._storage.endings.ended(name, request.table_uuid))
            if before is None or before.renamed != to:
                raise
        return api.RenameResponse()

    async def _rename(self, meant: MeantTable, to: str, caller: str) -> None:
        endings = self._storage.endings
        if (owned := self._state.owned.get(meant.name)) is None:
            await self._blocking(lambda: meant.check_stored(self._storage))
            raise RpcError(self._state.not_served_error(meant.name))

        def rename(table: Table) -> None:
            meant.check(table)
            endings.rename(meant.name, table, to, caller)

        # Looked at first: a request that is refused must not end channels.
        await owned.call_table(meant.check)
        await self._blocking(lambda: endings.check_rename(meant.name, to))
        await owned.call_table_alone(RENAMING, rename)
        self._changed.set()
