"""A peer that is a library: the feed into one table, committed each ``interval`` seconds. Runs in the peer's environment."""

import gc
import importlib
import time
from typing import Any

import pyarrow as pa

from bench.tables.compare import differences
from bench.tables.scratch import scratch_folder
from bench.tables.usage import Moment, peak_bytes


def run(contender: str, feed: str, rows: int, interval: float, warm_up: int, oracle: str | None) -> dict[str, Any]:
    """``contender``: ``module:class`` of bench.tables; ``warm_up``: rows upserted before the clock starts.

    Returns ``rows``, ``wall`` and ``cpu`` seconds, ``peak`` bytes, ``commits`` (seconds each), and ``differences`` by reader.
    """
    module, _, name = contender.partition(":")
    batches = pa.ipc.open_file(pa.memory_map(feed))
    with scratch_folder(name.lower()) as scratch:
        table = getattr(importlib.import_module(module), name)(scratch / "data", batches.schema, partitioned=True)
        at, commits = _warm(table, batches, warm_up), []
        sent = at * batches.get_batch(0).num_rows
        first = sent
        gc.collect()
        begin = Moment.now(table.processes)
        while at < batches.num_record_batches and sent < rows:
            waiting, opened = [], time.perf_counter()
            # A library takes what has come in since the last commit: here as much as it managed in one interval.
            while at < batches.num_record_batches and sent < rows and len(waiting) < _share(commits, interval, first, sent):
                waiting.append(batches.get_batch(at))
                sent += waiting[-1].num_rows
                at += 1
            table.upsert(table.prepare(pa.Table.from_batches(waiting)))
            commits.append(time.perf_counter() - opened)
        used = Moment.now(table.processes) - begin
        found = {reader: differences(state, oracle) for reader, state in table.states()} if oracle else {}
        result = {"rows": sent - first, "wall": used.wall, "cpu": used.cpu, "commits": commits}
        return result | {"peak": peak_bytes(table.processes), "differences": found}


def _warm(table: Any, batches: pa.ipc.RecordBatchFileReader, rows: int) -> int:
    count = -(-rows // batches.get_batch(0).num_rows)
    if count:
        table.upsert(table.prepare(pa.Table.from_batches([batches.get_batch(number) for number in range(count)])))
    return count


def _share(commits: list[float], interval: float, first: int, sent: int) -> int:
    """Batches of the next commit: what the speed so far makes in one interval."""
    if not commits:
        return 4
    return max(1, int((sent - first) / 16_384 / sum(commits) * interval))
