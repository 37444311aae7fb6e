"""`./task bench tables`: see `--help`."""

import argparse
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from bench.tables.figures import Figures, Goal
from bench.tables.other_sections import log_blocks, open_and_view, snapshot_read
from bench.tables.upserts import entrants, measure
from bench.tables.workload import Phases

SECTIONS = ("upsert", "blocks", "read", "open")
FULL: Phases = {"load": (1_000_000, 1), "100k": (100_000, 5), "10k": (10_000, 20), "100": (100, 1000)}
FULL_PARTITIONED: Phases = {"load": (1_000_000, 1), "100k": (100_000, 3), "10k": (10_000, 10), "100": (100, 50)}
QUICK: Phases = {"load": (200_000, 1), "100k": (100_000, 3), "10k": (10_000, 5), "100": (100, 100)}
QUICK_PARTITIONED: Phases = {"load": (200_000, 1), "100k": (100_000, 1), "10k": (10_000, 2), "100": (100, 5)}

_FLAT = "upsert, 8 groups (PyPaimon 4)"
GOALS = (
    Goal("upsert of 100 k rows >= 1.5x PyPaimon per CPU-s", _FLAT, "100k: 100,000 rows a commit", "rows/CPU-s", 1.5, "PyPaimon"),
    Goal("upsert of 10 k rows >= 1.5x PyPaimon per CPU-s", _FLAT, "10k: 10,000 rows a commit", "rows/CPU-s", 1.5, "PyPaimon"),
    Goal("commit of 100 rows, p50, no slower than PyPaimon's", _FLAT, "100: 100 rows a commit", "ms wall, p50", 1.0, "PyPaimon"),
    Goal("commit of 100 rows, p50 <= 12 ms", _FLAT, "100: 100 rows a commit", "ms wall, p50", 12),
    Goal("flat over 1,000 commits: last 100 <= 1.2x first 100", _FLAT, "100: 100 rows a commit", "last 100 / first 100", 1.2),
    Goal("<= 60 bytes a row, loaded", _FLAT, "load: 1,000,000 rows a commit", "bytes a row", 60),
    Goal("<= 60 bytes a row, upserted in batches of 100 k", _FLAT, "100k: 100,000 rows a commit", "bytes a row", 60),
    Goal("Parquet log block encoding >= 3 M rows/CPU-s", "log blocks", "Parquet encode, 100,000 rows", "rows/CPU-s", 3e6),
    Goal("Avro log block decoding >= 2 M rows/CPU-s", "log blocks", "Avro decode, 50,000 rows", "rows/CPU-s", 2e6),
    Goal("snapshot read >= 1.5x hudi-rs per CPU-s", "snapshot read", "12 columns, at once", "rows/CPU-s", 1.5, "hudi-rs"),
    Goal("open and view of 2,000 commits <= 0.5 s", "open and view", "2,000 commits, 10 groups each", "s wall", 0.5),
)


def main() -> None:
    options = _options()
    figures = Figures()
    full, partitioned = (QUICK, QUICK_PARTITIONED) if options.quick else (FULL, FULL_PARTITIONED)
    contenders = entrants(spark=options.spark)
    if "upsert" in options.only:
        measure(figures, full, full, contenders, options.rounds, partitioned=False)
        measure(figures, partitioned, full, contenders, options.rounds, partitioned=True)
    if "blocks" in options.only:
        log_blocks(figures, options.rounds, 5 if options.quick else 20)
    if "read" in options.only:
        snapshot_read(figures, full, options.rounds, 2 if options.quick else 5)
    if "open" in options.only:
        open_and_view(figures, options.rounds, 200 if options.quick else 2000)
    machine = {"cpus": os.cpu_count(), "cpu": _cpu_model(), "python": platform.python_version(), "kernel": platform.release()}
    packages = {name: version(name) for name in ("pyarrow", "numpy", "hudi")}
    print(f"{machine} {packages} {options.rounds} rounds{', quick' * options.quick}; medians over rounds.")
    print("CPU is user and system time of all threads and processes. 'vs': how many times better we are than that peer (range).")
    for line in figures.report(GOALS):
        print(line)
    if options.json:
        settings = {"rounds": options.rounds, "quick": options.quick, "phases": full, "partitioned_phases": partitioned}
        result = {"machine": machine, "packages": packages, "settings": settings, **figures.as_json(GOALS)}
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task bench tables", description="Our tables beside PyPaimon, hudi-rs and Spark.")
    parser.add_argument("--quick", action="store_true", help="a smoke run of about a minute; its figures say little")
    parser.add_argument("--rounds", type=int, help="repetitions of everything (3; 1 with --quick)")
    parser.add_argument("--spark", action="store_true", help="Hudi on Spark too: one round, few commits, some minutes")
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=SECTIONS)
    parser.add_argument("--json", metavar="FILE", help="write every value of every round")
    options = parser.parse_args()
    if options.spark and "HEADGATE_SPARK_PYTHON" not in os.environ:
        sys.exit("--spark needs Java 17 on PATH.")
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


if __name__ == "__main__":
    main()
