"""Keeps the processes of one cluster alive, reports their events, and stops them in order."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from headgate_cli.dev.processes import ProcessSpec
from headgate_cli.dev.restarts import Restarts
from headgate_cli.dev.starting import StartedProcess, Starter
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError


class EventFields(TypedDict, total=False):
    """What an event says: the process, and what happened to it."""

    name: str
    pid: int
    address: str
    exit: int
    restart_in_s: float
    after_s: float


OnEvent = Callable[[str, EventFields], None]
"""Called with an event's name and its fields."""


@dataclass(slots=True)
class _Supervised:
    """A spec and its current process."""

    spec: ProcessSpec
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    served: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""
    process: StartedProcess | None = None


class Supervisor:
    """``logs``: folder with one log file a process; None: logs go to stderr. ``grace_s``: how long a process may drain."""

    def __init__(self, on_event: OnEvent, starter: Starter, logs: Path | None, grace_s: float) -> None:
        self._on_event = on_event
        self._starter = starter
        self._logs = logs
        self._grace_s = grace_s
        self._supervised: list[_Supervised] = []
        self._up = False

    async def run(self, waves: Sequence[Sequence[ProcessSpec]], ready: Callable[[], None], stop: asyncio.Event) -> None:
        """Starts one wave after the other, calls ``ready`` when all serve, and returns when all have stopped after ``stop``.

        Raises CommandError when a process ends before all were ready once: the cause is a wrong setting, and a restart is no
        help.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._start_and_stop(tasks, waves, ready, stop))
        except* CommandError as group:
            raise group.exceptions[0] from None
        finally:
            self.kill()
            await asyncio.gather(*(supervised.process.wait() for supervised in self._supervised if supervised.process))

    def kill(self) -> None:
        """Kills every process now, without a drain. Clients send uncommitted rows again."""
        for supervised in self._supervised:
            if supervised.process and supervised.process.returncode is None:
                supervised.process.kill()

    async def _start_and_stop(
        self, tasks: asyncio.TaskGroup, waves: Sequence[Sequence[ProcessSpec]], ready: Callable[[], None], stop: asyncio.Event
    ) -> None:
        for wave in waves:
            started = [_Supervised(spec) for spec in wave]
            self._supervised += started
            for supervised in started:
                tasks.create_task(self._supervise(supervised))
            if not await _before(stop, [supervised.served for supervised in started]):
                break
        else:
            self._up = True
            ready()
            await stop.wait()
        await self._stop_all()

    async def _stop_all(self) -> None:
        self._on_event("stopping", {})
        for stage in sorted({supervised.spec.stage for supervised in self._supervised}):
            stopping = [supervised for supervised in self._supervised if supervised.spec.stage == stage]
            for supervised in stopping:
                supervised.stop.set()
            await asyncio.gather(*(supervised.ended.wait() for supervised in stopping))

    async def _supervise(self, supervised: _Supervised) -> None:
        restarts = Restarts()
        loop = asyncio.get_running_loop()
        while not supervised.stop.is_set():
            began = loop.time()
            code = await self._run_once(supervised)
            fields: EventFields = {
                "name": supervised.spec.name,
                "pid": supervised.process.pid if supervised.process else 0,
                "exit": code,
            }
            if supervised.stop.is_set():
                self._on_event("stopped", fields)
                break
            if not self._up:
                raise self._failed_to_start(supervised.spec, code)
            wait = restarts.pause_after(loop.time() - began)
            self._on_event("died", {**fields, "restart_in_s": wait})
            await _within(wait, supervised.stop.wait())
        supervised.ended.set()

    async def _run_once(self, supervised: _Supervised) -> int:
        spec = supervised.spec
        log = (self._logs / f"{spec.name}.log").open("ab") if self._logs else None
        try:
            process = supervised.process = await self._starter.start(spec, log)
        finally:
            if log:
                log.close()
        self._on_event("started", {"name": spec.name, "pid": process.pid})
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self._listen(supervised, process))
            stopping = tasks.create_task(self._stop_when_asked(supervised, process))
            code = await process.wait()
            stopping.cancel()
            await listening
        return code

    async def _listen(self, supervised: _Supervised, process: StartedProcess) -> None:
        log = (self._logs / f"{supervised.spec.name}.log").open("ab", buffering=0) if self._logs else None
        try:
            async for line in _stdout(process):
                address = supervised.spec.served_address(line.decode(errors="replace"))
                if address:
                    supervised.address = address
                    supervised.served.set()
                    self._on_event("serving", {"name": supervised.spec.name, "pid": process.pid, "address": address})
                elif log:
                    log.write(line)
        finally:
            if log:
                log.close()

    async def _stop_when_asked(self, supervised: _Supervised, process: StartedProcess) -> None:
        await supervised.stop.wait()
        process.send_signal(signal.SIGTERM)
        if not await _within(self._grace_s, process.wait()):
            self._on_event("killed", {"name": supervised.spec.name, "pid": process.pid, "after_s": self._grace_s})
            process.kill()

    def _failed_to_start(self, spec: ProcessSpec, code: int) -> CommandError:
        tail = ""
        if self._logs:
            lines = (self._logs / f"{spec.name}.log").read_text(errors="replace").splitlines()
            tail = "".join(f"\n  | {line}" for line in lines[-12:])
        fix = "If its address is taken, another `headgate dev` may run here: stop it, or choose another --port."
        return CommandError(
            f"{spec.name} ended with {exit_text(code)} before it was ready{tail}", fix=fix, code=ExitCode.OPERATOR
        )


def exit_text(code: int) -> str:
    """``SIGKILL`` rather than -9."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _stdout(process: StartedProcess) -> asyncio.StreamReader:
    if process.stdout is None:
        raise RuntimeError("started without a pipe")
    return process.stdout


async def _within(seconds: float, work: Awaitable[object]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True


async def _before(stop: asyncio.Event, events: Sequence[asyncio.Event]) -> bool:
    """Waits for all ``events``; returns False when ``stop`` comes first."""
    for event in events:
        waits = [asyncio.ensure_future(other.wait()) for other in (stop, event)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if stop.is_set():
            return False
    return True
