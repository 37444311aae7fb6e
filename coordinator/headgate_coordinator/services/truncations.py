"""Removes rows of a table of this coordinator: of partitions, or all."""

from headgate_coordinator.core.refusals import TRUNCATED
from headgate_coordinator.services.operator_errors import says_nothing
from headgate_coordinator.tables.owned_table import OwnedTable
from headgate_coordinator.tables.storage import TableStorage
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_tables.face.owner import Table


def read_partitions(request: api.TruncateRequest) -> list[str]:
    """The partitions to empty; none: the whole table. Raises RpcError for a request that says neither, or both."""
    if bool(request.partitions) == request.whole_table:
        raise says_nothing("partitions and whole_table")
    return list(dict.fromkeys(request.partitions))


async def truncate(owned: OwnedTable, storage: TableStorage, partitions: list[str]) -> api.TruncateResponse:
    """Ends the channels of ``owned``, and removes the rows of ``partitions``, or all if there are none. Raises RpcError,
    TablesError.
    """

    def remove(table: Table) -> api.TruncateResponse:
        for instant in list(table.plans):  # they may be of file groups that leave the table
            table.cancel_plan(instant)
        done = table.delete_partitions(partitions) if partitions else table.truncate()
        storage.note_change(table.name)
        return api.TruncateResponse(instant=done.instant, file_groups=done.replaced)

    # Looked at first: a request that is refused must not end channels.
    await owned.call_table(lambda table: table.check_partitions(partitions))
    return await owned.call_table_alone(TRUNCATED, remove)
