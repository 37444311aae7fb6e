"""Thousands of small commits with updates on a Zipf law into a cluster that compacts, cleans and archives by itself.

A third of the way in, all compactors go for some minutes, then they come back; at the end the table is compared with an oracle.
"""

import argparse
import asyncio
import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import headgate
import headgate.aio
from bench.ingest.workload import BATCH_ROWS, oracle, prepare
from bench.soak.watch import Watch
from bench.tables.progress import say
from bench.tables.scratch import scratch_folder
from bench.upkeep.gauges import Gauge, Gauges, look, opening_seconds, orphans
from demo.ports import free_port
from headgate.maintenance import Maintenance
from headgate_tables.hudi import open_table
from support.cluster import Cluster
from support.events import EVENTS_SCHEMA
from support.readers import read_by_hudi_rs, without_meta

PIECE = 1_024
TELL_S = 20
SLOWER = 1.2
"""Most that opening the table may cost at the end, against commit 200."""
GROWTH = 1.15
COMPACTOR_MIB = 512
SETTINGS = {
    "hoodie.compact.inline.max.delta.commits": "20",
    "hoodie.clean.commits.retained": "10",
    "headgate.clean.min.age": "5",
    "headgate.log.retire.after": "20",
    "headgate.slice.max.log.files": "100",
}


def main() -> None:
    options = _options()
    ports = {name: free_port() for name in ("coordinator-1", "writer-1", "writer-2", "compactor-1")}
    flags = {"coordinator": ["--checkpoint-interval", f"{options.interval}s", "--checkpoint-min-interval", "100ms"]}
    flags |= {name: ["--metrics-listen", f"127.0.0.1:{port}"] for name, port in ports.items() if name != "coordinator-1"}
    flags["coordinator-1"] = [*flags.pop("coordinator"), "--metrics-listen", f"127.0.0.1:{ports['coordinator-1']}"]
    feed = prepare(math.ceil(options.rows / BATCH_ROWS) * BATCH_ROWS, "zipf")
    with scratch_folder("upkeep") as folder:
        with Cluster(folder / "cluster", writers=2, compactors=2, options=flags) as cluster:
            url = _create(cluster.address, options)
            run = _run(cluster, url, feed, options, Watch(cluster, ports))
        verdict = _judge(url, feed, run)
    sys.exit(0 if verdict else 1)


def _create(address: str, options: argparse.Namespace) -> str:
    with headgate.connect(address) as hg:
        layout = {"key": ["event_id"], "ordering": "version", "partition_by": ["dt"], "buckets": options.buckets}
        table = hg.create_table("upkeep", EVENTS_SCHEMA, **layout)
    asyncio.run(_configure(address, {**SETTINGS, **dict(each.split("=", 1) for each in options.set)}))
    return table.info.url


async def _configure(address: str, settings: dict[str, str]) -> None:
    async with headgate.aio.connect(address, timeout=60) as hg:
        await Maintenance(hg, "upkeep").configure(settings)


class _Feeder(threading.Thread):
    """Sends the feed in small pieces at a rate, until told to stop; what it sent is then queryable.

    At the feed's end it begins anew: those rows are not newer than the ones that are there, so the end state stays the feed's.
    """

    def __init__(self, address: str, feed: str, rate: float) -> None:
        super().__init__(name="feeder")
        self.sent = 0
        self.failed: BaseException | None = None
        self._address, self._feed, self._rate = address, feed, rate
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            self._send()
        except BaseException as error:  # noqa: BLE001 - raised again by who joins
            self.failed = error

    def _send(self) -> None:
        batches = pa.ipc.open_file(pa.memory_map(self._feed))
        total = batches.num_record_batches * BATCH_ROWS
        begin = time.monotonic()
        with headgate.connect(self._address, timeout=3600) as hg, hg.table("upkeep").channel("feeder") as channel:
            while not self._ended.is_set():
                time.sleep(max(0.0, begin + self.sent / self._rate - time.monotonic()))
                at = self.sent % total
                channel.upsert(batches.get_batch(at // BATCH_ROWS).slice(at % BATCH_ROWS, PIECE))
                self.sent += PIECE
                # What a stopped table keeps waiting must not be made up for in a rush.
                begin = max(begin, time.monotonic() - self.sent / self._rate - 5)
            channel.flush("queryable")

    def finish(self) -> None:
        self._ended.set()
        self.join()
        if self.failed is not None:
            raise self.failed


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured. ``early``, ``late``: seconds to open the table at commit 200 and at the end."""

    sent: int
    commits: int
    seen: list[Gauge]
    watch: Watch
    early: float
    late: float


def _run(cluster: Cluster, url: str, feed: str, options: argparse.Namespace, watch: Watch) -> Run:
    feeder, gauges = _Feeder(cluster.address, feed, options.rate), Gauges(url)
    feeder.start()
    counted = _Commits(url)
    try:
        _until(lambda: counted.count() >= 200, feeder)
        early = opening_seconds(url)
        _until(lambda: counted.count() >= options.commits // 3, feeder)
        say(f"{counted.count():,} commits: all compactors stop for {options.without:g} minutes")
        for name in ("compactor-1", "compactor-2"):
            cluster.kill(name)
        stop = time.monotonic() + options.without * 60
        _until(lambda: time.monotonic() >= stop, feeder, counted)
        for name in ("compactor-1", "compactor-2"):
            cluster.start(name)
        say(f"{counted.count():,} commits: compactors are back")
        _until(lambda: counted.count() >= options.commits, feeder, counted)
        feeder.finish()
        time.sleep(30)
        late = opening_seconds(url)
    finally:
        gauges.stop()
        watch.stop()
    return Run(feeder.sent, counted.count(), gauges.seen, watch, early, late)


class _Commits:
    """Commits so far: the timeline forgets archived ones, so new ones are counted as they come."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._newest = ""
        self._count = 0

    def count(self) -> int:
        with open_table(self._url) as table:
            new = [each.completion for each in table.commits() if each.action == "deltacommit" and each.completion > self._newest]
        self._newest = max([self._newest, *new])
        self._count += len(new)
        return self._count


def _until(reached: Callable[[], bool], feeder: _Feeder, counted: _Commits | None = None) -> None:
    told = time.monotonic()
    while not reached():
        if time.monotonic() - told >= TELL_S:
            told = time.monotonic()
            say(f"{feeder.sent:,} rows are sent")
        if not feeder.is_alive():
            feeder.finish()
            raise AssertionError("the feeder ended by itself")
        if counted is not None:
            counted.count()
        time.sleep(1)


def _judge(url: str, feed: str, run: Run) -> bool:
    """Prints each figure with its bound."""
    say("compacting, verifying and comparing the table")
    folder = Path(url.removeprefix("file://"))
    settings = open_table(url).settings
    with open_table(url, take_over=True) as table:
        table.tidy()
        table.compact()
        table.tidy()
        left = orphans(folder)
        checked = table.verify()
    end = look(url)
    rows = _expected(feed, run.sent)
    found = without_meta(read_by_hudi_rs(folder)).select(EVENTS_SCHEMA.names).sort_by("event_id")
    files, instants = max(g.log_files for g in run.seen), max(g.instants for g in run.seen)
    verdicts = {
        f"log files of a slice: at most {files}, limit {settings.max_log_files}": files <= settings.max_log_files,
        f"active timeline: at most {instants}, setting {settings.archive_max}": instants <= settings.archive_max,
        f"opening: {run.early * 1000:.1f} ms at commit 200, {run.late * 1000:.1f} ms at the end": run.late <= run.early * SLOWER,
        f"orphaned files: {len(left)} {left[:5]}": not left,
        f"verify: {len(checked.findings)} findings {checked.findings[:3]}": checked.ok,
        f"rows: {found.num_rows:,} by hudi-rs, oracle {rows.num_rows:,}": found.cast(rows.schema).equals(rows),
    }
    for name, (first, last) in _memory(run.watch).items():
        # A compactor's memory grows with the slices, up to its bound; the others have nothing that grows.
        most = COMPACTOR_MIB if name.startswith("compactor") else first * GROWTH + 5
        verdicts[f"{name}: {first:.0f} -> {last:.0f} MiB, at most {most:.0f}"] = last <= most
    for text, good in verdicts.items():
        _say(f"{'ok  ' if good else 'FAIL'} {text}")
    _say(f"     {run.commits:,} commits, {run.sent:,} rows; at the end {end.log_files} log files in the worst slice")
    some = run.seen[:: max(1, len(run.seen) // 40)]
    _say("     log files of the worst slice over time: " + " ".join(str(each.log_files) for each in some))
    return all(verdicts.values())


def _expected(feed: str, sent: int) -> pa.Table:
    """The end state after the first ``sent`` rows: of each key the row with the largest version, by key."""
    import duckdb

    if sent >= pa.ipc.open_file(pa.memory_map(feed)).num_record_batches * BATCH_ROWS:
        return pa.ipc.open_file(pa.memory_map(oracle(feed))).read_all()
    handed_in = pa.ipc.open_file(pa.memory_map(feed)).read_all().slice(0, sent)  # noqa: F841 - DuckDB finds it by its name
    query = "FROM handed_in QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY version DESC) = 1 ORDER BY event_id"
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    end: pa.Table = connection.sql(query).to_arrow_table().cast(EVENTS_SCHEMA)
    return end


def _memory(watch: Watch) -> dict[str, tuple[float, float]]:
    return {name: watch.growth(name)["rss"] for name, samples in watch.samples.items() if len(samples) > 2}


def _say(text: str) -> None:
    print(text, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task bench upkeep", description=__doc__)
    parser.add_argument("--commits", type=int, default=5_000)
    parser.add_argument("--interval", type=float, default=0.25, help="seconds between checkpoints")
    parser.add_argument("--rate", type=float, default=4_000, help="rows a second")
    parser.add_argument(
        "--rows",
        type=int,
        default=16_000_000,
        help="rows of the feed, in whole batches, prepared before the run; it is sent again when they are too few",
    )
    parser.add_argument("--buckets", type=int, default=1, help="file groups of each of 8 partitions")
    parser.add_argument("--without", type=float, default=10, help="minutes without compactors")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the table")
    return parser.parse_args()


if __name__ == "__main__":
    main()
