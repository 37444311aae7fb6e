"""A big file into a running cluster by `headgate load`, beside DuckDB's COPY to Parquet and PyPaimon's write of the same file."""

import os
from pathlib import Path

from bench.ingest.sections import cluster_with_table, processes_of
from bench.load.big_files import Digest, Kind, digest_of, prepare
from bench.load.loaders import PAIMON_ROWS
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures, Goal
from bench.tables.scratch import scratch_folder
from support.events import EVENTS_SCHEMA

PAIMON, DUCKDB = "PyPaimon", "DuckDB"
WRITERS = 2
PEAK, ABOVE_IDLE = "MB peak of the loading process", "MB of it above an idle one"
PER_CPU, PER_SECOND = "rows/CPU-s, all processes", "rows/s"
SCHEMA = EVENTS_SCHEMA.serialize().to_pybytes().hex()
_LOADERS = "bench.load.loaders"
_NOTES = (
    f"{OURS}: a cluster of {WRITERS} writers without compactors, checkpoints of 1 s; a load ends with its last commit.",
    f"{PAIMON}: a commit for each {PAIMON_ROWS:,} rows that pyarrow reads. {DUCKDB}: one Parquet file, no key, no commits.",
)


def section_of(kind: Kind) -> str:
    """Its name in the report."""
    return {"csv": "load of a CSV file", "parquet": "load of a Parquet file"}[kind]


_KINDS: tuple[Kind, ...] = ("csv", "parquet")
GOALS = tuple(
    Goal(f"{section_of(kind)}: memory <= 256 MB above idle", section_of(kind), "the file", ABOVE_IDLE, 256) for kind in _KINDS
)


def whole_file(figures: Figures, kind: Kind, megabytes: int, rounds: int) -> None:
    """Each round loads the file once by each; the rows of every table are compared with those of the file."""
    file, expected = prepare(kind, megabytes)
    for _ in range(rounds):
        _add(figures, kind, OURS, expected, _by_headgate(file, expected))
        _add(figures, kind, DUCKDB, expected, _by_peer("by_duckdb", file, expected))
        if python := os.environ.get("HEADGATE_PAIMON_PYTHON"):
            _add(figures, kind, PAIMON, expected, _by_peer("by_paimon", file, expected, python, schema=SCHEMA))
    size = Path(file).stat().st_size
    figures.note(section_of(kind), f"The file has {size / 1e6:,.0f} MB and {expected[0]:,} rows of 12 columns.", *_NOTES)


def _add(figures: Figures, kind: Kind, name: str, expected: Digest, used: dict[str, float]) -> None:
    section, rows = section_of(kind), expected[0]
    figures.add(section, "the file", PER_SECOND, name, rows / used["wall"], more_is_better=True)
    figures.add(section, "the file", PER_CPU, name, rows / used["cpu"], more_is_better=True)
    figures.add(section, "the file", "CPU-s, all processes", name, used["cpu"])
    figures.add(section, "the file", PEAK, name, used["peak"] / 1e6)
    figures.add(section, "the file", ABOVE_IDLE, name, (used["peak"] - used["idle"]) / 1e6)


def _by_headgate(file: str, expected: Digest) -> dict[str, float]:
    with cluster_with_table("1s", WRITERS) as (cluster, url):
        arguments = {"file": file, "address": cluster.address, "table": "events", "processes": processes_of(cluster)}
        used: dict[str, float] = run_child(f"{_LOADERS}:by_headgate", **arguments)
        _compare(OURS, run_child(f"{_LOADERS}:digest_by_hudi_rs", url=url), expected)
    return used


def _by_peer(function: str, file: str, expected: Digest, *python: str, **more: str) -> dict[str, float]:
    """``python``: the interpreter of the peer's environment. ``more``: what else the function takes.

    The peers' files are read as they are, since each key comes once.
    """
    with scratch_folder("load") as folder:
        used: dict[str, float] = run_child(f"{_LOADERS}:{function}", *python, file=file, folder=str(folder), **more)
        _compare(function, digest_of(f"read_parquet('{folder}/**/*.parquet', hive_partitioning = false)"), expected)
    return used


def _compare(name: str, found: Digest, expected: Digest) -> None:
    if found != expected:
        raise AssertionError(
            f"{name}: {found[0]:,} rows of digest {found[1]}, not {expected[0]:,} of {expected[1]}, as in the file"
        )
