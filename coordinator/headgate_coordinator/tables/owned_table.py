"""One table while this coordinator owns it: feeds events to the pure core, and carries out its instructions in order.

One task handles events; a second one hands slot work to the committer's thread. Nothing here waits for a writer.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, assert_never

import structlog

from headgate_coordinator.core import events, instructions
from headgate_coordinator.core.compactions import Compactions
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import Instruction, Refusal
from headgate_coordinator.core.operations import CompactionEvent
from headgate_coordinator.core.table_coordinator import TableCoordinator
from headgate_coordinator.metrics import TableMetrics
from headgate_coordinator.streams.compactors import Compactors
from headgate_coordinator.streams.messages import OrderTarget, event_of, order_of, refused
from headgate_coordinator.streams.writers import Writers, WriterSession
from headgate_coordinator.tables.committer import Committer
from headgate_coordinator.tables.compacting import TableCompactions
from headgate_coordinator.tables.core_metrics import CoreMetrics
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.maintenance_looks import MaintenanceLooks
from headgate_coordinator.tables.requests import TableRequests
from headgate_coordinator.tables.service_policy import ServicePolicy
from headgate_coordinator.tables.table_status import TableView
from headgate_coordinator.tables.work import RunService, Work, issues_times
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import wire_error
from headgate_runtime.threads import FailStopThreads
from headgate_runtime.world import World
from headgate_tables.errors import ReopenTable, SyncFailedError
from headgate_tables.face.owner import Table
from headgate_tables.face.settings import BLOCK_FORMAT, TableSettings

_log = structlog.get_logger()
_T = TypeVar("_T")
_CHECKPOINTS_FIRST, _SERVICES = 0, 1
"""Ranks of waiting work: slots of checkpoints go first, so that a checkpoint waits for at most one piece of other work."""


class OwnedTable:
    """``committer`` makes the committer, from the function that takes its events. ``threads`` runs calls that may block for long.

    Methods named after an event of writers come from ``streams.writers``.
    """

    def __init__(
        self,
        target: OrderTarget,
        core: TableCoordinator,
        committer: Callable[[Callable[[Event | CompactionEvent], None]], Committer],
        writers: Writers,
        compactors: Compactors,
        service_policy: ServicePolicy,
        world: World,
        guard: GuardedClock,
        metrics: TableMetrics,
        threads: Executor,
    ) -> None:
        self.target = target
        self._core = core
        self._writers = writers
        self._clock = world.clock
        self._guard = guard
        self._metrics = metrics
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._work: asyncio.PriorityQueue[tuple[int, int, Work]] = asyncio.PriorityQueue()
        self._order = itertools.count()
        self._requests = TableRequests(self._loop, lambda work: self._put(work, _SERVICES))
        self._last_work: RunService | None = None
        self._committer = committer(self._report)
        self._looks = MaintenanceLooks(
            self._committer,
            compactors,
            world.clock,
            service_policy.interval,
            lambda step: self._put(step, _SERVICES),
            self.queue_event,
        )
        self.compactions = TableCompactions(
            target,
            Compactions(service_policy.compaction, world.clock.monotonic()),
            compactors,
            lambda plan: self._put(plan, _SERVICES),
            lambda: self._committer.settings,
            world.clock,
            metrics,
        )
        self._parts: set[str] = set()
        self._coming: Counter[str] = Counter()
        self._drained = False
        self._core_metrics = CoreMetrics(core, metrics)
        self.view = TableView(target, core, self._committer, self.compactions, guard, world.clock)

    def queue_event(self, event: Event) -> None:
        """Queues an event. Call it on the event loop's thread."""
        self._events.put_nowait(event)

    def _report(self, event: Event | CompactionEvent) -> None:
        """Queues an event of the committer, on its thread."""
        if isinstance(event, CompactionEvent):
            self._loop.call_soon_threadsafe(self.compactions.handle_event, event)
        else:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    def writer_joined(self, session: WriterSession) -> None:
        """Gives the writer a part in the table, unless one of the two is about to go."""
        if not (session.leaving or self._drained):
            self.queue_event(self._join(session))

    def _find_writers(self) -> None:
        """Queues all writers that are there in one event. One event each would make the first writer the only member of the first
        checkpoint, and the others would wait for its end.
        """
        for session in self._writers:
            session.loads.pop(self.target.table, None)
        found = tuple(self._join(session) for session in self._writers if not session.leaving)
        self.queue_event(events.WritersFound(found))

    def _join(self, session: WriterSession) -> events.WriterJoined:
        self._parts.add(session.process)
        self._coming[session.process] += 1
        return events.WriterJoined(session.process, session.exchange_address)

    def writer_lost(self, session: WriterSession, why: str) -> None:
        """Takes the writer's part away."""
        if session.process in self._parts:
            self._parts.discard(session.process)
            self.queue_event(events.WriterLost(session.process, why))

    def writer_leaving(self, session: WriterSession) -> None:
        """Passes the leave on. The core answers with a Detach when the table no longer needs the writer."""
        if session.process in self._parts:
            session.pending.add(self.target.table)
            self.queue_event(events.WriterLeaving(session.process))

    def load_reported(self, session: WriterSession, uncommitted_bytes: int) -> None:
        """Passes on the load of this table in a heartbeat."""
        if session.process in self._parts:
            self.queue_event(events.LoadReported(session.process, uncommitted_bytes))

    def table_reported(self, session: WriterSession, report: wire.TableReport) -> None:
        """Passes a report on. A report under another ownership, or of a writer without a part, is dropped (rule RO2); an open is
        answered with an error then. Raises UnknownMessageError.
        """
        event = event_of(session.process, report)
        if report.epoch == self.target.epoch and session.process in self._parts:
            self.queue_event(event)
        elif isinstance(event, events.OpenRequested):
            error = wire_error(errors_pb2.CODE_UNAVAILABLE, "the table has just changed hands", "Open the channel again shortly.")
            session.send(wire.ControlResponse(table=refused(report, error)))

    async def call_table(self, call: Callable[[Table], _T]) -> _T:
        """Runs ``call`` on the table's handle between two slots, behind waiting slots of checkpoints, and returns its result.
        Raises what ``call`` raises; ReopenTable when the ownership ends first.
        """
        return await self._requests.call_table(call)

    async def call_table_alone(self, refusal: Refusal, call: Callable[[Table], _T]) -> _T:
        """Ends every channel with ``refusal`` and drops everything undecided, then runs ``call`` and returns its result (rule
        CH8). The ownership ends afterwards, also if ``call`` fails. Raises as ``call_table``, and when it is ending already.
        """
        if self._last_work is not None or self._drained:
            raise ReopenTable("the table is being handed over", fix="Send the same again shortly.")
        self._last_work, answer = self._requests.new_request(call)
        self.queue_event(events.EndAsked(refusal))
        return await answer

    @property
    def ended_by_request(self) -> bool:
        """Whether ``call_table_alone`` ends the ownership. The table is opened here again then, not handed over."""
        return self._last_work is not None

    @property
    def progressed_at(self) -> float:
        """When a checkpoint last went on or was decided, in monotonic seconds; 0: never."""
        return self._core.progressed_at

    async def run(self) -> None:
        """Runs until the core has drained, which ends the ownership. Raises what the committer raises, which ends it as well."""
        thread = FailStopThreads(1, f"commit-{self.target.table}", SyncFailedError)
        self._find_writers()
        try:
            async with asyncio.TaskGroup() as tasks:
                rest = (self._commit(thread), self.compactions.run(), self._looks.run())
                working = [tasks.create_task(each) for each in rest]
                await self._decide()
                for task in working:
                    task.cancel()
            await self._end(thread)
        finally:
            self._let_go()
            try:
                # A slot that is being written cannot be stopped, and the table's handle is not free before it is done.
                await asyncio.shield(self._loop.run_in_executor(self._threads, thread.end))
            finally:
                self._requests.refuse_all()

    async def _end(self, thread: Executor) -> None:
        """The last work, which takes hours if it is a loan. Requests that wait are refused before, and not what has begun. A
        writer of whose coming the core has not heard has no part in it.
        """
        self._let_go()
        await self._loop.run_in_executor(thread, _nothing)  # behind what has begun, and its answer
        self._requests.refuse_queued()
        if self._last_work is not None:
            await self._loop.run_in_executor(thread, self._committer.finish_with, self._last_work)
        else:
            await self._loop.run_in_executor(thread, self._committer.hand_over)

    async def _decide(self) -> None:
        while not self._drained:
            event = await self._next_event()
            if isinstance(event, events.WriterJoined | events.WritersFound):
                joined = event.writers if isinstance(event, events.WritersFound) else (event,)
                self._coming -= Counter(each.process for each in joined)
            for instruction in self._core.handle_event(event, self._clock.monotonic()):
                self._do(instruction)
            self._core_metrics.record_event(event)

    async def _next_event(self) -> Event:
        due = self._core.deadline()
        if due is None:
            return await self._events.get()
        try:
            async with asyncio.timeout(max(0.0, due - self._clock.monotonic())):
                return await self._events.get()
        except TimeoutError:
            return events.Tick()

    async def _commit(self, thread: Executor) -> None:
        await self._loop.run_in_executor(thread, self._committer.load_past)
        while True:
            _, _, work = await self._work.get()
            if issues_times(work):
                await self._guard.until_believed()
            await self._loop.run_in_executor(thread, self._committer.execute, work)
            self._looks.done(work)
            if self._looks.begun and self._work.empty():
                await self._loop.run_in_executor(thread, self._committer.tidy)

    def _do(self, instruction: Instruction) -> None:
        match instruction:
            case instructions.Send():
                self._send(instruction)
            case instructions.Evict(process, why):
                if session := self._writers.get(process):
                    session.end_stream(why)
            case instructions.Alarm(text):
                self._metrics.alarms_logged.inc()
                _log.warning("alarm", table=self.target.table, alarm=text)
            case instructions.Drained():
                self._drained = True
            case (
                instructions.IssueInstant()
                | instructions.CommitCheckpoint()
                | instructions.DropCheckpoint()
                | instructions.WinOffsets()
                | instructions.AskLog()
            ):
                self._put(instruction, _CHECKPOINTS_FIRST)
            case _:
                assert_never(instruction)

    def _put(self, work: Work, rank: int) -> None:
        self._work.put_nowait((rank, next(self._order), work))

    def _send(self, send: instructions.Send) -> None:
        """Drops what the core says to a stream that is over; the end, or the next stream's begin, is on its way to the core."""
        if not self._coming[send.process]:
            self._send_now(send)

    def _send_now(self, send: instructions.Send) -> None:
        session = self._writers.get(send.process)
        if session is None or send.process not in self._parts:
            return
        block_format = self._committer.settings.get(BLOCK_FORMAT, TableSettings().block_format)
        session.send(wire.ControlResponse(table=order_of(self.target, send.generation, send.order, block_format)))
        if isinstance(send.order, instructions.Detach):
            self._parts.discard(send.process)
            self._writers.note_detached(self.target.table, send.process)

    def _let_go(self) -> None:
        """Detaches the table from all writers. A successor may have attached it before, under its own epoch; then it stays."""
        for process in sorted(self._parts):
            self._send_now(instructions.Send(process, self._core.generation, instructions.Detach()))
        self._writers.note_detached(self.target.table)


def _nothing() -> None: ...
