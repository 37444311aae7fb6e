"""`./task bench compaction`: see `--help`."""

import argparse
import json
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from bench.compaction.operation_section import BASE_ROWS_PER_CPU, LARGE, PEAK, SECTION, TENTH, one_operation
from bench.tables.figures import Figures, Goal
from bench.tables.__main__ import cpu_model

Section = Callable[[Figures, argparse.Namespace], None]

SECTIONS: dict[str, Section] = {
    "operation": lambda figures, options: one_operation(figures, options.rounds, quick=options.quick),
}
"""What is measured, by the name that ``--only`` takes; each adds rows to the figures."""

GOALS = (
    Goal("base rows per CPU-s >= 1 M, logs of a tenth", SECTION, TENTH, BASE_ROWS_PER_CPU, 1e6),
    Goal("peak memory for a 1 GB slice <= 512 MiB", SECTION, LARGE, PEAK, 512),
    Goal("base rows per CPU-s >= 1 M, 1 GB slice", SECTION, LARGE, BASE_ROWS_PER_CPU, 1e6),
)


def main() -> None:
    options = _options()
    figures = Figures()
    for name in options.only:
        SECTIONS[name](figures, options)
    machine = {"cpus": os.cpu_count(), "cpu": cpu_model(), "python": platform.python_version(), "kernel": platform.release()}
    packages = {name: version(name) for name in ("pyarrow", "numpy", "hudi")}
    print(f"{machine} {packages} {options.rounds} rounds{', quick' * options.quick}; medians over rounds.")
    print("CPU is user and system time of all threads and processes. 'vs': how many times better we are than that peer (range).")
    for line in figures.report(GOALS):
        print(line)
    if options.json:
        settings = {"rounds": options.rounds, "quick": options.quick}
        result = {"machine": machine, "packages": packages, "settings": settings, **figures.as_json(GOALS)}
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task bench compaction", description="Compaction: speed and memory.")
    parser.add_argument("--quick", action="store_true", help="a smoke run of about a minute; its figures say little")
    parser.add_argument("--rounds", type=int, help="repetitions of everything (3; 1 with --quick)")
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=list(SECTIONS))
    parser.add_argument("--json", metavar="FILE", help="write every value of every round")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


if __name__ == "__main__":
    main()
