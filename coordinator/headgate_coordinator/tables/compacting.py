"""The owner's side of one table's compactions: feeds events to the pure core, and carries out its instructions."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, assert_never

import structlog

from headgate_coordinator.core import operations
from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.compactions import Compactions
from headgate_coordinator.core.instructions import Alarm
from headgate_coordinator.core.operations import Attempt, CompactionEvent, CompactionInstruction, Drop, FinishPlan, Run
from headgate_coordinator.metrics import TableMetrics
from headgate_coordinator.streams.compactors import Compactors, CompactorSession
from headgate_coordinator.streams.messages import OrderTarget, operation_message
from headgate_proto.api.v1 import tables_pb2
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.errors import UnknownMessageError
from headgate_runtime.world import Clock
from headgate_tables.errors import ReopenTable
from headgate_tables.face.log import DataFile
from headgate_tables.face.operation import Operation, OperationResult

_log = structlog.get_logger()

_MOST_WHY: Final = 4_000
"""Characters of a compactor's error: it stays in alarms as long as its slice is stuck."""
_Ended: TypeAlias = operations.AttemptFinished | operations.AttemptFailed | operations.AttemptReturned
"""How an attempt ends at its compactor."""


class TableCompactions:
    """``finish`` hands a plan to the committer. ``settings`` returns the table's current settings, as text by key."""

    def __init__(
        self,
        target: OrderTarget,
        core: Compactions,
        compactors: Compactors,
        finish: Callable[[FinishPlan], None],
        settings: Callable[[], Mapping[str, str]],
        clock: Clock,
        metrics: TableMetrics,
    ) -> None:
        self.core = core
        self._target = target
        self._compactors = compactors
        self._finish = finish
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._changed = asyncio.Event()
        self._next_change = asyncio.Event()
        self._over = False
        self._counted = core.counts

    # From compactors (``compactors.OperationSource``).

    @property
    def wants_compactor(self) -> bool:
        """Whether an operation waits that may begin now. None may while the last work of an ownership is done."""
        return not self._over and self.core.wants_compactor(self._clock.monotonic())

    def offer_capacity(self, session: CompactorSession) -> None:
        """Gives the compactor one operation, if any waits that it may take."""
        if not self._over:
            self._handle(operations.CapacityOffered(session.process))

    def attempt_reported(self, session: CompactorSession, attempt: Attempt, report: wire.WorkRequest) -> None:
        """The compactor has finished, failed or returned the attempt."""
        event = _event_of(session.process, attempt, report, self.core.operation_of(attempt))
        if event is not None:
            self._note(session, event)
            self.handle_event(event)

    def attempt_progressed(self, session: CompactorSession, attempt: Attempt, progress: wire.AttemptProgress) -> None:
        """Notes the progress of an attempt."""
        done = (progress.rows_done, progress.bytes_done, progress.batches)
        self._handle(operations.AttemptProgressed(session.process, attempt, *done))

    def compactor_lost(self, session: CompactorSession) -> None:
        """Its stream has ended."""
        self._handle(operations.CompactorLost(session.process))

    # From the committer and the clock.

    def handle_event(self, event: CompactionEvent) -> None:
        """Handles the event, then gives operations that may begin now to free compactors."""
        self._handle(event)
        if self.wants_compactor:
            self._compactors.hand_out_operations()

    async def run(self) -> None:
        """Handles the core's deadlines until it is cancelled; then drops all attempts that run."""
        try:
            while True:
                self._changed.clear()
                due = self.core.deadline()
                try:
                    async with asyncio.timeout(None if due is None else max(0.0, due - self._clock.monotonic())):
                        await self._changed.wait()
                except TimeoutError:
                    self.handle_event(operations.Tick())
        finally:
            self._over = True
            self._next_change.set()
            for running in self.core.running_attempts():
                self._compactors.drop_attempt(running.process, self._wire(running.attempt))

    def _handle(self, event: CompactionEvent) -> None:
        for instruction in self.core.handle_event(event, self._clock.monotonic()):
            self._do(instruction)
        self._changed.set()
        self._next_change.set()
        self._next_change = asyncio.Event()
        self._count()

    def _do(self, instruction: CompactionInstruction) -> None:
        match instruction:
            case Run(process, attempt, operation):
                if session := self._compactors.get(process):
                    self._compactors.run_attempt(session, self._order(attempt, operation))
            case Drop(process, attempt):
                self._compactors.drop_attempt(process, self._wire(attempt))
            case FinishPlan():
                self._finish(instruction)
            case Alarm(text):
                self._metrics.alarms_logged.inc()
                _log.warning("alarm", table=self._target.table, alarm=text)
            case _:
                assert_never(instruction)

    def _order(self, attempt: Attempt, operation: Operation) -> wire.RunAttempt:
        return wire.RunAttempt(
            attempt=self._wire(attempt),
            url=self._target.url,
            definition=self._target.definition,
            operation=operation_message(operation),
            settings=self._settings(),
        )

    def _wire(self, attempt: Attempt) -> wire.Attempt:
        to = self._target
        return wire.Attempt(
            table=to.table, epoch=to.epoch, instant=attempt.instant, operation=attempt.operation, number=attempt.number
        )

    # For operators.

    @property
    def compactor_count(self) -> int:
        """Number of compactors with a stream to this coordinator."""
        return len(self._compactors)

    async def wait_for_change(self) -> None:
        """Returns after the next event. Raises ReopenTable when the ownership has ended."""
        if not self._over:
            await self._next_change.wait()
        if self._over:
            raise ReopenTable("the table is changing hands", fix="Send the same again shortly.")

    def _note(self, session: CompactorSession, event: _Ended) -> None:
        match event:
            case operations.AttemptFailed():
                self._log_failure(session, event)
            case operations.AttemptFinished():
                for running in self.core.running_attempts():
                    if running.attempt == event.attempt:
                        self._metrics.operation_seconds.observe(self._clock.monotonic() - running.since)
            case operations.AttemptReturned():
                pass
            case _:
                assert_never(event)

    def _log_failure(self, session: CompactorSession, event: operations.AttemptFailed) -> None:
        attempt = event.attempt
        _log.warning(
            "operation failed",
            table=self._target.table,
            instant=attempt.instant,
            operation=attempt.operation,
            attempt=attempt.number,
            compactor=session.process,
            host=session.host,
            transient=event.transient,
            why=event.why,
        )

    def _count(self) -> None:
        counts, before, metrics = self.core.counts, self._counted, self._metrics
        metrics.operations_finished.inc(counts.finished - before.finished)
        metrics.attempts_failed.inc(counts.failed - before.failed)
        metrics.attempts_lost.inc(counts.lost - before.lost)
        metrics.operations_dropped.inc(counts.dropped - before.dropped)
        self._counted = counts

    @property
    def alarms(self) -> Sequence[StandingAlarm]:
        """The alarms that stand now."""
        alone = self.core.queued_operations and not len(self._compactors)
        waits = StandingAlarm(AlarmKind.NO_COMPACTOR, "operations wait and no compactor is connected")
        return [*self.core.alarms, *([waits] if alone else [])]

    def operation_statuses(self) -> list[tables_pb2.OperationStatus]:
        """Returns the running operations, the longest first."""
        now = self._clock.monotonic()
        sessions = {session.process: session for session in self._compactors}
        return [
            tables_pb2.OperationStatus(
                partition=running.operation.partition,
                file_id=running.operation.file_id,
                compactor=running.process,
                host=sessions[running.process].host if running.process in sessions else "",
                attempt=running.attempt.number,
                rows_done=running.rows,
                bytes_done=running.bytes,
                of_bytes=running.operation.input_bytes,
                seconds=max(0.0, now - running.since),
            )
            for running in self.core.running_attempts()
        ]


def _event_of(process: str, attempt: Attempt, report: wire.WorkRequest, operation: Operation | None) -> _Ended | None:
    """Returns the event for a report, None if its plan is closed. Raises UnknownMessageError for any other message."""
    if operation is None:
        return None
    match report.WhichOneof("message"):
        case "finished":
            done, log = report.finished, None
            file = DataFile(operation.path, done.size, done.sha256, "")
            if done.HasField("log"):
                if not operation.merged_log:  # its base file would be a copy, and what the logs say nowhere
                    raise UnknownMessageError("the log file of an ordinary compaction")
                log = DataFile(operation.at(operation.merged_log), done.log.size, done.log.sha256, "")
            counts = (done.rows, done.inserts, done.updates, done.deletes, done.log_rows, done.log_blocks)
            return operations.AttemptFinished(process, attempt, OperationResult(operation, file, *counts, log=log))
        case "failed":
            kind, why = report.failed.kind, report.failed.why[:_MOST_WHY] or "without a reason"
            transient, damage = kind == wire.FAILURE_KIND_STORE, kind == wire.FAILURE_KIND_DAMAGE
            return operations.AttemptFailed(process, attempt, why, transient, damage)
        case "returned":
            return operations.AttemptReturned(process, attempt)
        case _:
            raise UnknownMessageError("a report of a compactor")
