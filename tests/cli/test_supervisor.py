"""`headgate dev` keeps processes alive and stops them in order; the processes here are small Python programs, fresh or forked."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headgate_cli.dev.forking import ForkingStarter
from headgate_cli.dev.processes import ProcessSpec
from headgate_cli.dev.starting import FreshStarter, Starter
from headgate_cli.dev.supervisor import Supervisor
from headgate_cli.failures import CommandError

SERVES = "import signal, sys; print('serving at 1', flush=True); signal.sigwait([signal.SIGTERM])"
IGNORES_SIGTERM = "import signal; signal.signal(15, signal.SIG_IGN); print('serving at 2', flush=True); signal.pause()"
BREAKS = "import sys; print('the disk is on fire', file=sys.stderr); sys.exit(3)"
SILENT = "import signal; signal.sigwait([signal.SIGTERM])"
TELLS = """
import json, os, signal, sys
print(json.dumps([sys.argv[1:], os.environ["GIVEN"], os.getsid(0) == os.getpid(), os.getppid(), __name__]))
print("serving at 3", flush=True)
signal.sigwait([signal.SIGTERM])
"""


PROGRAMS = {"serves": SERVES, "ignores_sigterm": IGNORES_SIGTERM, "breaks": BREAKS, "silent": SILENT, "tells": TELLS}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, program in PROGRAMS.items():
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


@pytest.fixture
def forking(programs: None) -> Iterator[ForkingStarter]:
    with ForkingStarter(["json"]) as starter:
        yield starter


@pytest.fixture(params=["fresh", "forked"])
def starter(request: pytest.FixtureRequest, programs: None) -> Starter:
    return FreshStarter() if request.param == "fresh" else request.getfixturevalue("forking")


def spec(name: str, module: str, stage: int = 0, *arguments: str, **environment: str) -> ProcessSpec:
    argv = [sys.executable, "-m", module, *arguments]
    return ProcessSpec(name, argv, stage, lambda line: line.split()[-1] if "serving at" in line else None, environment)


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
async def running(
    starter: Starter, waves: list[list[ProcessSpec]], logs: Path | None, grace_s: float = 30.0
) -> AsyncIterator[Events]:
    """Ready on entry, stopped on exit."""
    events, stop = Events(), asyncio.Event()
    supervisor = Supervisor(events.on_event, starter, logs, grace_s)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run(waves, lambda: events.on_event("ready", {}), stop))
        await events.first("ready")
        yield events
        stop.set()


async def test_a_process_that_is_killed_is_started_again_and_said_so(starter: Starter, tmp_path: Path) -> None:
    async with running(starter, [[spec("writer-1", "serves")]], tmp_path) as events:
        before = await events.first("serving", "writer-1")
        seen = len(events.seen)
        os.kill(before["pid"], signal.SIGKILL)
        died = await events.first("died", "writer-1")
        again = await events.first("serving", "writer-1", after=seen)
    assert (died["pid"], died["exit"]) == (before["pid"], -signal.SIGKILL)
    assert again["pid"] != before["pid"]


async def test_parts_stop_in_the_order_of_their_stages(starter: Starter, tmp_path: Path) -> None:
    waves = [
        [spec("redis", "serves", 2)],
        [spec("coordinator-1", "serves", 1), spec("writer-1", "serves"), spec("writer-2", "serves")],
    ]
    async with running(starter, waves, tmp_path) as events:
        assert events.named("serving")[0] == "redis"
    assert sorted(events.named("stopped")[:2]) == ["writer-1", "writer-2"]
    assert events.named("stopped")[2:] == ["coordinator-1", "redis"]


async def test_a_process_that_does_not_stop_is_killed_after_the_grace(starter: Starter, tmp_path: Path) -> None:
    async with running(starter, [[spec("writer-1", "ignores_sigterm")]], tmp_path, grace_s=0.1) as events:
        pass
    assert events.named("killed") == ["writer-1"]
    assert dict(events.seen)["stopped"]["exit"] == -signal.SIGKILL


async def test_a_part_that_cannot_start_ends_the_command_with_its_last_words(starter: Starter, tmp_path: Path) -> None:
    supervisor = Supervisor(lambda name, fields: None, starter, tmp_path, 1.0)
    with pytest.raises(CommandError, match=r"writer-1 ended with exit code 3(.|\n)*the disk is on fire"):
        await supervisor.run([[spec("coordinator-1", "serves"), spec("writer-1", "breaks")]], lambda: None, asyncio.Event())


async def test_stop_before_ready_stops_what_was_started(starter: Starter, tmp_path: Path) -> None:
    events, stop = Events(), asyncio.Event()
    silent = spec("writer-1", "silent")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            Supervisor(events.on_event, starter, tmp_path, 30.0).run([[silent]], lambda: events.on_event("ready", {}), stop)
        )
        await events.first("started", "writer-1")
        stop.set()
    assert "ready" not in dict(events.seen)
    assert events.named("stopped") == ["writer-1"]


async def test_a_process_gets_its_arguments_and_variables_and_a_session_of_its_own(starter: Starter, tmp_path: Path) -> None:
    async with running(starter, [[spec("writer-1", "tells", 0, "--store", "s3://a b", GIVEN="ä=1")]], tmp_path) as events:
        await events.first("serving", "writer-1")
    told = json.loads((tmp_path / "writer-1.log").read_text())
    assert told[:3] == [["--store", "s3://a b"], "ä=1", True]
    assert told[4] == "__main__"


@pytest.mark.slow
async def test_processes_whose_fork_server_is_killed_end_and_are_started_again(forking: ForkingStarter, tmp_path: Path) -> None:
    async with running(forking, [[spec("writer-1", "serves"), spec("writer-2", "ignores_sigterm")]], tmp_path, 0.5) as events:
        before = [await events.first("serving", name) for name in ("writer-1", "writer-2")]
        (server,) = {int(Path(f"/proc/{each['pid']}/stat").read_text().rpartition(")")[2].split()[1]) for each in before}
        seen = len(events.seen)
        os.kill(server, signal.SIGKILL)
        died = await events.first("died", "writer-1")
        again = await events.first("serving", "writer-1", after=seen)
        assert (died["pid"], died["exit"]) == (before[0]["pid"], -signal.SIGTERM)
        assert again["pid"] != before[0]["pid"]
        assert "writer-2" not in events.named("died")
        os.kill(before[1]["pid"], signal.SIGKILL)
        assert (await events.first("serving", "writer-2", after=seen))["pid"] != before[1]["pid"]
