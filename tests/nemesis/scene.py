"""The cluster, its producers and its disk, as faults see them; and waiting, in which the strike's kill happens."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import headgate
from headgate.status import TableStatus
from nemesis.commits import CommitWatch
from nemesis.places import Place
from nemesis.schedule import OWNER, Parts, Strike
from support.cluster import Cluster
from support.processes import Died
from support.producers import Producers

LONGEST_GAP_S = 15.0
"""Most that a table may be without a commit beyond a fault's own end."""
LOOK_S = 0.25


class NotWell(Exception):
    """Something is not as it has to be, and the fault ends here."""


@dataclass(slots=True)
class Scene:
    """``url``: of the table that is judged. ``watch`` sees its commits. ``address``: of all coordinators, also while one starts.

    ``producers`` send at a steady rate; each of ``bursts`` sends as fast as it can and ends.
    """

    cluster: Cluster
    producers: Producers
    bursts: Producers
    parts: Parts
    place: Place
    url: str
    watch: CommitWatch
    address: str
    kills: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    _due: tuple[float, str] | None = None
    _started: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The table's."""
        return self.url.rpartition("/")[2]

    @property
    def folder(self) -> Path:
        """Where the table's content lies as files."""
        return self.place.files / self.name

    def named(self, part: str) -> str:
        """The name of a part; of who owns the table just now, or of the first coordinator while nobody does."""
        if part != OWNER:
            return part
        with headgate.connect(self.address, timeout=60, wait=60) as hg:
            owners = [table.owner for table in hg.status().tables if table.name == self.name]
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

    def wait_for(self, what: str, seen: Callable[[], bool], seconds: float) -> None:
        """Until it is seen. Raises NotWell with ``what`` after ``seconds``."""
        until = time.monotonic() + seconds
        while not seen():
            if time.monotonic() > until:
                raise NotWell(f"within {seconds:.0f} s not: {what}")
            self.wait(LOOK_S)

    def goes_on(self, when: str) -> None:
        """Raises NotWell if the table has no commit soon. ``when``: for people."""
        now = time.monotonic()
        self.wait_for(f"a commit, {when}", lambda: bool(self.watch.seen) and self.watch.seen[-1] > now, LONGEST_GAP_S)

    def told(self) -> list[TableStatus]:
        """What each coordinator that answers says of the table; its owner knows the alarms."""
        found: list[TableStatus] = []
        for coordinator in self.address.split(","):
            try:
                with headgate.connect(coordinator, timeout=2, wait=2) as hg:
                    found += hg.status(self.name).tables
            except headgate.RetryLater:
                continue
        return found

    def command(self, line: str) -> None:
        """As an operator types it, ``headgate table slice list t``. Raises NotWell if it fails."""
        words = [*line.split()[1:], "--connect", self.address, "--timeout", "60"]
        done = subprocess.run([sys.executable, "-m", "headgate_cli", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotWell(f"`{line}` ended with {done.returncode}: {done.stderr}")

    def drain(self, name: str) -> None:
        """SIGTERM, and until it is gone."""
        if code := self.cluster.drain(name):
            self.findings.append(f"{name} drained with {code}\n{self.cluster.part(name).tail(30)}")

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
        files = [Path(folder, name) for folder, name in _files(self.folder) if ".log." in name]
        files.sort(key=lambda file: (file.stat().st_mtime_ns, file))
        return chance.choice(files[-20:])


def _files(folder: Path) -> Sequence[tuple[str, str]]:
    return [(where, name) for where, _, names in os.walk(folder) if ".hoodie" not in where for name in names]
