"""A whole cluster of real processes, in three lines:

    with Cluster(tmp_path, writers=2) as cluster:
        headgate.connect(cluster.address)...
        cluster.kill("writer-1")

Parts are named "redis", "coordinator-1", "writer-1", "compactor-1" and so on. What a part says is in ``folder/logs`` and is
printed when the block fails. A part that ends without being asked to fails the block, too. At the end everything is killed.
"""

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from demo.ports import free_port
from headgate_runtime.environment import ENVIRONMENT
from support.links import ANYBODY, CutKind, Link, owner_of_port
from support.moved_clock import move_clock
from support.processes import READY_S, Died, Process
from support.redis_server import ask, start_redis
from support.stepping import hits

CLIENT = "client"
"""The name of everything that is no part of the cluster, for ``cut``."""


class Cluster:
    """``options`` are flags by kind of part, or by part, as ``{"coordinator": ["--checkpoint-interval", "1s"]}``.

    ``links``: every server stands behind a proxy, so that ``cut`` works; costs throughput. ``store``: another place than a
    folder of its own. ``kill_at`` and ``pause_at``: by part, "step:n" at which its first process kills or stops itself.
    ``plant``: by kind of part, or by part, bugs and burdens of ``support.planted``. ``code``: by part, the import path of another
    version of the project (``support.earlier``), for the processes of that name that are started next.
    """

    def __init__(
        self,
        folder: Path,
        *,
        coordinators: int = 1,
        writers: int = 2,
        compactors: int = 0,
        links: bool = False,
        store: str = "",
        options: Mapping[str, Sequence[str]] | None = None,
        env: Mapping[str, str] | None = None,
        kill_at: Mapping[str, str] | None = None,
        pause_at: Mapping[str, str] | None = None,
        plant: Mapping[str, tuple[str, ...]] | None = None,
        code: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.store = store or f"file://{folder}/store"
        self._options = options or {}
        # Set here, a service need not start twice (test_lifecycle.py shows that it does).
        self._env = {**ENVIRONMENT, **(env or {})}
        self._kill_at, self._pause_at = kill_at or {}, pause_at or {}
        self._plant = plant or {}
        self.code = dict(code or {})
        self._coordinators = [f"coordinator-{number}" for number in range(1, coordinators + 1)]
        self._writers = [f"writer-{number}" for number in range(1, writers + 1)]
        self._compactors = [f"compactor-{number}" for number in range(1, compactors + 1)]
        self._with_links = links
        self._links: dict[str, Link] = {}
        self._running: dict[str, Process] = {}
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        (self.folder / "logs").mkdir(parents=True)
        (self.folder / "store").mkdir()
        try:
            self.start("redis")
            for kind in (self._coordinators, self._writers, self._compactors):
                for name in kind:
                    self._begin(name, self._kill_at.get(name, ""), self._pause_at.get(name, ""))
                for name in kind:
                    self.wait_ready(name)
        except BaseException:
            self._show_logs()
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        gone = [part.name for part in self._running.values() if part.ended_unasked]
        if kind is not None or gone:
            self._show_logs()
        self._end()
        if gone and kind is None:
            raise Died(f"ended without being asked to: {', '.join(gone)}")

    @property
    def address(self) -> str:
        """Where clients go: all coordinators, separated by commas."""
        return ",".join(self.address_of(name) for name in self._coordinators)

    def address_of(self, name: str) -> str:
        """What others connect to: the part's link, if there are links."""
        return self._links[name].address if name in self._links else self._running[name].address

    def part(self, name: str) -> Process:
        """The newest process of that name."""
        return self._running[name]

    @property
    def parts(self) -> Mapping[str, Process]:
        """The newest process of each name, for measuring."""
        return dict(self._running)

    # --- processes ---

    def start(self, name: str, *, kill_at: str = "", pause_at: str = "", wait: bool = True) -> Process:
        """Starts a part that is not there, or was killed: under its old name and address, with a new process.

        A writer or compactor with a new number joins. Returns when it is ready; with ``wait=False`` at once.
        """
        self._begin(name, kill_at, pause_at)
        if wait:
            self.wait_ready(name)
        return self._running[name]

    def kill(self, name: str) -> None:
        """kill -9, and wait until it is gone."""
        self._running[name].kill()

    def restart(self, name: str) -> Process:
        """kill -9 and start."""
        self.kill(name)
        return self.start(name)

    def drain(self, name: str, timeout: float = READY_S) -> int:
        """SIGTERM; returns the exit code when it is gone."""
        return self._running[name].terminate(timeout)

    def pause(self, name: str) -> None:
        """SIGSTOP: its connections stay open, it does nothing."""
        self._running[name].pause()

    def resume(self, name: str) -> None:
        """SIGCONT."""
        self._running[name].resume()

    def wait_stopped(self, name: str) -> None:
        """For a part that stops itself at a step."""
        self._running[name].wait_stopped()

    def wait_dead(self, name: str, timeout: float = READY_S) -> None:
        """For a part that kills itself at a step."""
        self._running[name].wait_end(timeout)

    def move_clock(self, name: str, seconds: float) -> None:
        """From now on the wall clock of this part, and of its next processes, is ahead of the machine's; 0: is right again."""
        move_clock(self._clock(name), seconds)

    def hits(self, name: str) -> Counter[str]:
        """How often each named step was reached, by all processes of this name."""
        return hits(self._record(name))

    # --- the network and Redis ---

    def cut(self, one: str, other: str = ANYBODY, kind: CutKind = "reset") -> None:
        """No traffic between the two, whoever of them connects; without ``other`` nobody reaches ``one``'s server."""
        for server, source in self._ways(one, other):
            self._links[server].cut(source, kind)

    def heal(self, one: str, other: str = ANYBODY) -> None:
        """Takes back the cut of the same two."""
        for server, source in self._ways(one, other):
            self._links[server].heal(source)

    def redis(self, command: str) -> str:
        """The first line of Redis's answer, for example to "FLUSHALL"."""
        return ask(self._running["redis"].address, command)

    # --- how each part is started ---

    def _begin(self, name: str, kill_at: str, pause_at: str) -> None:
        before = self._running.get(name)
        if before is not None and before.is_alive:
            raise ValueError(f"{name} runs already")
        # A port that nobody else takes by chance, also while a part that is started again is away.
        listen = before.address if before is not None and before.address else f"127.0.0.1:{free_port()}"
        if self._with_links:
            # The ready line may name the advertised address, which is the link's own: what lies behind it has to be known before.
            link = self._links[name] = self._links.get(name) or Link(self._source_of)
            if not link.upstream[1]:
                link.upstream = ("127.0.0.1", int(listen.rpartition(":")[2]))
            listen = f"127.0.0.1:{link.upstream[1]}"
        if name == "redis":
            part = start_redis(self._log(name), int(listen.rpartition(":")[2]))
        else:
            flags = ["--record", str(self._record(name)), "--clock", str(self._clock(name))]
            flags += [word for flag, at in (("--kill-at", kill_at), ("--pause-at", pause_at)) if at for word in (flag, at)]
            kind = name.rpartition("-")[0]
            plants = (*self._plant.get(kind, ()), *self._plant.get(name, ()))
            flags += [word for plant in plants for word in ("--plant", plant)]
            arguments = [
                "--listen",
                listen,
                *self._arguments(name, kind),
                *self._options.get(kind, ()),
                *self._options.get(name, ()),
            ]
            command = [sys.executable, "-m", "support.stepping", f"headgate_{kind}", *flags, "--", *arguments]
            # Libraries read these before any import.
            program = f"headgate_{kind}" if ENVIRONMENT.items() <= self._env.items() else ""
            env = dict(self._env)
            if name in self.code:
                env["PYTHONPATH"], program = self.code[name], ""
            part = Process(name, command, self._log(name), env=env, program=program)
            if kill_at:
                part.expect_end()
        with self._turn:
            self._running[name] = part

    def _arguments(self, name: str, kind: str) -> Iterator[str]:
        if name in self._links:
            yield from ("--advertise", self._links[name].address)
        if kind == "coordinator":
            yield from ("--store", self.store, "--name", name, "--redis", f"redis://{self.address_of('redis')}/0")
        else:
            yield from ("--coordinator", self.address)

    def wait_ready(self, name: str) -> None:
        """Until it serves, after ``start`` with ``wait=False``."""
        if name != "redis":  # it was ready when it was started, and has no ready line
            self._running[name].wait_ready()

    def _ways(self, one: str, other: str) -> list[tuple[str, str]]:
        ways = [(one, other), (other, one)] if other else [(one, ANYBODY)]
        return [(server, source) for server, source in ways if server in self._links]

    def _source_of(self, port: int) -> str:
        with self._turn:
            processes = [(name, part.pid) for name, part in self._running.items() if part.is_alive]
        return owner_of_port(port, iter(processes)) or CLIENT

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def _record(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.steps"

    def _clock(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.clock"

    def _show_logs(self) -> None:
        for part in self._running.values():
            print(part.tail(), file=sys.stderr)

    def _end(self) -> None:
        for part in self._running.values():
            with contextlib.suppress(Died):
                part.kill()
        for link in self._links.values():
            link.close()
