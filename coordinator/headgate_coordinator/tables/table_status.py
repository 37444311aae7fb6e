"""One owned table as `headgate status` and Prometheus see it."""

import math
from collections.abc import Sequence
from typing import Final

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.table_coordinator import TableCoordinator
from headgate_coordinator.gauges import TableFigures
from headgate_coordinator.streams.messages import OrderTarget
from headgate_coordinator.tables.committer import Committer
from headgate_coordinator.tables.compacting import TableCompactions
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_proto.api.v1 import tables_pb2
from headgate_runtime.world import Clock

_SHORTEST_S: Final = 0.001
"""Of a wait that is said: 0 says that nothing waits."""


class TableView:
    """Reads one ownership, on the event loop. It is made when the ownership begins."""

    def __init__(
        self,
        target: OrderTarget,
        core: TableCoordinator,
        committer: Committer,
        compactions: TableCompactions,
        guard: GuardedClock,
        clock: Clock,
    ) -> None:
        self._target = target
        self._core = core
        self._committer = committer
        self._compactions = compactions
        self._guard = guard
        self._clock = clock
        self._since_ms = clock.now_ms()

    @property
    def alarms(self) -> Sequence[StandingAlarm]:
        """What is wrong with the table now."""
        clock, committer = self._guard.status().alarm, self._committer
        alarms = (
            StandingAlarm(AlarmKind.CLOCK, clock) if clock else None,
            committer.outage.alarm,
            *self._core.alarms,
            *self._compactions.alarms,
            *committer.alarms,
            committer.maintenance_alarm,
        )
        return [each for each in alarms if each is not None]

    def status(self, owner: str, lag: int = 0) -> tables_pb2.TableStatus:
        """Returns the table's status. ``owner``: this coordinator's name. ``lag``: of the channel with the most."""
        target, core, compactions, last = self._target, self._core, self._compactions, self._committer.last_commit
        now, waiting_since = self._clock.monotonic(), core.commits.waiting_since
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
            checkpoint_seconds=core.commits.last.seconds,
            checkpoint_files=last.files,
            checkpoint_bytes=last.bytes,
            alarms=[alarm.text for alarm in self.alarms],
            operations=compactions.operation_statuses(),
            operations_queued=compactions.core.queued_operations,
            lag=lag,
            rows_per_second=core.commits.rate.per_second(now),
            waiting_seconds=0.0 if waiting_since is None else max(now - waiting_since, _SHORTEST_S),
        )

    def figures(self) -> TableFigures:
        """Returns the table's figures for Prometheus."""
        slices, pressure, operations = self._committer.figures, self._core.pressure, self._compactions.core
        return TableFigures(
            uncommitted_bytes=self._core.uncommitted_bytes,
            last_commit_at=(self._committer.last_commit.at_ms or self._since_ms) / 1000,
            log_files=slices.files if slices.counted else None,
            log_bytes=slices.bytes if slices.counted else None,
            stretch=pressure.stretch,
            intake_limit=math.inf if pressure.rate is None else pressure.rate,
            intake_stopped=pressure.stopped is not None,
            stuck_slices=slices.stuck,
            operations_running=len(operations.running_attempts()),
            operations_waiting=operations.queued_operations,
        )
