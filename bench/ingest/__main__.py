"""`./task bench ingest`: see `--help`."""

import argparse
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from bench.ingest import sections
from bench.tables.figures import Figures, Goal

SECTIONS = ("throughput", "freshness", "channels", "overload", "recovery", "idle")
CASES = (
    ("1s", 1, "uniform"),
    ("1s", 2, "uniform"),
    ("10s", 1, "uniform"),
    ("10s", 2, "uniform"),
    ("1s", 2, "zipf"),
    ("10s", 1, "zipf"),
)
_FRESH = "from send, 10 k rows/s, 1 s rounds"
_KILLED = "first new commit after kill -9"
GOALS = (
    *(
        Goal(f"{case}: >= 500 k upserts per CPU-s", "sustained upserts", f"{case}, uniform", "rows/CPU-s", 5e5)
        for case in ("1s rounds, 1 writer", "1s rounds, 2 writers", "10s rounds, 1 writer", "10s rounds, 2 writers")
    ),
    Goal("send to queryable, p50 <= 1.2 s", _FRESH, "queryable", "s, p50", 1.2),
    Goal("send to queryable, p99 <= 2.5 s", _FRESH, "queryable", "s, p99", 2.5),
    Goal("100 channels with single rows: >= 5 k rows/s", "100 channels, single rows", "all", "rows/s", 5e3),
    Goal("overloaded writer <= 512 MiB", "overload", "32 channels, one writer", "MiB peak of the writer", 512),
    Goal("writer killed: first new commit, p99 <= 3 s", _KILLED, "writer", "s, p99", 3),
    Goal("coordinator killed: first new commit, p99 <= 8 s", _KILLED, "coordinator", "s, p99", 8),
    Goal("idle cluster <= 2 % of a core", "idle", "one coordinator, two writers, Redis", "% of a core", 2),
)


def main() -> None:
    options = _options()
    figures = Figures()
    rows = 1_000_000 if options.quick else 8_000_000
    if "throughput" in options.only:
        sections.throughput(figures, rows, options.rounds, CASES[1:3] if options.quick else CASES)
        sections.peers(figures, rows, spark=options.spark)
    if "freshness" in options.only:
        sections.freshness(figures, options.rounds, 10 if options.quick else 60)
    if "channels" in options.only:
        sections.single_rows(figures, options.rounds, 5 if options.quick else 20)
    if "overload" in options.only:
        sections.overload(figures, options.rounds, 10 if options.quick else 60)
    if "recovery" in options.only:
        sections.recovery(figures, 2 if options.quick else 20)
    if "idle" in options.only:
        sections.idle(figures, 5 if options.quick else 30)
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()}
    packages = {name: version(name) for name in ("pyarrow", "grpcio", "protobuf", "hudi")}
    print(f"{machine} {packages} {options.rounds} rounds{', quick' * options.quick}; medians over rounds.")
    print("CPU is user and system time of all processes of the cluster, Redis too, and of the client.")
    for line in figures.report(GOALS):
        print(line)
    if options.json:
        result = {"machine": machine, "packages": packages, "rounds": options.rounds, "quick": options.quick}
        Path(options.json).write_text(json.dumps(result | figures.as_json(GOALS), indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task bench ingest", description="The cluster beside Hudi on Spark and PyPaimon.")
    parser.add_argument("--quick", action="store_true", help="a smoke run of some minutes; its figures say little")
    parser.add_argument("--rounds", type=int, help="repetitions (3; 1 with --quick)")
    parser.add_argument("--spark", action="store_true", help="Hudi on Spark too: some minutes")
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=SECTIONS)
    parser.add_argument("--json", metavar="FILE", help="write every value of every round")
    options = parser.parse_args()
    if options.spark and "HEADGATE_SPARK_PYTHON" not in os.environ:
        sys.exit("--spark needs Java 17 on PATH.")
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


if __name__ == "__main__":
    main()
