"""`./task bench soak`: see `--help`."""

import argparse
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator

from bench.soak.counting import count_rows
from bench.soak.watch import Watch
from bench.tables.scratch import scratch_folder
from demo.ports import free_port
from demo.witness import half_archived
from headgate_tables.hudi import open_table
from support.cluster import Cluster
from support.planted import ALL_ROWS
from support.producers import Producers, create_table
from support.workload import Workload

NAMES = ("one", "two", "three")
VICTIMS = ("writer-1", "writer-2", "coordinator-1", "redis", *NAMES)
GROWTH = 1.15
"""Most that the last third of the run may hold of memory, tasks, threads or files, against the first third."""


def main() -> None:
    options = _options()
    ports = {name: free_port() for name in ("coordinator-1", "writer-1", "writer-2")}
    flags = {"coordinator": ["--checkpoint-interval", f"{options.interval}s"]}
    flags |= {name: ["--metrics-listen", f"127.0.0.1:{port}"] for name, port in ports.items()}
    workload = Workload(deletes=False)
    with scratch_folder("soak") as folder:
        with Cluster(folder / "cluster", options=flags, plant=ALL_ROWS) as cluster:
            url = create_table(cluster.address, "soak", workload, buckets=2)
            rate = options.rate / len(NAMES)
            with Producers(cluster.address, "soak", workload, folder, rows=0, rate=rate, batch=500, timeout=300) as producers:
                watch = Watch(cluster, ports)
                try:
                    hidden = _torment(cluster, producers, url, options.minutes, options.seed)
                    producers.finish(300)
                finally:
                    watch.stop()
                histories = producers.histories()
        _say("counting every row of every block ...")
        verdicts = count_rows(url, histories)
    sys.exit(_report(watch, verdicts, hidden, options.minutes))


def _torment(cluster: Cluster, producers: Producers, url: str, minutes: float, seed: int) -> set[str]:
    """A kill every minute, and the part's next process at once. Returns the log files that hudi-rs did not show before a kill."""
    chance = random.Random(seed)
    hidden: set[str] = set()
    for name in NAMES:
        producers.start(name)
    begin = time.monotonic()
    number = 0
    while time.monotonic() - begin < 60 * minutes:
        number += 1
        time.sleep(max(0.0, begin + 60 * min(number, minutes) - time.monotonic()))
        victim = chance.choice(VICTIMS)
        hidden |= half_archived(open_table(url))
        sent = sum(history.attempts[-1].sent for history in producers.histories())
        _say(f"{time.monotonic() - begin:6.0f} s  {sent:>12,} rows sent  kill -9 {victim}")
        if victim in NAMES:
            producers.kill(victim)
            producers.start(victim)
        else:
            cluster.restart(victim)
    return hidden


def _report(watch: Watch, verdicts: dict[str, dict[str, int]], hidden: set[str], minutes: float) -> int:
    good = not hidden
    if hidden:
        _say(f"{len(hidden):,} log files were not shown by hudi-rs for a while, as {min(hidden)}")
    for producer, verdict in verdicts.items():
        wrong = {name: count for name, count in verdict.items() if name != "rows" and count}
        good = good and not wrong
        _say(f"{producer}: {verdict['rows']:,} rows, {wrong or 'each once and in order'}")
    for kind, figure, first, last in _growths(watch):
        leaks = last > first * GROWTH + 5
        good = good and not leaks
        _say(f"{kind}s: {figure} {first:.0f} -> {last:.0f}{'  GROWS' if leaks else ''}")
    _say(f"{minutes:g} minutes: {'all held' if good else 'NOT all held'}")
    return 0 if good else 1


def _growths(watch: Watch) -> Iterator[tuple[str, str, float, float]]:
    """By kind of part, all of it together: after a kill its channels, and their tasks, live on in the others."""
    kinds: dict[str, list[dict[str, tuple[float, float]]]] = defaultdict(list)
    for name, samples in watch.samples.items():
        if len(samples) > 2:
            kinds[name.partition("-")[0]].append(watch.growth(name))
    for kind, growths in kinds.items():
        for figure in growths[0]:
            yield kind, figure, sum(each[figure][0] for each in growths), sum(each[figure][1] for each in growths)


def _say(text: str) -> None:
    print(text, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task bench soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=20_000, help="rows a second, all producers together")
    parser.add_argument("--interval", type=float, default=2, help="seconds between checkpoints")
    parser.add_argument("--seed", type=int, default=1, help="of the order of kills")
    return parser.parse_args()


if __name__ == "__main__":
    main()
