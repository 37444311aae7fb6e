"""Small sends: what a row costs, in all processes, that comes alone, with 99 others or with 999, and on many channels at once."""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

import headgate
import headgate.aio
from bench.ingest.clients import in_threads
from bench.ingest.sections import cluster_with_table, processes_of
from bench.ingest.workload import BATCH_ROWS, prepare
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures, Goal
from bench.tables.usage import Moment

SECTION: Final = "small sends, many channels"
PER_CPU: Final = "rows/CPU-s"
ALONE: Final = "1 row, a message each"
BUFFERED: Final = "1 dict a call"
DICTS: Final = "1,000 dicts a call, at that rate"
CASES: Final = {
    "1 row a call": {"rows": 1, "dicts": False},
    "100 rows a call": {"rows": 100, "dicts": False},
    "1,000 rows a call": {"rows": 1000, "dicts": False},
    "1,000 dicts a call": {"rows": 1000, "dicts": True},
    BUFFERED: {"rows": 1, "dicts": True},
}
"""What ``by_threads`` sends."""
GOALS: Final = (
    Goal("1 row a call, Arrow: >= 5 k rows/s", SECTION, "1 row a call", "rows/s", 5e3),
    Goal("1 row a call, Arrow: >= 25 k rows per CPU-s", SECTION, "1 row a call", PER_CPU, 25e3),
    Goal("1 row, a message each: >= 25 k rows per CPU-s", SECTION, ALONE, PER_CPU, 25e3),
    Goal("100 rows a call, Arrow: >= 200 k rows per CPU-s", SECTION, "100 rows a call", PER_CPU, 2e5),
    Goal("rows that the SDK buffers cost <= 1.3 times a batch of dicts", SECTION, "1 dict, of 1,000 dicts", "times the CPU", 1.3),
)
_CHANNELS: Final = 100
_THREADS: Final = 4
_CALLS: Final = 64
"""With one row each between two looks at the clock."""


def small_sends(figures: Figures, rounds: int, seconds: float) -> None:
    """Each case has a cluster of its own, with one writer and checkpoints of a second."""
    feed = prepare(BATCH_ROWS, "uniform")
    figures.note(
        SECTION,
        f"{_CHANNELS} channels of one process, by {_THREADS} threads. '{ALONE}': by coroutines, each of which waits until its",
        f"row is received, so that the SDK can put no two of them together. '{DICTS}': since the rows of",
        "a checkpoint share what it costs.",
    )
    for _ in range(rounds):
        found = {case: _measured(figures, feed, case, "by_threads", seconds, **calls) for case, calls in CASES.items()}
        used = found[BUFFERED]
        rate = used["rows"] / used["wall"]
        batches = _measured(figures, feed, DICTS, "by_threads", seconds, rows=1000, dicts=True, rate=rate)
        times = used["cpu"] / used["rows"] / (batches["cpu"] / batches["rows"])
        figures.add(SECTION, "1 dict, of 1,000 dicts", "times the CPU", OURS, times)
        _measured(figures, feed, ALONE, "one_at_a_time", seconds)


def _measured(figures: Figures, feed: str, case: str, function: str, seconds: float, **given: float) -> Mapping[str, float]:
    """What ``function`` returns."""
    with cluster_with_table("1s", 1) as (cluster, _):
        arguments = {"address": cluster.address, "table": "events", "feed": feed, "seconds": seconds, "channels": _CHANNELS}
        processes = {part: processes_of(cluster, part) for part in cluster.parts}
        used: Mapping[str, float] = run_child(f"{__name__}:{function}", processes=processes, **arguments, **given)
    figures.add(SECTION, case, "rows/s", OURS, used["rows"] / used["wall"], more_is_better=True)
    figures.add(SECTION, case, PER_CPU, OURS, used["rows"] / used["cpu"], more_is_better=True)
    for part in ("client", *processes):
        figures.add(SECTION, case, f"us of a row, {part}", OURS, 1e6 * used[part] / used["rows"])
    return used


def by_threads(
    address: str,
    table: str,
    feed: str,
    seconds: float,
    channels: int,
    processes: Mapping[str, Sequence[int]],
    rows: int,
    dicts: bool,
    rate: float = math.inf,
) -> dict[str, float]:
    """Calls with so many ``rows``, or ``dicts``, each on the next one of a thread's channels, as fast as they are taken, and at
    most ``rate`` rows a second.

    Returns ``rows``, ``wall`` and seconds of CPU: all (``cpu``), ``client``, and by part of the cluster.
    """
    batch = pa.ipc.open_file(pa.memory_map(feed)).get_batch(0)
    plain = batch.to_pylist() if dicts else []
    counts = [0] * _THREADS
    with headgate.connect(address) as hg:
        opened = [hg.table(table).channel(f"small-{number}") for number in range(channels)]
        begin = _seconds(processes)
        began = time.perf_counter()

        def work(at: int) -> None:
            own = opened[at::_THREADS]
            while time.perf_counter() < began + seconds:
                for _ in range(max(1, _CALLS // rows)):
                    start = (at * BATCH_ROWS // _THREADS + counts[at]) % (BATCH_ROWS - rows)
                    if dicts:
                        own[counts[at] // rows % len(own)].upsert(plain[start : start + rows] if rows > 1 else plain[start])
                    else:
                        own[counts[at] // rows % len(own)].upsert(batch.slice(start, rows))
                    counts[at] += rows
                time.sleep(max(0.0, began + counts[at] * _THREADS / rate - time.perf_counter()))
            for channel in own:
                channel.flush("received")

        in_threads(work, _THREADS)
        opened[0].flush("queryable")
        for channel in opened:
            channel.flush("queryable")
        used = _used(begin, processes)
        for channel in opened:
            channel.close()
    return {"rows": sum(counts), **used}


def one_at_a_time(
    address: str, table: str, feed: str, seconds: float, channels: int, processes: Mapping[str, Sequence[int]]
) -> dict[str, float]:
    """A record batch of one row a call; its channel's next one follows when it is received. Returns as ``by_threads``."""
    return asyncio.run(_one_at_a_time(address, table, feed, seconds, channels, processes))


async def _one_at_a_time(
    address: str, table: str, feed: str, seconds: float, channels: int, processes: Mapping[str, Sequence[int]]
) -> dict[str, float]:
    batch = pa.ipc.open_file(pa.memory_map(feed)).get_batch(0)
    async with headgate.aio.connect(address) as hg:
        target = await hg.table(table)
        opened = [await target.channel(f"small-{number}").open() for number in range(channels)]
        begin = _seconds(processes)
        deadline = time.perf_counter() + seconds

        async def work(at: int) -> int:
            count = 0
            while time.perf_counter() < deadline:
                receipt = await opened[at].upsert(batch.slice((at * 163 + count) % BATCH_ROWS, 1))
                await receipt.wait("received")
                count += 1
            await opened[at].flush("queryable")
            return count

        rows = sum(await asyncio.gather(*(work(at) for at in range(channels))))
        used = _used(begin, processes)
        for channel in opened:
            await channel.close()
    return {"rows": rows, **used}


def _seconds(processes: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """Seconds of CPU up to now: of this process, ``client``, and of each part of the cluster. ``wall``: the clock."""
    own = Moment.now()
    return {"wall": own.wall, "client": own.cpu, **{part: Moment.now(pids).cpu - own.cpu for part, pids in processes.items()}}


def _used(begin: Mapping[str, float], processes: Mapping[str, Sequence[int]]) -> dict[str, float]:
    used = {name: seconds - begin[name] for name, seconds in _seconds(processes).items()}
    return {**used, "cpu": sum(seconds for name, seconds in used.items() if name != "wall")}
