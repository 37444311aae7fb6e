"""What this process works on, for all coordinators together: capacity, running attempts, and the end of both."""

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


class Giver(Protocol):
    """A coordinator's stream."""

    def send(self, message: wire.WorkRequest) -> None:
        """In order; after the stream's end it is lost."""

    @property
    def released(self) -> asyncio.Event:
        """Set when the coordinator needs nothing more of us, or is gone."""


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
        self._givers: list[Giver] = []
        self._running: dict[bytes, tuple[Giver, Job]] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._leaving = False

    @property
    def running(self) -> int:
        """Attempts at work, those that are being given up among them."""
        return len(self._running)

    def welcomed(self, giver: Giver) -> None:
        """A coordinator takes part from now on."""
        self._givers.append(giver)
        giver.send(self._ready())
        if self._leaving:
            giver.send(wire.WorkRequest(leave=wire.CompactorLeave()))

    def lost(self, giver: Giver) -> None:
        """Its stream is over: what it gave is somebody else's now."""
        self._givers = [each for each in self._givers if each is not giver]
        for owner, job in self._running.values():
            if owner is giver:
                job.give_up()

    def take(self, giver: Giver, message: wire.WorkResponse) -> None:
        """What a coordinator says after its welcome."""
        match message.WhichOneof("message"):
            case "run" if self._leaving or self.running >= self._capacity:
                giver.send(wire.WorkRequest(returned=wire.AttemptReturned(attempt=message.run.attempt)))
            case "run":
                self._begin(giver, message.run)
            case "drop":
                _, job = self._running.get(_name(message.drop.attempt), (None, None))
                if job is not None:
                    job.give_up()
            case _:
                pass  # a newer coordinator's message

    def heartbeat(self, giver: Giver) -> wire.WorkRequest:
        """How far each of its attempts is."""
        attempts = [
            wire.AttemptProgress(attempt=job.order.attempt, rows_done=job.rows, bytes_done=job.bytes, batches=job.batches)
            for owner, job in self._running.values()
            if owner is giver
        ]
        return wire.WorkRequest(heartbeat=wire.AttemptsHeartbeat(attempts=attempts))

    async def drain(self, timeout_s: float) -> None:
        """Nothing more is taken; what runs is finished, or given back after ``timeout_s``. Returns when all coordinators know."""
        self._leaving = True
        for giver in self._givers:
            giver.send(wire.WorkRequest(leave=wire.CompactorLeave()))
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("drain_timeout is over: operations are given back", operations=self.running)
            for _, job in self._running.values():
                job.give_up()
            await self._idle.wait()
        for giver in list(self._givers):
            await giver.released.wait()

    def _begin(self, giver: Giver, order: wire.RunAttempt) -> None:
        job = Job(order)
        self._running[_name(order.attempt)] = (giver, job)
        self._idle.clear()
        self._tell_capacity()
        self._group.create_task(self._run(giver, job))

    async def _run(self, giver: Giver, job: Job) -> None:
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
        giver.send(report)
        self._tell_capacity()
        if not self._running:
            self._idle.set()

    def _tell_capacity(self) -> None:
        for giver in self._givers:
            giver.send(self._ready())

    def _ready(self) -> wire.WorkRequest:
        return wire.WorkRequest(ready=wire.Ready(operations=0 if self._leaving else self._capacity - self.running))


def _name(attempt: wire.Attempt) -> bytes:
    return attempt.SerializeToString(deterministic=True)
