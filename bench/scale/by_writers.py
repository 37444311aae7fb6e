"""CPU of the whole cluster for each row, with more and more writers at one total rate."""

import time
from dataclasses import dataclass
from pathlib import Path

from bench.scale.readings import Reading, read
from bench.tables.scratch import scratch_folder
from demo.ports import free_port
from support.cluster import Cluster
from support.producers import Producers, create_table
from support.workload import Workload

TABLE = "scale"
NAMES = ("one", "two", "three", "four")
BATCH_ROWS = 500
WARM_UP_S = 5.0
_WORKLOAD = Workload(event_time=False, partitions=8)


@dataclass(frozen=True, slots=True)
class ByWriters:
    """``rows`` were sent in ``seconds``; ``used``: CPU of the cluster meanwhile."""

    writers: int
    rows: int
    seconds: float
    used: Reading

    def micros(self, kind: str = "") -> float:
        """Microseconds of CPU a row: of all processes, or of one kind of part."""
        return 1e6 * (self.used.cpu.get(kind, 0.0) if kind else self.used.total_cpu) / self.rows


def by_writers(writers: int, rate: float, seconds: float, interval: float) -> ByWriters:
    """A new cluster with so many writers and a table of 8 partitions with 8 buckets, so that each writer has some."""
    metrics = f"127.0.0.1:{free_port()}"
    flags = {"coordinator": ["--checkpoint-interval", f"{interval}s", "--metrics-listen", metrics]}
    with scratch_folder("scale") as folder, Cluster(folder / "cluster", writers=writers, options=flags) as cluster:
        create_table(cluster.address, TABLE, _WORKLOAD, buckets=8, limited=False)
        with _producers(cluster, folder, rate) as producers:
            for name in NAMES:
                producers.start(name)
            for name in NAMES:
                producers.wait_acked(name, 1)
            time.sleep(WARM_UP_S)
            rows, before, began = _sent(producers), read(cluster, metrics), time.monotonic()
            time.sleep(seconds)
            rows, used, took = _sent(producers) - rows, read(cluster, metrics) - before, time.monotonic() - began
            producers.finish(600)
    return ByWriters(writers, rows, took, used)


def _producers(cluster: Cluster, folder: Path, rate: float) -> Producers:
    each = rate / len(NAMES)
    return Producers(cluster.address, TABLE, _WORKLOAD, folder, rows=0, rate=each, batch=BATCH_ROWS, timeout=120)


def _sent(producers: Producers) -> int:
    return sum(history.attempts[-1].sent for history in producers.histories())
