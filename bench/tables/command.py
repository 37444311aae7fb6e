"""What the commands of the benches share: their options, and what a run says at its end."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from bench.report.results import RESULTS, Origin, commit, keep, today
from bench.tables.figures import Figures, Goal


def options_of(
    bench: str, description: str, sections: Mapping[str, str], *, quick: str, spark: str, match: str = ""
) -> argparse.Namespace:
    """``sections``: names and what they measure. ``quick``, ``spark``, ``match``: the help of these options; "": there is no
    ``match``. Exits on wrong ones.
    """
    width = max(map(len, sections)) + 1
    parser = argparse.ArgumentParser(
        prog=f"./task bench {bench}",
        description=description,
        epilog="sections:\n"
        + "\n".join(f"  {name:<{width}}" + about.replace("\n", "\n" + " " * (width + 2)) for name, about in sections.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help=f"{quick}; its figures say little")
    parser.add_argument("--rounds", type=int, help="repetitions (3; 1 with --quick)")
    parser.add_argument("--spark", action="store_true", help=spark)
    parser.add_argument("--only", choices=list(sections), nargs="+", default=list(sections))
    parser.add_argument("--json", metavar="FILE", help="write every value of every round")
    if match:
        parser.add_argument("--match", metavar="TEXT", default="", help=match)
    parser.set_defaults(bench=bench)
    options = parser.parse_args()
    if options.spark and "HEADGATE_SPARK_PYTHON" not in os.environ:
        sys.exit("--spark needs Java 17 on PATH.")
    options.commit = "" if options.quick or getattr(options, "match", "") else commit()
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def measure(
    figures: Figures, goals: Sequence[Goal], options: argparse.Namespace, sections: Mapping[str, Callable[[], None]]
) -> None:
    """Measures the sections of ``--only``. Each one's results are kept at its end, so that an error in a later one loses none.

    ``sections``: what adds the figures, by the names that ``options_of`` was given.
    """
    for name in options.only:
        before = set(figures.rows)
        sections[name]()
        if options.commit:
            processors, load = os.cpu_count() or 0, round(os.getloadavg()[0], 1)
            origin = Origin(options.commit, today(), _cpu_model(), processors, options.rounds, load)
            measured = {section for section, _, _ in figures.rows.keys() - before}
            keep(RESULTS, options.bench, figures.as_json(goals), measured, origin)


def report(
    figures: Figures, goals: Sequence[Goal], options: argparse.Namespace, packages: Sequence[str], **settings: object
) -> None:
    """Prints the figures and the goals; ``--json`` writes them. ``settings``: what else made this run what it was."""
    machine = {"cpus": os.cpu_count(), "cpu": _cpu_model(), "python": platform.python_version(), "kernel": platform.release()}
    versions = {name: version(name) for name in packages}
    load = [round(each, 1) for each in os.getloadavg()]
    print(
        f"{machine} {versions} {options.rounds} rounds{', quick' * options.quick}; medians over rounds; load at the end {load}."
    )
    print("CPU is user and system time of all threads and processes. 'vs': how many times better we are than that peer (range).")
    for line in figures.report(goals):
        print(line)
    found = figures.as_json(goals)
    if options.json:
        settings = {"rounds": options.rounds, "quick": options.quick, "load": load, **settings}
        result = {"machine": machine, "packages": versions, "settings": settings, **found}
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())
