"""What compaction costs a cluster that takes rows at the same time: the ingest bench's main run with and without compactors."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from bench.ingest.sections import check, cluster_with_table, processes_of
from bench.ingest.workload import BATCH_ROWS, prepare
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures
from bench.tables.usage import Moment
from headgate_tables.hudi import open_table
from support.cluster import Cluster

WITHOUT = "no compactor"
THROUGHPUT = "ingest, 8 x 8 buckets, 1s checkpoints, 2 writers"
FRESHNESS = "from send to queryable, 1s checkpoints"
RATES = (10_000, 50_000)
SHARE, TIMES = "% of the rate without", "times p99 without"
_WARM_UP = 8
_QUIET_S = 3.0


def throughput(figures: Figures, rows: int, rounds: int) -> None:
    """As many rows as the machine takes. CPU is counted until no compaction is open any more. hudi-rs reads the first tables."""
    feed = prepare(rows, "uniform")
    for number in range(rounds):
        checked = number == 0
        rates = {
            name: _loaded(figures, feed, name, compactors, checked=checked) for name, compactors in ((WITHOUT, 0), (OURS, 1))
        }
        figures.add(THROUGHPUT, "all rows", SHARE, OURS, 100 * rates[OURS] / rates[WITHOUT], more_is_better=True)


def _loaded(figures: Figures, feed: str, name: str, compactors: int, *, checked: bool) -> float:
    """Rows per CPU-second."""
    with cluster_with_table("1s", 2, compactors) as (cluster, url):
        pids = processes_of(cluster)
        arguments = {"address": cluster.address, "table": "events", "feed": feed, "channels": 4}
        before = _cpu(_compactors(cluster))
        used = run_child("bench.ingest.clients:load", warm_up=_WARM_UP, processes=pids, **arguments)
        loaded = Moment.now(pids)
        folder = Path(url.removeprefix("file://"))
        while compactors and open_compactions(folder):
            time.sleep(0.2)
        cpu = used["cpu"] + (Moment.now(pids) - loaded).cpu
        compacting = _cpu(_compactors(cluster)) - before
        logs, rewritten = _most_logs(url), _rewritten(folder)
        if checked:
            check(url, feed)
    rate: float = used["rows"] / cpu
    figures.add(THROUGHPUT, "all rows", "rows/CPU-s", name, rate, more_is_better=True)
    figures.add(THROUGHPUT, "all rows", "rows/s until queryable", name, used["rows"] / used["wall"], more_is_better=True)
    figures.add(THROUGHPUT, "all rows", "log files of the worst slice at the end", name, logs)
    if compactors:
        figures.add(THROUGHPUT, "all rows", "CPU-s of compactors", name, compacting)
        figures.add(THROUGHPUT, "all rows", "bytes of base files per log byte", name, rewritten)
    return rate


def freshness(figures: Figures, rounds: int, seconds: float) -> None:
    """Rows at a steady rate; the first tenth is not counted."""
    feed = prepare(BATCH_ROWS * (1 + int(max(RATES) * seconds) // BATCH_ROWS), "uniform")
    for _ in range(rounds):
        for rate in RATES:
            p99 = {name: _fresh(figures, feed, rate, seconds, name, compactors) for name, compactors in ((WITHOUT, 0), (OURS, 1))}
            figures.add(FRESHNESS, name_of_rate(rate), TIMES, OURS, p99[OURS] / p99[WITHOUT])


def name_of_rate(rate: int) -> str:
    """As it stands in the report."""
    return f"{rate // 1000} k rows/s"


def _fresh(figures: Figures, feed: str, rate: int, seconds: float, name: str, compactors: int) -> float:
    """Seconds from send to queryable, p99."""
    with cluster_with_table("1s", 2, compactors) as (cluster, url):
        arguments = {"address": cluster.address, "table": "events", "feed": feed, "rate": rate, "pieces": 100}
        took = run_child("bench.ingest.clients:freshness", seconds=seconds, **arguments)["queryable"]
        compactions = len(list(Path(url.removeprefix("file://")).glob(".hoodie/timeline/*.compaction.requested")))
    values = sorted(took[len(took) // 10 :])
    p99: float = values[int(len(values) * 0.99)]
    figures.add(FRESHNESS, name_of_rate(rate), "s, p50", name, values[len(values) // 2])
    figures.add(FRESHNESS, name_of_rate(rate), "s, p99", name, p99)
    if compactors:
        figures.add(FRESHNESS, name_of_rate(rate), "compactions planned", name, compactions)
    return p99


def open_compactions(folder: Path) -> list[str]:
    """Instants that are planned and not completed, once that has not changed for a while."""
    found = _open(folder)
    quiet = time.monotonic() + _QUIET_S
    while not found and time.monotonic() < quiet:
        time.sleep(0.2)
        found = _open(folder)
    return found


def _open(folder: Path) -> list[str]:
    names = [file.name for file in (folder / ".hoodie" / "timeline").iterdir()]
    completed = {name.partition("_")[0] for name in names if name.endswith(".commit")}
    return [name.partition(".")[0] for name in names if name.endswith(".compaction.requested") and name[:17] not in completed]


def _compactors(cluster: Cluster) -> list[int]:
    named = [part for name, part in cluster.parts.items() if name.startswith("compactor")]
    return [
        pid for part in named for pid in (part.pid, *(child.pid for child in psutil.Process(part.pid).children(recursive=True)))
    ]


def _cpu(pids: Sequence[int]) -> float:
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def _most_logs(url: str) -> int:
    with open_table(url) as table:
        return max(len(group.slices()[-1].logs) for group in table.file_groups())


def _rewritten(folder: Path) -> float:
    logs, bases = data_bytes(folder)
    return bases / logs


def data_bytes(folder: Path) -> tuple[int, int]:
    """Of all log files and of all base files that lie there, old ones too. One with several names counts once."""
    files = {inode: (name, size) for name, size, inode in _data_files(folder)}.values()
    bases = sum(size for name, size in files if name.endswith(".parquet"))
    return sum(size for _, size in files) - bases, bases


def _data_files(folder: Path) -> Iterator[tuple[str, int, int]]:
    for file in folder.rglob("*"):
        if ".hoodie" not in file.parts and (".log." in file.name or file.suffix == ".parquet"):
            found = file.stat()
            yield file.name, found.st_size, found.st_ino
