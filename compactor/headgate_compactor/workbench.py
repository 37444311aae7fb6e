"""What this process works on, for all coordinators together: its capacity, and the attempts that run."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

from headgate_compactor.runner import Job
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.logs import get_logger
from headgate_runtime.world import World

_log = get_logger()


class Coordinator(Protocol):
    """The stream to a coordinator, and the lease of all attempts that came on it."""

    def send(self, message: wire.WorkRequest) -> None:
        """In order; after the end of the stream it is lost, as are its attempts."""


@dataclass(slots=True)
class Totals:
    """Since the start of the process: attempts by how they ended, and rows written."""

    finished: int = 0
    failed: int = 0
    returned: int = 0
    rows: int = 0


class Workbench:
    """``capacity``: attempts at a time. ``run`` is one attempt, blocking, on ``threads``; ``group`` owns the attempts."""

    def __init__(
        self,
        capacity: int,
        run: Callable[[Job], wire.WorkRequest],
        threads: Executor,
        group: asyncio.TaskGroup,
        world: World,
    ) -> None:
        self.totals = Totals()
        self._capacity = capacity
        self._work = run
        self._threads = threads
        self._group = group
        self._world = world
        self._coordinators: list[Coordinator] = []
        self._running: dict[bytes, tuple[Coordinator, Job]] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    @property
    def running(self) -> int:
        """Attempts at work, those that are being given up among them."""
        return len(self._running)

    def add_coordinator(self, coordinator: Coordinator) -> None:
        """It hears from now on how much room there is."""
        self._coordinators.append(coordinator)
        coordinator.send(self._ready())

    def remove_coordinator(self, coordinator: Coordinator) -> None:
        """Its stream is over: its attempts are given up, since their operations go to other compactors."""
        self._coordinators = [each for each in self._coordinators if each is not coordinator]
        for owner, job in self._running.values():
            if owner is coordinator:
                job.give_up()

    def start_attempt(self, coordinator: Coordinator, order: wire.RunAttempt) -> None:
        """Gives it back at once when there is no room, or during a drain."""
        if self._draining or self.running >= self._capacity:
            coordinator.send(wire.WorkRequest(returned=wire.AttemptReturned(attempt=order.attempt)))
            return
        job = Job(order)
        self._running[_name(order.attempt)] = (coordinator, job)
        self._idle.clear()
        self._send_capacity()
        self._group.create_task(self._run(coordinator, job))

    def drop_attempt(self, attempt: wire.Attempt) -> None:
        """Gives it up, if it still runs."""
        _, job = self._running.get(_name(attempt), (None, None))
        if job is not None:
            job.give_up()

    def progress(self, coordinator: Coordinator) -> list[wire.AttemptProgress]:
        """How far each attempt of this coordinator is."""
        return [
            wire.AttemptProgress(attempt=job.order.attempt, rows_done=job.rows, bytes_done=job.bytes, batches=job.batches)
            for owner, job in self._running.values()
            if owner is coordinator
        ]

    def begin_drain(self) -> None:
        """Takes no more attempts."""
        self._draining = True

    async def finish(self, timeout_s: float) -> None:
        """Returns when no attempt runs any more. What takes longer than ``timeout_s`` is given back."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("drain_timeout is over: operations are given back", operations=self.running)
            for _, job in self._running.values():
                job.give_up()
            await self._idle.wait()

    async def _run(self, coordinator: Coordinator, job: Job) -> None:
        attempt = job.order.attempt
        name = {"table": attempt.table, "instant": attempt.instant, "operation": attempt.operation, "attempt": attempt.number}
        _log.info("operation begun", **name)
        self._world.reached("operation_claimed")
        try:
            report = await asyncio.get_running_loop().run_in_executor(self._threads, self._work, job)
        finally:
            del self._running[_name(attempt)]
        kind = report.WhichOneof("message") or ""
        if kind == "finished":
            self._world.reached("output_created")
            self.totals.rows += report.finished.rows
        setattr(self.totals, kind, getattr(self.totals, kind) + 1)
        _log.info("operation ended", outcome=kind, rows=report.finished.rows, why=report.failed.why, **name)
        coordinator.send(report)
        self._send_capacity()
        if not self._running:
            self._idle.set()

    def _send_capacity(self) -> None:
        for coordinator in self._coordinators:
            coordinator.send(self._ready())

    def _ready(self) -> wire.WorkRequest:
        return wire.WorkRequest(ready=wire.Ready(operations=0 if self._draining else self._capacity - self.running))


def _name(attempt: wire.Attempt) -> bytes:
    return attempt.SerializeToString(deterministic=True)
