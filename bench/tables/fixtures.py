"""Tables that take long to build: kept under .cache/bench, and built anew when the library's code changes."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import CACHE, ROOT
from bench.tables.progress import say
from headgate_tables import hudi
from support.events import EVENTS_SCHEMA


def merged_table(workload: str, log_batches: int) -> str:
    """1 M rows in base files and ``log_batches`` batches of 100 k in log files; returns the folder."""

    def build(folder: Path) -> None:
        table = hudi.create_table(f"file://{folder}", EVENTS_SCHEMA, record_key="event_id", ordering="version", buckets=8)
        for phase, count in (("load", 1), ("100k", log_batches)):
            batches = pa.ipc.open_file(pa.memory_map(f"{workload}/{phase}.arrow"))
            for number in range(count):
                table.upsert(batches.get_batch(number))

    return _cached(f"merged-{Path(workload).name}-{log_batches}", build)


def long_table(commits: int, groups: int) -> str:
    """``commits`` small upserts that each write to all of ``groups`` file groups; returns the folder."""

    def build(folder: Path) -> None:
        schema = pa.schema([("id", pa.int64()), ("value", pa.int64())])
        table = hudi.create_table(f"file://{folder}", schema, record_key="id", buckets=groups)
        ids = pa.array(np.arange(100 * groups))
        first = table.upsert(pa.table([ids, ids], schema=schema))
        if first.files != groups:
            raise AssertionError(f"{len(ids)} keys fell into {first.files} of {groups} groups")
        for number in range(1, commits):
            table.upsert(pa.table([ids, pa.array(np.full(len(ids), number))], schema=schema))

    return _cached(f"long-{commits}x{groups}", build)


def _cached(name: str, build: Callable[[Path], None]) -> str:
    folder = CACHE / f"{name}-{_code()}"
    if not folder.exists():
        say(f"making the table {name}")
        for stale in CACHE.glob(f"{name}-*"):
            shutil.rmtree(stale)
        partial = CACHE / f"{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        build(partial)
        partial.rename(folder)
    return str(folder)


def _code() -> str:
    sources = sorted((ROOT / "lib" / "tables" / "headgate_tables").rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in [*sources, Path(__file__)])).hexdigest()[:12]
