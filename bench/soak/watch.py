"""What each process of the cluster holds while it runs: memory, tasks, threads, file descriptors."""

import time
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

import psutil

from support.cluster import Cluster
from support.lookout import Lookout

PERIOD_S = 5.0
YOUNG_S = 60.0
"""A process grows while it starts; what it holds before that age says nothing."""


@dataclass(frozen=True, slots=True)
class Sample:
    """``at``: seconds since the start of the run; ``rss``: bytes; ``tasks``: of the event loop, -1 when it did not answer."""

    at: float
    rss: int
    tasks: int
    threads: int
    files: int


class Watch:
    """Samples until ``stop``. ``ports``: where each part's metrics are."""

    def __init__(self, cluster: Cluster, ports: dict[str, int]) -> None:
        self.samples: dict[str, list[Sample]] = defaultdict(list)
        self._cluster = cluster
        self._ports = ports
        self._begin = time.monotonic()
        self._lookout = Lookout("watch", self._look, PERIOD_S)

    def stop(self) -> None:
        self._lookout.stop()

    def growth(self, name: str) -> dict[str, tuple[float, float]]:
        """Of each figure the median in the first third and in the last third of the run."""
        samples = self.samples[name]
        third = max(1, len(samples) // 3)
        first, last = samples[:third], samples[-third:]
        figures = {"rss": 2**20, "tasks": 1, "threads": 1, "files": 1}
        return {
            figure: (
                median(getattr(sample, figure) for sample in first) / unit,
                median(getattr(sample, figure) for sample in last) / unit,
            )
            for figure, unit in figures.items()
        }

    def _look(self) -> None:
        for name in self._ports:
            try:
                self._sample(name)
            except (psutil.NoSuchProcess, psutil.AccessDenied, IndexError):
                continue  # it was killed just now

    def _sample(self, name: str) -> None:
        parent = psutil.Process(self._cluster.part(name).pid)
        process = (parent.children(recursive=True) or [parent])[-1]
        if time.time() - process.create_time() < YOUNG_S:
            return
        at = time.monotonic() - self._begin
        tasks = _tasks(self._ports[name])
        self.samples[name].append(Sample(at, process.memory_info().rss, tasks, process.num_threads(), process.num_fds()))


def _tasks(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return -1
    return next((int(float(line.split()[1])) for line in text.splitlines() if line.startswith("headgate_event_loop_tasks ")), -1)
