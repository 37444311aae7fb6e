"""One table while this coordinator owns it: its pure core is fed with events, and what the core wants is done, in order.

One task decides; a second one hands slot work to the committer's thread. Nothing here waits for a writer.
"""

import asyncio
import itertools
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar, assert_never

import structlog

from headgate_coordinator.core import events, instructions
from headgate_coordinator.core.compactions import CompactionPolicy, Compactions
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import Instruction, Refusal
from headgate_coordinator.core.operations import CompactionEvent
from headgate_coordinator.core.table_coordinator import TableCoordinator
from headgate_coordinator.metrics import TableMetrics
from headgate_coordinator.streams.compactors import Compactors
from headgate_coordinator.streams.messages import Address, event_of, order_of, refused
from headgate_coordinator.streams.writers import Writers, WriterSession
from headgate_coordinator.tables.committer import Committer
from headgate_coordinator.tables.compacting import TableCompactions
from headgate_coordinator.tables.core_metrics import CoreMetrics
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.requests import TableRequests
from headgate_coordinator.tables.table_status import table_status
from headgate_coordinator.tables.work import Maintain, RunService, Work, issues_times, leaves_something_due
from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import wire_error
from headgate_runtime.threads import Threads
from headgate_runtime.world import World
from headgate_tables.errors import ReopenTable, SyncFailedError
from headgate_tables.face.owner import Table

_log = structlog.get_logger()
_T = TypeVar("_T")
_CHECKPOINTS_FIRST, _SERVICES = 0, 1
"""In what order waiting work is done: what is asked for from outside never holds up a checkpoint by more than itself."""

COUNTING_S = 0.05
"""Between two looks whether the listing of a table that was taken over has come in."""


@dataclass(frozen=True, slots=True)
class ServicePolicy:
    """``interval``: seconds between looks at what is due for the table's health; ``compaction``: of its operations."""

    interval: float
    compaction: CompactionPolicy


class OwnedTable:
    """``committer`` is made with ``report``; ``threads`` runs what may block for long, such as waiting for its thread."""

    def __init__(
        self,
        address: Address,
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
        self.address = address
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
        self._service_interval = service_policy.interval
        self._compactors = compactors
        self._compactor_count: int | None = None
        self._maintenance_waits = False
        self.compactions = TableCompactions(
            address,
            Compactions(service_policy.compaction, world.clock.monotonic()),
            compactors,
            lambda plan: self._put(plan, _SERVICES),
            lambda: self._committer.settings,
            world.clock,
            metrics,
        )
        self._parts: set[str] = set()
        self._drained = False
        self._core_metrics = CoreMetrics(core, metrics)

    def queue_event(self, event: Event) -> None:
        """From the event loop's own thread."""
        self._events.put_nowait(event)

    def _report(self, event: Event | CompactionEvent) -> None:
        """From the committer's thread."""
        if isinstance(event, CompactionEvent):
            self._loop.call_soon_threadsafe(self.compactions.handle_event, event)
        else:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    def writer_joined(self, session: WriterSession) -> None:
        """A writer that does not leave gets a part in the table."""
        if not session.leaving:
            self._parts.add(session.process)
            self.queue_event(events.WriterJoined(session.process, session.address))

    def _find_writers(self) -> None:
        """In one event: with the first of them alone, the first checkpoint would have one member, and the others would wait for
        it.
        """
        found = []
        for session in self._writers:
            session.loads.pop(self.address.table, None)
            if not session.leaving:
                self._parts.add(session.process)
                found.append(events.WriterJoined(session.process, session.address))
        self.queue_event(events.WritersFound(tuple(found)))

    def writer_lost(self, session: WriterSession, why: str) -> None:
        """It has no part in anything any more."""
        if session.process in self._parts:
            self._parts.discard(session.process)
            self.queue_event(events.WriterLost(session.process, why))

    def writer_leaving(self, session: WriterSession) -> None:
        """The core answers with a Detach once it can do without the writer."""
        if session.process in self._parts:
            session.pending.add(self.address.table)
            self.queue_event(events.WriterLeaving(session.process))

    def load_reported(self, session: WriterSession, uncommitted_bytes: int) -> None:
        """A heartbeat named the table."""
        if session.process in self._parts:
            self.queue_event(events.LoadReported(session.process, uncommitted_bytes))

    def table_reported(self, session: WriterSession, report: wire.TableReport) -> None:
        """Of another ownership or a writer without a part nothing counts (rule RO2), but an open is answered.

        Raises UnknownMessageError.
        """
        event = event_of(session.process, report)
        if report.epoch == self.address.epoch and session.process in self._parts:
            self.queue_event(event)
        elif isinstance(event, events.OpenRequested):
            error = wire_error(errors_pb2.CODE_UNAVAILABLE, "the table has just changed hands", "Open the channel again shortly.")
            session.send(wire.ControlResponse(table=refused(report, error)))

    async def call_table(self, call: Callable[[Table], _T]) -> _T:
        """``call`` of the table's handle, between two slots; checkpoints go first. Raises what it raises, or ReopenTable."""
        return await self._requests.call_table(call)

    async def call_table_alone(self, refusal: Refusal, call: Callable[[Table], _T]) -> _T:
        """Ends every channel with ``refusal``, and all that is not decided; then ``call`` is alone with the table (rule CH8).

        The ownership ends with that, whatever comes of it. Raises as ``ask``; ReopenTable also when somebody else came first.
        """
        if self._last_work is not None or self._drained:
            raise ReopenTable("the table is being handed over", fix="Send the same again shortly.")
        self._last_work, answer = self._requests.new_request(call)
        self.queue_event(events.EndAsked(refusal))
        return await answer

    @property
    def ended_by_request(self) -> bool:
        """And not to be handed over."""
        return self._last_work is not None

    async def run(self) -> None:
        """Until the core has drained. Raises what the committer raises: then the ownership has ended."""
        thread = Threads(1, f"commit-{self.address.table}", SyncFailedError)
        self._find_writers()
        try:
            async with asyncio.TaskGroup() as tasks:
                rest = (self._commit(thread), self.compactions.run(), self._look_after())
                working = [tasks.create_task(each) for each in rest]
                await self._decide()
                for task in working:
                    task.cancel()
            if self._last_work is not None:
                await self._loop.run_in_executor(thread, self._committer.finish_with, self._last_work)
        finally:
            self._let_go()
            try:
                # A slot that is being sent cannot be called back; nobody else may use the table's handle before it is through.
                await asyncio.shield(self._loop.run_in_executor(self._threads, thread.end))
            finally:
                self._requests.refuse_all()

    async def _decide(self) -> None:
        while not self._drained:
            event = await self._next_event()
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
            self._ask_for_maintenance(behind=work)
            if self._work.empty():
                await self._loop.run_in_executor(thread, self._committer.tidy)

    async def _look_after(self) -> None:
        """Also a table that takes no rows has slices that grow old, and files that may go."""
        while True:
            self._count_compactors()
            self._ask_for_maintenance()
            # Until the slices are counted nothing is committed, see ``Backpressure``.
            counted = self._committer.figures.counted
            await self._clock.sleep(self._service_interval if counted else min(COUNTING_S, self._service_interval))

    def _count_compactors(self) -> None:
        if (count := len(self._compactors)) != self._compactor_count:
            self._compactor_count = count
            self.queue_event(events.CompactorsCounted(count))

    def _ask_for_maintenance(self, behind: Work | None = None) -> None:
        """At each interval, and ``behind`` work that leaves something to do. One step waits at a time."""
        if isinstance(behind, Maintain):
            self._maintenance_waits = False
        due = behind is None or leaves_something_due(behind, more=self._committer.more_to_maintain)
        if due and not self._maintenance_waits:
            self._maintenance_waits = True
            self._put(Maintain(), _SERVICES)

    def _do(self, instruction: Instruction) -> None:
        match instruction:
            case instructions.Send():
                self._send(instruction)
            case instructions.Evict(process, why):
                if session := self._writers.get(process):
                    session.end_stream(why)
            case instructions.Alarm(text):
                self._metrics.alarms.inc()
                _log.warning("alarm", table=self.address.table, alarm=text)
            case instructions.Drained():
                self._drained = True
            case (
                instructions.IssueInstant()
                | instructions.Commit()
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
        session = self._writers.get(send.process)
        if session is None or send.process not in self._parts:
            return  # lost; the core has not heard of it yet
        session.send(wire.ControlResponse(table=order_of(self.address, send.generation, send.order)))
        if isinstance(send.order, instructions.Detach):
            self._parts.discard(send.process)
            self._writers.note_detached(self.address.table, send.process)

    def _let_go(self) -> None:
        """Writers forget what they hold of the table; a successor may have told them so already, under its own epoch."""
        for process in sorted(self._parts):
            self._send(instructions.Send(process, self._core.generation, instructions.Detach()))
        self._writers.note_detached(self.address.table)
        self._metrics.uncommitted.set(0)

    def table_status(self, owner: str) -> tables_pb2.TableStatus:
        """For TableService.Status."""
        return table_status(self.address, owner, self._core, self._committer, self.compactions, self._guard.verdict().alarm)
