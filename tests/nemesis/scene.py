"""The cluster, its producers and its disk, as faults see them; and waiting, in which the strike's kill happens."""

import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import headgate
from nemesis.schedule import OWNER, Parts, Strike
from support.cluster import Cluster
from support.processes import Died
from support.producers import Producers


@dataclass(slots=True)
class Scene:
    """``disk``: the file system that holds the tables and nothing else; ``table``: the folder of the one that is judged.

    ``producers`` send at a steady rate; each of ``bursts`` sends as fast as it can and ends.
    """

    cluster: Cluster
    producers: Producers
    bursts: Producers
    parts: Parts
    disk: Path
    table: Path
    kills: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    _due: tuple[float, str] | None = None
    _started: list[str] = field(default_factory=list)

    def named(self, part: str) -> str:
        """The name of a part; of who owns the table just now, or of the first coordinator while nobody does."""
        if part != OWNER:
            return part
        with headgate.connect(self.cluster.address, timeout=60, wait=60) as hg:
            owners = [table.owner for table in hg.status().tables if table.name == self.table.name]
        return next((owner for owner in owners if owner), self.parts.coordinators[0])

    def begin(self, strike: Strike) -> None:
        """From now on ``wait`` kills whom the strike wants killed, at its time."""
        self._due = (time.monotonic() + strike.kill_after, strike.kill) if strike.kill else None
        self._started = []

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            due, victim = self._due or (until, "")
            if due < until:
                time.sleep(max(0.0, due - time.monotonic()))
                self._due = None
                self.kill(victim)
            else:
                time.sleep(left)

    def kill(self, victim: str) -> None:
        """kill -9, and a new process at once, which may take its time."""
        self.kills.append(victim)
        if victim in self.parts.producers:
            self.producers.kill(victim)
            self.producers.start(victim, wait=False)
        else:
            self.cluster.kill(victim)
            self.start(victim)

    def start(self, name: str) -> None:
        self.cluster.start(name, wait=False)
        self._started.append(name)

    def end(self) -> None:
        """The fault is over. Who was started in it is ready now, or is started again: it may have given up in the fault."""
        self.wait(max(0.0, (self._due[0] - time.monotonic()) if self._due else 0.0) + 0.01)
        for name in self._started:
            try:
                self.cluster.wait_ready(name)
            except Died:
                self.cluster.part(name).expect_end()
                self.cluster.start(name)
        for name in [*self.parts.services, "redis"]:
            if not self.cluster.part(name).is_alive:
                self.findings.append(f"{name} ended by itself\n{self.cluster.part(name).tail(30)}")
                self.cluster.part(name).expect_end()
                self.cluster.start(name)
        for name in self.parts.producers:
            if not self.producers.part(name).is_alive:
                self.findings.append(f"{name} gave up\n{self.producers.part(name).tail(30)}")
                self.producers.start(name, wait=False)

    def log_file(self, chance: random.Random) -> Path:
        """One of the table's newest log files that holds some rows."""
        files = [Path(folder, name) for folder, name in _files(self.table) if ".log." in name]
        files.sort(key=lambda file: (file.stat().st_mtime_ns, file))
        return chance.choice(files[-20:])


def _files(folder: Path) -> Sequence[tuple[str, str]]:
    return [(where, name) for where, _, names in os.walk(folder) if ".hoodie" not in where for name in names]
