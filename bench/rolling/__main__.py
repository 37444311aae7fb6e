"""`./task bench rolling`: every service is restarted in turn while rows come in; how long is the table without a commit?"""

import argparse
import sys
import time
from dataclasses import dataclass
from functools import partial

from bench.rolling.rows import expected_rows, shown_rows
from bench.tables.scratch import scratch_folder
from nemesis.commits import CommitWatch
from support.cluster import Cluster
from support.planted import ALL_ROWS
from support.producers import Producers, create_table
from support.workload import Workload

WRITERS = ("writer-1", "writer-2", "writer-3")
COORDINATORS = ("coordinator-1", "coordinator-2")
NAMES = ("one", "two", "three", "four")
LONGEST_GAP_S = 2.0
"""Most that the table may be without a commit."""
SETTLE_S = 1.0
"""From a service that is ready again to the next restart."""


@dataclass(frozen=True, slots=True)
class Restart:
    """``at``: seconds (``time.monotonic``) at which the service was told to end."""

    name: str
    at: float
    code: int


def main() -> None:
    options = _options()
    workload = Workload(event_time=False)
    flags = {"coordinator": ["--checkpoint-interval", f"{options.interval}s"]}
    plant = {} if options.drop_beaten else ALL_ROWS
    parts = partial(Cluster, coordinators=len(COORDINATORS), writers=len(WRITERS), compactors=1)
    with scratch_folder("rolling") as folder, parts(folder / "cluster", options=flags, plant=plant) as cluster:
        url = create_table(cluster.address, "rolling", workload)
        rate, ahead = options.rate / len(NAMES), options.ahead // len(NAMES)
        told = {"rows": 0, "rate": rate, "ahead": ahead, "batch": 500, "timeout": 60.0}
        with Producers(cluster.address, "rolling", workload, folder, **told) as producers:
            for name in NAMES:
                producers.start(name)
            watch = CommitWatch(url.removeprefix("file://"))
            try:
                begin = time.monotonic()
                restarts = _roll(cluster, producers, begin, options.minutes)
                end = time.monotonic()
            finally:
                watch.stop()
            producers.finish(600)
            sent = {history.producer: history.attempts[-1].sent for history in producers.histories()}
        _say("reading the table with hudi-rs ...")
        right = bool(shown_rows(url).equals(expected_rows(workload, sent)))
    commits = [moment for moment in watch.seen if begin <= moment <= end]
    sys.exit(_report(commits, restarts, begin, end, sum(sent.values()), right))


def _roll(cluster: Cluster, producers: Producers, begin: float, minutes: float) -> list[Restart]:
    """All writers, then all coordinators, again and again."""
    restarts: list[Restart] = []
    while True:
        for name in (*WRITERS, *COORDINATORS):
            if time.monotonic() - begin >= 60 * minutes:
                return restarts
            at = time.monotonic()
            code = cluster.drain(name)
            cluster.start(name)
            restarts.append(Restart(name, at, code))
            sent = sum(history.attempts[-1].sent for history in producers.histories())
            _say(f"{at - begin:6.1f} s  {name} was restarted in {time.monotonic() - at:.1f} s; {sent:>11,} rows sent")
            time.sleep(SETTLE_S)


def _report(commits: list[float], restarts: list[Restart], begin: float, end: float, rows: int, right: bool) -> int:
    waits = sorted(
        ((after - before, before) for before, after in zip([begin, *commits], [*commits, end], strict=True)), reverse=True
    )
    refused = [restart for restart in restarts if restart.code]
    good = right and not refused and waits[0][0] <= LONGEST_GAP_S
    _say(f"{rows:,} rows sent, {len(commits)} commits in {end - begin:.0f} s, {len(restarts)} restarts; no client had an error")
    for seconds, since in waits[:5]:
        last = max((restart for restart in restarts if restart.at <= since + seconds), key=lambda each: each.at, default=None)
        behind = f", {since - last.at:+.1f} s from the restart of {last.name}" if last else ""
        _say(f"{seconds:5.2f} s without a commit, from {since - begin:.1f} s{behind}")
    for restart in refused:
        _say(f"{restart.name} ended with {restart.code}")
    _say(f"rows that hudi-rs shows: {'as they were sent' if right else 'NOT as they were sent'}")
    _say(f"{'all held' if good else 'NOT all held'} (at most {LONGEST_GAP_S:g} s without a commit)")
    return 0 if good else 1


def _say(text: str) -> None:
    print(text, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task bench rolling", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--rate", type=float, default=20_000, help="rows a second, all producers together")
    parser.add_argument("--interval", type=float, default=1, help="seconds between checkpoints")
    parser.add_argument("--ahead", type=int, default=0, help="rows that are there at the beginning, all producers together")
    parser.add_argument("--drop-beaten", action=argparse.BooleanOptionalAction, default=True, help="deduplication inside a flush")
    return parser.parse_args()


if __name__ == "__main__":
    main()
