"""Keeps the processes of one cluster alive, says what happens to them, and stops them in order."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate_cli.dev.parts import Part
from headgate_cli.dev.restarts import Restarts
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError

Report = Callable[[str, dict[str, Any]], None]
"""Called with an event's name and its fields."""

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(slots=True)
class _Kept:
    """One part and its process of the moment."""

    part: Part
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    served: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""
    process: asyncio.subprocess.Process | None = None


class Supervisor:
    """``logs``: folder of one file a part, None shows them on stderr. ``grace_s``: how long a part may take to drain."""

    def __init__(self, report: Report, logs: Path | None, grace_s: float) -> None:
        self._report = report
        self._logs = logs
        self._grace_s = grace_s
        self._kept: list[_Kept] = []
        self._up = False

    async def run(self, waves: Sequence[Sequence[Part]], ready: Callable[[], None], stop: asyncio.Event) -> None:
        """Starts one wave after the other, calls ``ready`` when all serve, and returns when all have stopped after ``stop``.

        Raises CommandError when a part ends before everything was ready once: that is a wrong setting, not an accident.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._live(tasks, waves, ready, stop))
        except* CommandError as group:
            raise group.exceptions[0] from None
        finally:
            self.kill()
            await asyncio.gather(*(kept.process.wait() for kept in self._kept if kept.process))

    def kill(self) -> None:
        """No drain: every process ends now. What clients were not told to be committed is lost to them, and sent again."""
        for kept in self._kept:
            if kept.process and kept.process.returncode is None:
                kept.process.kill()

    async def _live(
        self, tasks: asyncio.TaskGroup, waves: Sequence[Sequence[Part]], ready: Callable[[], None], stop: asyncio.Event
    ) -> None:
        for wave in waves:
            started = [_Kept(part) for part in wave]
            self._kept += started
            for kept in started:
                tasks.create_task(self._keep(kept))
            if not await _before(stop, [kept.served for kept in started]):
                break
        else:
            self._up = True
            ready()
            await stop.wait()
        await self._stop_all()

    async def _stop_all(self) -> None:
        self._report("stopping", {})
        for stage in sorted({kept.part.stage for kept in self._kept}):
            stopping = [kept for kept in self._kept if kept.part.stage == stage]
            for kept in stopping:
                kept.stop.set()
            await asyncio.gather(*(kept.ended.wait() for kept in stopping))

    async def _keep(self, kept: _Kept) -> None:
        restarts = Restarts()
        loop = asyncio.get_running_loop()
        while not kept.stop.is_set():
            began = loop.time()
            code = await self._run_once(kept)
            fields = {"name": kept.part.name, "pid": kept.process.pid if kept.process else 0, "exit": code}
            if kept.stop.is_set():
                self._report("stopped", fields)
                break
            if not self._up:
                raise self._failed_to_start(kept.part, code)
            wait = restarts.pause_after(loop.time() - began)
            self._report("died", {**fields, "restart_in_s": wait})
            await _within(wait, kept.stop.wait())
        kept.ended.set()

    async def _run_once(self, kept: _Kept) -> int:
        part = kept.part
        log = (self._logs / f"{part.name}.log").open("ab") if self._logs else None
        try:
            process = kept.process = await asyncio.create_subprocess_exec(
                *part.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=os.environ | part.environment,
                start_new_session=True,  # the terminal's Ctrl-C must reach the supervisor alone, which stops in order
                preexec_fn=_die_with_parent,
            )
        finally:
            if log:
                log.close()
        self._report("started", {"name": part.name, "pid": process.pid})
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self._listen(kept, process))
            stopping = tasks.create_task(self._stop_when_asked(kept, process))
            code = await process.wait()
            stopping.cancel()
            await listening
        return code

    async def _listen(self, kept: _Kept, process: asyncio.subprocess.Process) -> None:
        log = (self._logs / f"{kept.part.name}.log").open("ab", buffering=0) if self._logs else None
        try:
            async for line in _stdout(process):
                address = kept.part.ready(line.decode(errors="replace"))
                if address:
                    kept.address = address
                    kept.served.set()
                    self._report("serving", {"name": kept.part.name, "pid": process.pid, "address": address})
                elif log:
                    log.write(line)
        finally:
            if log:
                log.close()

    async def _stop_when_asked(self, kept: _Kept, process: asyncio.subprocess.Process) -> None:
        await kept.stop.wait()
        process.send_signal(signal.SIGTERM)
        if not await _within(self._grace_s, process.wait()):
            self._report("killed", {"name": kept.part.name, "pid": process.pid, "after_s": self._grace_s})
            process.kill()

    def _failed_to_start(self, part: Part, code: int) -> CommandError:
        said = ""
        if self._logs:
            lines = (self._logs / f"{part.name}.log").read_text(errors="replace").splitlines()
            said = "".join(f"\n  | {line}" for line in lines[-12:])
        fix = "If its address is taken, another `headgate dev` may run here: stop it, or choose --port."
        return CommandError(f"{part.name} ended with {exit_text(code)} before it served{said}", fix=fix, code=ExitCode.OPERATOR)


def exit_text(code: int) -> str:
    """``SIGKILL`` rather than -9."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _die_with_parent() -> None:
    """A supervisor that is killed itself leaves no orphans on Linux; it survives exec."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _stdout(process: asyncio.subprocess.Process) -> asyncio.StreamReader:
    if process.stdout is None:
        raise RuntimeError("started without a pipe")
    return process.stdout


async def _within(seconds: float, work: Any) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True


async def _before(stop: asyncio.Event, events: Sequence[asyncio.Event]) -> bool:
    """Waits for all ``events``; False when ``stop`` comes first."""
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
