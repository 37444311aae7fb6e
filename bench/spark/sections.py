"""What is measured. Every table that is written is read by hudi-rs, and every answer is compared with the peer's."""

import itertools
import os
from collections.abc import Sequence
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from bench.load.big_files import Digest, digest_of
from bench.load.loaders import digest_by_hudi_rs
from bench.spark.lineitem import SCHEMA, lineitem, parts_of, shipped_later
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures, Goal
from bench.tables.scratch import scratch_folder
from bench.tables.usage import Moment
from headgate_tables import hudi

HUDI = "Hudi on Spark"
LOAD, SORT, READ, STREAM = "bulk load", "sort by l_shipdate, l_suppkey", "snapshot read", "commits of a stream"
PER_CPU, PER_S = "rows/CPU-s", "rows/s"
ORDER = "l_shipdate,l_suppkey"
SIDES = {OURS: "bench.spark.ours", HUDI: "bench.spark.by_hudi"}
BATCHES, BATCH_ROWS = 23, 1_000
GOALS = (
    *(Goal(f"bulk load, {size} M rows: >= 3x per CPU-s", LOAD, f"{size} M rows", PER_CPU, 3, HUDI) for size in (1, 5, 20)),
    Goal("sorting: >= 3x per CPU-s", SORT, "5 M rows", PER_CPU, 3, HUDI),
    Goal(
        "snapshot read, a tenth of the rows in logs: >= 3x per CPU-s",
        READ,
        "5 M rows, 10 % in logs, four columns",
        PER_CPU,
        3,
        HUDI,
    ),
    Goal("a stream's commit: p50 <= 0.5 s", STREAM, f"{BATCH_ROWS:,} rows", "s, p50", 0.5),
)


def load(figures: Figures, sizes: Sequence[int], rounds: int) -> None:
    """A Parquet file into a new table."""
    with scratch_folder("spark-load") as folder:
        warm_up = lineitem(folder, 100_000)
        for size in sizes:
            source = lineitem(folder, size)
            wanted = _digest(source)
            for number in range(rounds):
                for side, module in SIDES.items():
                    url = str(folder / f"{side.partition(' ')[0]}-{size}-{number}")
                    used = _child(f"{module}:load", source=source, warm_up=warm_up, url=url)
                    _check(url, wanted)
                    _add(figures, LOAD, f"{size / 1e6:g} M rows", side, size, used)


def sort(figures: Figures, size: int, rounds: int) -> None:
    """Ours is a compaction in this process, without Spark; Hudi's is its clustering."""
    with scratch_folder("spark-sort") as folder:
        warm_up, source = lineitem(folder, 100_000), lineitem(folder, size)
        wanted = _digest(source)
        for number in range(rounds):
            url = str(folder / f"ours-{number}")
            _child(f"{SIDES[OURS]}:load", source=source, warm_up=warm_up, url=url)
            used = run_child("bench.spark.sections:sorted_by_us", url=url)
            _check(url, wanted)
            _add(figures, SORT, f"{size / 1e6:g} M rows", OURS, size, used)
            url = str(folder / f"hudi-{number}")
            used = _child(f"{SIDES[HUDI]}:sort", source=source, warm_up=warm_up, url=url, columns=ORDER)
            _check(url, wanted)
            _add(figures, SORT, f"{size / 1e6:g} M rows", HUDI, size, used)


def sorted_by_us(url: str) -> dict[str, float]:
    """Sorts a table in a process of its own."""
    with hudi.open_table(url) as table:
        table.configure({"hoodie.clustering.plan.strategy.sort.columns": ORDER})
        begin = Moment.now()
        table.compact(sort=True)
        used = Moment.now() - begin
    return {"wall": used.wall, "cpu": used.cpu}


def read(figures: Figures, size: int, rounds: int) -> None:
    """The same table by both readers: base files alone, and with a tenth of its rows in log files."""
    with scratch_folder("spark-read") as folder:
        url = str(folder / "table")
        _child(f"{SIDES[OURS]}:load", source=lineitem(folder, size), warm_up=lineitem(folder, 100_000), url=url)
        _ask(figures, f"{size / 1e6:g} M rows, base files", url, size, rounds)
        with hudi.open_table(url) as table:
            rows = pq.read_table(lineitem(folder, size))
            for start in range(0, size // 10, 100_000):
                table.upsert(shipped_later(rows.slice(start * 7 % size, min(100_000, size // 10))))
        _ask(figures, f"{size / 1e6:g} M rows, 10 % in logs", url, size, rounds)


def _ask(figures: Figures, table: str, url: str, size: int, rounds: int) -> None:
    for columns, _ in itertools.product(("four columns", "all columns"), range(rounds)):
        figure, whole = f"{table}, {columns}", columns == "all columns"
        answers = {side: _child(f"{module}:query", urls=[url, url], whole=whole) for side, module in SIDES.items()}
        if answers[OURS]["rows"] != answers[HUDI]["rows"]:
            raise AssertionError(f"{figure}: {answers[OURS]['rows'][:2]} by us, {answers[HUDI]['rows'][:2]} by Hudi")
        for side, used in answers.items():
            _add(figures, READ, figure, side, size, used)


def stream(figures: Figures, rounds: int) -> None:
    """Batches one after the other, each committed before the next."""
    with scratch_folder("spark-stream") as folder:
        source = lineitem(folder, BATCHES * BATCH_ROWS)
        batches, wanted = parts_of(source, BATCH_ROWS), _digest(source)
        for number in range(rounds):
            for side, module in SIDES.items():
                url = str(folder / f"{side.partition(' ')[0]}-{number}")
                seconds = _child(f"{module}:stream", batches=batches, url=url)["seconds"]
                _check(url, wanted)
                figures.add(STREAM, f"{BATCH_ROWS:,} rows", "s, p50", side, median(seconds))


def _child(function: str, **arguments: object) -> Any:
    return run_child(function, os.environ["HEADGATE_SPARK_PYTHON"], **arguments)


def _digest(source: str) -> Digest:
    return digest_of(f"read_parquet('{source}')", columns=SCHEMA.names)


def _check(url: str, wanted: Digest) -> None:
    if (found := digest_by_hudi_rs(url, SCHEMA)) != wanted:
        raise AssertionError(f"hudi-rs finds {found} in {url}, and its source is {wanted}")


def _add(figures: Figures, section: str, figure: str, side: str, rows: int, used: dict[str, float]) -> None:
    figures.add(section, figure, PER_CPU, side, rows / used["cpu"], more_is_better=True)
    figures.add(section, figure, PER_S, side, rows / used["wall"], more_is_better=True)
