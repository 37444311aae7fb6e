"""The attempts that run in this process, for all coordinators together, and the capacity that they share."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol, assert_never

from headgate_compactor.runner import RunningAttempt
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.logs import get_logger
from headgate_runtime.world import World

_log = get_logger()


class Coordinator(Protocol):
    """The stream to a coordinator, and the lease of all attempts that came on it."""

    def send(self, message: wire.WorkRequest) -> None:
        """Sends in order. After the end of the stream, messages are lost, as are its attempts."""


@dataclass(slots=True)
class AttemptTotals:
    """Counts since the start of the process: attempts by outcome, and rows written."""

    finished: int = 0
    failed: int = 0
    returned: int = 0
    rows: int = 0

    def count(self, report: wire.WorkRequest) -> None:
        """Counts an attempt that has ended."""
        match report.WhichOneof("message"):
            case "finished":
                self.finished += 1
                self.rows += report.finished.rows
            case "failed":
                self.failed += 1
            case "returned":
                self.returned += 1
            case "hello" | "ready" | "heartbeat" | "leave" | "part" | None as other:
                raise AssertionError(f"{other} does not end an attempt")
            case other:
                assert_never(other)


class AttemptPool:
    """Runs up to ``capacity`` attempts at a time. ``run`` does one, on ``threads``. ``group`` owns the tasks."""

    def __init__(
        self,
        capacity: int,
        run: Callable[[RunningAttempt], wire.WorkRequest],
        threads: Executor,
        group: asyncio.TaskGroup,
        world: World,
    ) -> None:
        self.totals = AttemptTotals()
        self._capacity = capacity
        self._work = run
        self._threads = threads
        self._group = group
        self._world = world
        self._coordinators: list[Coordinator] = []
        self._running: dict[bytes, tuple[Coordinator, RunningAttempt]] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    @property
    def running(self) -> int:
        """Number of attempts that run, including dropped ones that have not ended yet."""
        return len(self._running)

    def add_coordinator(self, coordinator: Coordinator) -> None:
        """Sends the coordinator the free capacity, now and after every change."""
        self._coordinators.append(coordinator)
        coordinator.send(self._ready())

    def remove_coordinator(self, coordinator: Coordinator) -> None:
        """Drops the attempts of a coordinator whose stream has ended: their operations go to other compactors."""
        self._coordinators = [each for each in self._coordinators if each is not coordinator]
        for owner, running in self._running.values():
            if owner is coordinator:
                running.drop()

    def start_attempt(self, coordinator: Coordinator, order: wire.RunAttempt) -> None:
        """Starts the attempt, or returns it when there is no capacity, it runs already, or the process drains."""
        if self._draining or self.running >= self._capacity or _name(order.attempt) in self._running:
            coordinator.send(wire.WorkRequest(returned=wire.AttemptReturned(attempt=order.attempt)))
            return
        running = RunningAttempt(order)
        self._running[_name(order.attempt)] = (coordinator, running)
        self._idle.clear()
        self._send_capacity()
        self._group.create_task(self._run(coordinator, running))

    def drop_attempt(self, attempt: wire.Attempt) -> None:
        """Drops the attempt, if it still runs."""
        _, running = self._running.get(_name(attempt), (None, None))
        if running is not None:
            running.drop()

    def progress(self, coordinator: Coordinator) -> list[wire.AttemptProgress]:
        """Returns the progress of each attempt of this coordinator."""
        return [
            wire.AttemptProgress(
                attempt=running.order.attempt,
                rows_done=running.rows,
                bytes_done=running.bytes,
                batches=running.batches,
            )
            for owner, running in self._running.values()
            if owner is coordinator
        ]

    def begin_drain(self) -> None:
        """Returns every new attempt from now on."""
        self._draining = True

    async def finish(self, timeout_s: float) -> None:
        """Waits until no attempt runs. Drops attempts that take longer than ``timeout_s``; they are returned."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("drain_timeout is over: operations are returned", operations=self.running)
            for _, running in self._running.values():
                running.drop()
            await self._idle.wait()

    async def _run(self, coordinator: Coordinator, running: RunningAttempt) -> None:
        attempt = running.order.attempt
        name = {"table": attempt.table, "instant": attempt.instant, "operation": attempt.operation, "attempt": attempt.number}
        _log.info("operation begun", **name)
        self._world.reached("operation_claimed")
        try:
            report = await asyncio.get_running_loop().run_in_executor(self._threads, self._work, running)
        finally:
            del self._running[_name(attempt)]
        if report.WhichOneof("message") == "finished":
            self._world.reached("output_created")
        self.totals.count(report)
        _log.info(
            "operation ended", outcome=report.WhichOneof("message"), rows=report.finished.rows, why=report.failed.why, **name
        )
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
