"""One owned table as `headgate status` shows it."""

from headgate_coordinator.core.table_coordinator import TableCoordinator
from headgate_coordinator.streams.messages import OrderTarget
from headgate_coordinator.tables.committer import Committer
from headgate_coordinator.tables.compacting import TableCompactions
from headgate_proto.api.v1 import tables_pb2


def table_status(
    target: OrderTarget, owner: str, core: TableCoordinator, committer: Committer, compactions: TableCompactions, clock_alarm: str
) -> tables_pb2.TableStatus:
    """Returns the status of one table. ``owner``: this coordinator's name. ``clock_alarm``: of its clock, or empty."""
    last = committer.last_commit
    alarms = (
        clock_alarm,
        committer.outage.alarm,
        *core.alarms,
        *compactions.alarms,
        *committer.alarms,
        committer.maintenance_alarm,
    )
    return tables_pb2.TableStatus(
        name=target.table,
        state="owned",
        owner=owner,
        epoch=target.epoch,
        generation=core.generation,
        checkpoint=core.checkpoint,
        channels=core.channels,
        uncommitted_bytes=core.uncommitted_bytes,
        last_instant=last.instant,
        last_commit_ms=last.at_ms,
        checkpoint_seconds=core.last_checkpoint.seconds,
        checkpoint_files=last.files,
        checkpoint_bytes=last.bytes,
        alarms=list(filter(None, alarms)),
        operations=compactions.operation_statuses(),
        operations_queued=compactions.core.queued_operations,
    )
