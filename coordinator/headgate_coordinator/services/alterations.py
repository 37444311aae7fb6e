"""Alters the columns of a table of this coordinator (rule C7)."""

import pyarrow as pa

from headgate_coordinator.core.refusals import ALTERED
from headgate_coordinator.services import maintenance_answers as answers
from headgate_coordinator.services.drops import Blocking
from headgate_coordinator.services.schemas import read_schema
from headgate_coordinator.tables.owned_table import OwnedTable
from headgate_coordinator.tables.storage import TableStorage
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_runtime.errors import rpc_error
from headgate_tables.face.altering import Alteration
from headgate_tables.face.owner import Table


def read_alteration(request: api.AlterRequest) -> Alteration:
    """What the request changes. CPU work: call it off the loop. Raises RpcError: TOO_LARGE, SCHEMA, INVALID_ARGUMENT."""
    found = Alteration(_types(request.add), _types(request.widen), tuple(request.nullable))
    if not (found.add or found.widen or found.nullable):
        raise rpc_error(
            errors_pb2.CODE_INVALID_ARGUMENT, "the request does not say what to change", "Set add, widen or nullable."
        )
    return found


def _types(message: bytes) -> dict[str, pa.DataType]:
    if not message:
        return {}
    schema = read_schema(message)
    types: dict[str, pa.DataType] = dict(zip(schema.names, schema.types, strict=True))
    if len(types) < len(schema.names):
        raise rpc_error(errors_pb2.CODE_SCHEMA, "the request names a column twice", "Name each column once.")
    return types


def read_columns(request: api.EvolveRequest) -> pa.Schema:
    """The columns that the request brings. As ``read_alteration``."""
    types = _types(request.columns)
    if not types:
        raise rpc_error(errors_pb2.CODE_INVALID_ARGUMENT, "the request brings no column", "Set columns.")
    return pa.schema(list(types.items()))


class Alterations:
    """Of the table ``owned``."""

    def __init__(self, owned: OwnedTable, storage: TableStorage, blocking: Blocking) -> None:
        self._owned = owned
        self._storage = storage
        self._blocking = blocking

    async def answer(self, alteration: Alteration, *, plan_only: bool) -> api.AlterResponse:
        """Makes the change, or says what it would be. Raises RpcError, TablesError."""

        def plan(table: Table) -> api.AlterResponse:
            return answers.altered(table, table.alter(alteration, plan_only=True))

        def alter(table: Table) -> api.AlterResponse:
            altered = answers.altered(table, table.alter(alteration))
            self._storage.note_change(table.name)
            return altered

        # Planned first: a request that changes nothing, or that is refused, must not end channels.
        found = await self._owned.call_table(plan)
        await self._blocking(lambda: read_schema(found.table.schema))  # writers take no larger ones either
        if plan_only or not (found.added or found.widened or found.nullable):
            return found
        return await self._owned.call_table_alone(ALTERED, alter)

    async def evolve(self, columns: pa.Schema) -> api.EvolveResponse:
        """Makes the change after which the table holds these columns, unless it does. Raises RpcError, TablesError."""
        alteration = await self._owned.call_table(lambda table: table.evolution(columns))
        found = await self.answer(alteration, plan_only=False)
        return api.EvolveResponse(added=found.added, widened=found.widened, table=found.table)
