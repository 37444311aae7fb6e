"""A peer that is a library: rows of a feed into one table, one commit each ``interval`` seconds. Runs in the peer's environment.

A library has no rounds of its own. It takes what has come in since its last commit, and here that is as much as it can take: what
its last round's speed makes in one interval. So a round lasts as long as the cluster's, and is as large as the peer is fast.
"""

import gc
import importlib
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from bench.tables.compare import differences
from bench.tables.contenders.contender import Contender
from bench.tables.progress import say
from bench.tables.usage import Moment

WARM_SECONDS = 3.0
"""Of rounds of at most one second, before the clock starts: what a library makes once is made then, and its speed is known."""
WARM_SHARE = 0.25
"""Of the feed; when so much is in, no further round is a warm-up."""
_FIRST_BATCHES = 4


@dataclass(slots=True)
class Pace:
    """How many batches a round takes."""

    speed: float = 0.0

    def share(self, interval: float) -> int:
        """Batches of the next round; a few when nothing is known yet."""
        return max(1, round(self.speed * interval)) if self.speed else _FIRST_BATCHES

    def took(self, batches: int, seconds: float) -> None:
        """A round is committed."""
        self.speed = batches / seconds


@dataclass(slots=True)
class Checkpoints:
    """Commits of a feed into a table, one after the other."""

    name: str
    table: Contender
    batches: pa.ipc.RecordBatchFileReader
    at: int = 0
    pace: Pace = field(default_factory=Pace)

    def commit(self, interval: float, end: int) -> tuple[int, float]:
        """The next round, of the batches before ``end``: its rows and seconds."""
        first, self.at = self.at, min(end, self.at + self.pace.share(interval))
        rows = pa.Table.from_batches([self.batches.get_batch(number) for number in range(first, self.at)])
        began = time.perf_counter()
        self.table.upsert(self.table.prepare(rows))
        seconds = time.perf_counter() - began
        self.pace.took(self.at - first, seconds)
        say(f"{self.name}: a round of {rows.num_rows:,} rows in {seconds:.2f} s")
        return rows.num_rows, seconds


def run(name: str, contender: str, folder: str, feed: str, interval: float) -> dict[str, object]:
    """The whole feed into the table in ``folder``, which is made if it is not there. ``contender``: ``module:class``.

    Returns ``rounds`` (rows and seconds of each commit after the warm-up), ``wall`` and ``cpu`` seconds of all of them.
    """
    batches = pa.ipc.open_file(pa.memory_map(feed))
    table = _table(contender, folder, batches.schema)
    checkpoints = Checkpoints(name, table, batches)
    end, began = batches.num_record_batches, time.perf_counter()
    while checkpoints.at < end * WARM_SHARE and time.perf_counter() - began < WARM_SECONDS:
        checkpoints.commit(min(interval, 1.0), end)
    gc.collect()
    say(f"{name}: warm, {checkpoints.at} of {end} batches are in")
    begin, done = Moment.now(table.processes), []
    while checkpoints.at < end:
        done.append(checkpoints.commit(interval, end))
    used = Moment.now(table.processes) - begin
    return {"rounds": done, "wall": used.wall, "cpu": used.cpu}


def create(contender: str, folder: str, feed: str) -> None:
    """The table, empty."""
    _table(contender, folder, pa.ipc.open_file(pa.memory_map(feed)).schema)


def compare(contender: str, folder: str, feed: str, oracle: str) -> dict[str, str]:
    """What each reader of the table finds different from the Arrow file ``oracle``; ``feed``: any that went into it."""
    table = _table(contender, folder, pa.ipc.open_file(pa.memory_map(feed)).schema)
    return {reader: differences(state, oracle) for reader, state in table.states()}


def _table(contender: str, folder: str, schema: pa.Schema) -> Contender:
    module, _, name = contender.partition(":")
    table: Contender = getattr(importlib.import_module(module), name)(Path(folder), schema, partitioned=True)
    return table
