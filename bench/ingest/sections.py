"""What is measured of the cluster, section by section; each case's first table is read back and compared in the run."""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median

import psutil
import pyarrow as pa
from hudi import HudiReadOptions, HudiTable

import headgate
from bench.ingest.clients import connect
from bench.ingest.workload import oracle, prepare, split
from bench.tables.child import run_child
from bench.tables.compare import differences
from bench.tables.contenders.contender import KEY, ORDERING, PARTITION
from bench.tables.figures import OURS, Figures
from bench.tables.progress import say
from bench.tables.scratch import scratch_folder
from bench.tables.usage import peak_bytes
from headgate_tables.commitlog.times import parse_time
from headgate_tables.hudi import open_table
from support.cluster import Cluster
from support.events import EVENTS_SCHEMA

BUCKETS = 8
WARM_UP = 8
_CLIENTS = "bench.ingest.clients"


@contextmanager
def cluster_with_table(
    interval: str,
    writers: int,
    compactors: int = 0,
    options: Mapping[str, Sequence[str]] | None = None,
    login: Mapping[str, str] | None = None,
    plant: Mapping[str, tuple[str, ...]] | None = None,
    shaped: pa.Schema | None = None,
) -> Iterator[tuple[Cluster, str]]:
    """A fresh cluster of one coordinator, and the URL of its table ``events``. ``options``: further flags by kind of part or by
    part. ``login``: what clients need besides the address (``clients.connect``). ``plant``: as of ``Cluster``. ``shaped``: the
    table's columns, with the key ``id`` alone, instead of those of events.
    """
    with scratch_folder("ingest") as folder:
        given = dict(options or {})
        given["coordinator"] = ["--checkpoint-interval", interval, *given.get("coordinator", ())]
        say(f"a cluster of {writers} writer{'s' * (writers > 1)} and {compactors} compactors, {interval} checkpoints")
        with Cluster(folder / "cluster", writers=writers, compactors=compactors, options=given, plant=plant) as cluster:
            with connect(cluster.address, **(login or {})) as hg:
                if shaped is not None:
                    hg.create_table("events", shaped, key="id", buckets=BUCKETS)
                else:
                    hg.create_table("events", EVENTS_SCHEMA, key=KEY, ordering=ORDERING, partition_by=PARTITION, buckets=BUCKETS)
            yield cluster, f"{cluster.store}/events"


def processes_of(cluster: Cluster, *parts: str) -> list[int]:
    """All processes of these parts of the cluster; without any, of all, Redis too."""
    return [child.pid for name in parts or cluster.parts for child in _family(cluster.parts[name].pid)]


def _family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def throughput(
    figures: Figures, rows: Mapping[str, int], rounds: int, cases: Sequence[tuple[str, int, str]], *, spark: bool
) -> None:
    """The cluster and its peers in turn; hudi-rs reads the tables of the first round. ``rows``: of the feed, by interval.
    ``cases``: interval, writers and law of the updates. ``spark``: one round of Hudi on Spark, too.
    """
    for number in range(rounds):
        for interval, writers, law in cases:
            _throughput(figures, rows[interval], interval, writers, law, checked=number == 0)
        _peers(figures, rows, spark=spark and number == 0)


def _throughput(figures: Figures, rows: int, interval: str, writers: int, law: str, *, checked: bool) -> None:
    feed = prepare(rows, law)
    with cluster_with_table(interval, writers) as (cluster, url):
        pids = processes_of(cluster)
        arguments = {"address": cluster.address, "table": "events", "feed": feed, "channels": 2 * writers}
        used = run_child(f"{_CLIENTS}:load", warm_up=WARM_UP, processes=pids, **arguments)
        peak = max(peak_bytes([pid]) - peak_bytes() for pid in pids)
        if checked:
            check(url, feed)
        lengths = _checkpoint_seconds(url)
    figure = f"{interval} checkpoints, {writers} writer{'s' * (writers > 1)}, {law}"
    figures.add("sustained upserts", figure, "rows/s", OURS, used["rows"] / used["wall"], more_is_better=True)
    figures.add("sustained upserts", figure, "rows/CPU-s", OURS, used["rows"] / used["cpu"], more_is_better=True)
    if lengths:
        figures.add("sustained upserts", figure, "s a round, p50", OURS, median(lengths))
    figures.add("sustained upserts", figure, "client, % of CPU", OURS, 100 * used["client_cpu"] / used["cpu"])
    figures.add("sustained upserts", figure, "MB peak, largest process", OURS, peak / 1e6)


def _checkpoint_seconds(url: str) -> list[float]:
    """Seconds between the commits of a table, but for the last one, which a client asks for at its end."""
    times = [parse_time(commit.completion) for commit in open_table(url).commits()][:-1]
    return [(after - before) / 1000 for before, after in pairwise(times)]


def check(url: str, feed: str) -> None:
    """Raises AssertionError unless hudi-rs, which shares no code with us, reads what DuckDB says of the feed."""
    names = EVENTS_SCHEMA.names
    found = pa.Table.from_batches(HudiTable(url).read(HudiReadOptions(projection=names)))
    wrong = differences(found, oracle(feed))
    if wrong:
        raise AssertionError(f"the table is not what was sent: {wrong}")


def freshness(figures: Figures, rounds: int, seconds: float) -> None:
    """10 k rows a second with checkpoints of one second."""
    feed = prepare(20 * 10_000 * 10, "uniform")
    for _ in range(rounds):
        with cluster_with_table("1s", 2) as (cluster, _):
            arguments = {"address": cluster.address, "table": "events", "feed": feed, "rate": 10_000, "pieces": 100}
            took = run_child(f"{_CLIENTS}:freshness", seconds=seconds, **arguments)
        for level, values in took.items():
            values = sorted(values[len(values) // 10 :])
            for name, share in (("p50", 0.5), ("p99", 0.99), ("worst", 1.0)):
                value = values[min(int(len(values) * share), len(values) - 1)]
                figures.add("from send, 10 k rows/s, 1 s checkpoints", level, f"s, {name}", OURS, value)


def overload(figures: Figures, rounds: int, seconds: float) -> None:
    """As much as clients can send to one writer, from 32 channels. No longer than slices have room without a compactor: from half
    of their limits on the owner takes rows slower.
    """
    feed = prepare(2_000_000, "uniform")
    for _ in range(rounds):
        with cluster_with_table("10s", 1, options={"writer": ["--memory-limit", "512MiB"]}) as (cluster, _):
            pids = [child.pid for child in _family(cluster.part("writer-1").pid)]
            arguments = {"address": cluster.address, "table": "events", "feed": feed, "channels": 32, "seconds": seconds}
            used = run_child(f"{_CLIENTS}:overload", **arguments)
            peak = max(peak_bytes([pid]) - peak_bytes() for pid in pids)
        figures.add("overload", "32 channels, one writer", "rows/s", OURS, used["rows"] / used["wall"], more_is_better=True)
        figures.add("overload", "32 channels, one writer", "MiB peak of the writer", OURS, peak / 2**20)


def recovery(figures: Figures, times: int) -> None:
    """From kill -9 to the first new commit, while a client sends; the part is started again at once, as a supervisor does."""
    feed = prepare(20 * 10_000 * 10, "uniform")
    batches = pa.ipc.open_file(pa.memory_map(feed))
    for victim in ("writer-1", "coordinator-1"):
        took: list[float] = []
        with (
            cluster_with_table("1s", 2) as (cluster, _),
            headgate.connect(cluster.address) as hg,
            hg.table("events").channel("steady") as channel,
        ):
            for number in range(times):
                batch = batches.get_batch(number % batches.num_record_batches)
                channel.upsert(batch.slice(0, 1000))
                channel.flush("durable")
                took.append(_recovered(cluster, victim, channel, batch.slice(1000, 1000)))
                say(f"kill {number + 1} of {times} of {victim}: {took[-1]:.2f} s")
        part = victim.partition("-")[0]
        figures.add("first new commit after kill -9", part, "s, p50", OURS, median(took))
        figures.add("first new commit after kill -9", part, "s, p99", OURS, sorted(took)[math.ceil(0.99 * len(took)) - 1])


def _recovered(cluster: Cluster, victim: str, channel: headgate.Channel, rows: pa.RecordBatch) -> float:
    cluster.kill(victim)
    begin = time.perf_counter()
    receipt = channel.upsert(rows)
    cluster.start(victim, wait=False)
    receipt.wait("durable")
    took = time.perf_counter() - begin
    cluster.wait_ready(victim)
    return took


def idle(figures: Figures, seconds: float) -> None:
    """CPU of a cluster that nobody uses, one table, two writers."""
    with cluster_with_table("1s", 2) as (cluster, _):
        time.sleep(3)
        processes = [psutil.Process(pid) for pid in processes_of(cluster)]
        before = sum(sum(process.cpu_times()[:2]) for process in processes)
        time.sleep(seconds)
        used = sum(sum(process.cpu_times()[:2]) for process in processes) - before
    figures.add("idle", "one coordinator, two writers, Redis", "% of a core", OURS, 100 * used / seconds)


def _peers(figures: Figures, rows: Mapping[str, int], *, spark: bool) -> None:
    """PyPaimon with its Rust core, a library without a server, in one process and in two with half of the partitions each; Hudi
    on Spark, one session of two threads, whose rows are few because it is slow.
    """
    if python := os.environ.get("HEADGATE_PAIMON_PYTHON"):
        paimon = Peer("PyPaimon", "bench.tables.contenders.paimon:Paimon", python)
        for interval in rows:
            for writers in (1, 2):
                _peer(figures, paimon, rows[interval], interval, writers)
    else:
        say("PyPaimon is not here")
    if spark:
        hudi_on_spark = Peer("Hudi on Spark", "bench.tables.contenders.spark:HudiSpark", os.environ["HEADGATE_SPARK_PYTHON"])
        for interval in rows:
            _peer(figures, hudi_on_spark, 600_000, interval, 1)


@dataclass(frozen=True, slots=True)
class Peer:
    """A library, ``module:class`` of it, and the interpreter that has it."""

    name: str
    contender: str
    python: str


def _peer(figures: Figures, peer: Peer, rows: int, interval: str, writers: int) -> None:
    feed = prepare(rows, "uniform")
    feeds = split(feed, writers) if writers > 1 else [feed]
    wanted = oracle(feed)
    with scratch_folder(peer.name.lower().replace(" ", "-")) as scratch, ThreadPoolExecutor(writers) as pool:
        table = {"contender": peer.contender, "folder": str(scratch / "data")}
        if writers > 1:
            run_child("bench.ingest.library_run:create", peer.python, feed=feed, **table)
        names = [f"{peer.name} {number}" if writers > 1 else peer.name for number in range(1, writers + 1)]
        seconds = float(interval.removesuffix("s"))
        run = partial(run_child, "bench.ingest.library_run:run", peer.python, interval=seconds, **table)
        used = list(pool.map(lambda name, part: run(name=name, feed=part), names, feeds))
        wrong = run_child("bench.ingest.library_run:compare", peer.python, feed=feed, oracle=wanted, **table)
    if any(wrong.values()):
        raise AssertionError(f"{peer.name}: the table is not what was sent: {wrong}")
    measured = [sum(count for count, _ in each["rounds"]) for each in used]
    figure = f"{interval} checkpoints, {writers} writer{'s' * (writers > 1)}, uniform"
    speed = sum(count / each["wall"] for count, each in zip(measured, used, strict=True))
    figures.add("sustained upserts", figure, "rows/s", peer.name, speed, more_is_better=True)
    per_cpu = sum(measured) / sum(each["cpu"] for each in used)
    figures.add("sustained upserts", figure, "rows/CPU-s", peer.name, per_cpu, more_is_better=True)
    # The last round is what was left of the feed.
    whole = [seconds for each in used for _, seconds in each["rounds"][:-1]]
    if whole:
        figures.add("sustained upserts", figure, "s a round, p50", peer.name, median(whole))
