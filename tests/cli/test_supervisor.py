"""`headgate dev` keeps processes alive and stops them in order; the processes here are small Python programs."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headgate_cli.dev.processes import ProcessSpec
from headgate_cli.dev.supervisor import Supervisor
from headgate_cli.failures import CommandError

SERVES = "import signal, sys; print('serving at 1', flush=True); signal.sigwait([signal.SIGTERM])"
IGNORES_SIGTERM = "import signal; signal.signal(15, signal.SIG_IGN); print('serving at 2', flush=True); signal.pause()"
BREAKS = "import sys; print('the disk is on fire', file=sys.stderr); sys.exit(3)"


def spec(name: str, program: str, stage: int = 0) -> ProcessSpec:
    return ProcessSpec(
        name, [sys.executable, "-c", program], stage, lambda line: line.split()[-1] if "serving at" in line else None
    )


class Events:
    """What the supervisor reported, and a way to wait for it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def on_event(self, name: str, fields: dict[str, Any]) -> None:
        self.seen.append((name, fields))
        task = asyncio.ensure_future(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        async with self.news:
            self.news.notify_all()

    async def first(self, event: str, name: str = "", after: int = 0) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            return [fields for seen, fields in self.seen[after:] if seen == event and fields.get("name", "") == name]

        async with self.news:
            await self.news.wait_for(found)
        return found()[0]

    def named(self, event: str) -> list[str]:
        return [fields["name"] for seen, fields in self.seen if seen == event]


@asynccontextmanager
async def running(waves: list[list[ProcessSpec]], logs: Path | None, grace_s: float = 30.0) -> AsyncIterator[Events]:
    """Ready on entry, stopped on exit."""
    events, stop = Events(), asyncio.Event()
    supervisor = Supervisor(events.on_event, logs, grace_s)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run(waves, lambda: events.on_event("ready", {}), stop))
        await events.first("ready")
        yield events
        stop.set()


async def test_a_process_that_is_killed_is_started_again_and_said_so(tmp_path: Path) -> None:
    async with running([[spec("writer-1", SERVES)]], tmp_path) as events:
        before = await events.first("serving", "writer-1")
        seen = len(events.seen)
        os.kill(before["pid"], signal.SIGKILL)
        died = await events.first("died", "writer-1")
        again = await events.first("serving", "writer-1", after=seen)
    assert (died["pid"], died["exit"]) == (before["pid"], -signal.SIGKILL)
    assert again["pid"] != before["pid"]


async def test_parts_stop_in_the_order_of_their_stages(tmp_path: Path) -> None:
    waves = [[spec("redis", SERVES, 2)], [spec("coordinator-1", SERVES, 1), spec("writer-1", SERVES), spec("writer-2", SERVES)]]
    async with running(waves, tmp_path) as events:
        assert events.named("serving")[0] == "redis"
    assert sorted(events.named("stopped")[:2]) == ["writer-1", "writer-2"]
    assert events.named("stopped")[2:] == ["coordinator-1", "redis"]


async def test_a_process_that_does_not_stop_is_killed_after_the_grace(tmp_path: Path) -> None:
    async with running([[spec("writer-1", IGNORES_SIGTERM)]], tmp_path, grace_s=0.1) as events:
        pass
    assert events.named("killed") == ["writer-1"]
    assert dict(events.seen)["stopped"]["exit"] == -signal.SIGKILL


async def test_a_part_that_cannot_start_ends_the_command_with_its_last_words(tmp_path: Path) -> None:
    supervisor = Supervisor(lambda name, fields: None, tmp_path, 1.0)
    with pytest.raises(CommandError, match=r"writer-1 ended with exit code 3(.|\n)*the disk is on fire"):
        await supervisor.run([[spec("coordinator-1", SERVES), spec("writer-1", BREAKS)]], lambda: None, asyncio.Event())


async def test_stop_before_ready_stops_what_was_started(tmp_path: Path) -> None:
    events, stop = Events(), asyncio.Event()
    silent = spec("writer-1", "import signal; signal.sigwait([signal.SIGTERM])")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(Supervisor(events.on_event, tmp_path, 30.0).run([[silent]], lambda: events.on_event("ready", {}), stop))
        await events.first("started", "writer-1")
        stop.set()
    assert "ready" not in dict(events.seen)
    assert events.named("stopped") == ["writer-1"]
