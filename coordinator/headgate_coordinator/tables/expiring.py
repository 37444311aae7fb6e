"""Removes the partitions of an owned table that are past their time, as an operator's truncation does, at an interval (D10)."""

from collections.abc import Callable

import structlog

from headgate_coordinator.core.refusals import EXPIRED
from headgate_coordinator.metrics import TableMetrics
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.owned_table import OwnedTable
from headgate_runtime.world import Clock
from headgate_tables.errors import TablesError
from headgate_tables.face.owner import Table
from headgate_tables.face.results import ExpireResult

_SHOWN = 20
"""Partitions that a line of the log names."""

_log = structlog.get_logger()


class Expiry:
    """Of the table ``owned``. ``removed`` is called on the committer's thread when its definition has changed."""

    def __init__(
        self,
        owned: OwnedTable,
        guard: GuardedClock,
        clock: Clock,
        interval: float,
        removed: Callable[[], None],
        metrics: TableMetrics,
    ) -> None:
        self._owned = owned
        self._guard = guard
        self._clock = clock
        self._interval = interval
        self._removed = removed
        self._metrics = metrics

    async def run(self) -> None:
        """Looks at each interval until it is cancelled; first after one, so that rows for old dates cannot stop the table."""
        while True:
            await self._clock.sleep(self._interval)
            try:
                if await self._owned.call_table(self._is_due):
                    await self._owned.call_table_alone(EXPIRED, self._remove)
            except TablesError as error:  # it ends the ownership by itself if it concerns the table
                _log.warning("partitions were not expired", table=self._owned.target.table, error=str(error))

    def _is_due(self, table: Table) -> bool:
        # Before the table is listed, a look would list it, and checkpoints would wait for that.
        if not table.settings.ttl_ms or table.largest_slice() is None:
            return False
        return self._trusts_clock(table) and bool(table.expire_partitions(dry_run=True).expired)

    def _remove(self, table: Table) -> None:
        if not self._trusts_clock(table):
            return
        for instant in list(table.plans):  # they may be of file groups that leave the table
            table.cancel_plan(instant)
        done = table.expire_partitions()  # decided anew: a partition may have been written to since
        self._removed()
        self._note(table.name, done)

    def _trusts_clock(self, table: Table) -> bool:
        """A clock that is ahead would expire everything."""
        status = self._guard.status()
        if not status.fit_to_delete:
            why = status.alarm or "no other clock agrees with this one"
            _log.warning("partitions are not expired", table=table.name, why=why)
        return status.fit_to_delete

    def _note(self, name: str, done: ExpireResult) -> None:
        self._metrics.expired_partitions.inc(len(done.expired))
        _log.info(
            "partitions expired",
            table=name,
            instant=done.instant,
            partitions=list(done.expired)[:_SHOWN],
            count=len(done.expired),
            file_groups=done.replaced,
            left=done.left,
        )
