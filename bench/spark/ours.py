"""Headgate's side, in the environment that has PySpark: each function is a process with one warm session."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions

from bench.spark.lineitem import KEY, ORDERING, SCHEMA
from bench.spark.measuring import measured
from bench.tables.contenders.spark import start_session
from headgate_spark import bulk_insert, read, upsert
from headgate_tables import hudi

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKETS = 8
SUMMED = ["l_returnflag", "l_linestatus", "l_extendedprice", "l_quantity"]


@contextmanager
def session() -> Iterator["SparkSession"]:
    """With Hudi's jar, as its own has."""
    with tempfile.TemporaryDirectory() as folder:
        started = start_session(Path(folder))
        try:
            yield started
        finally:
            started.stop()


def create(url: str) -> str:
    """An empty table."""
    hudi.create_table(url, SCHEMA, record_key=KEY, ordering=ORDERING, buckets=BUCKETS).close()
    return url


def load(source: str, warm_up: str, url: str) -> dict[str, float]:
    """A Parquet file becomes base files of a new table at ``url``; before, ``warm_up`` of another one."""
    with session() as spark:
        bulk_insert(spark.read.parquet(warm_up), create(f"{url}-warm-up"))
        create(url)
        return measured(spark, lambda: bulk_insert(spark.read.parquet(source), url))


def query(urls: Sequence[str], whole: bool) -> dict[str, object]:
    """Reads the tables one after the other; the clock runs for the last one, whose ``rows`` are the answer. ``whole``: of all
    columns, else of ``SUMMED``, which the call has to name: Spark does not tell a function of its tasks what a query wants.
    """
    with session() as spark:
        return answered(spark, [read(spark, url, columns=None if whole else SUMMED) for url in urls], whole)


def answered(spark: "SparkSession", frames: Sequence["DataFrame"], whole: bool) -> dict[str, object]:
    """The answer for the last of the frames, and what it took."""
    rows: list[list[str]] = []
    hashes = functions.xxhash64(*SCHEMA.names).cast("decimal(38, 0)")

    def ask(frame: "DataFrame") -> None:
        wanted = [functions.sum(hashes)] if whole else [functions.sum("l_extendedprice"), functions.sum("l_quantity")]
        sums = frame.groupBy("l_returnflag", "l_linestatus").agg(functions.count("*"), *wanted)
        rows[:] = sorted([str(value) for value in row] for row in sums.collect())

    for frame in frames[:-1]:
        ask(frame)
    return {**measured(spark, lambda: ask(frames[-1])), "rows": rows}


def stream(batches: Sequence[str], url: str) -> dict[str, list[float]]:
    """Seconds of each commit of a batch, given as a Parquet file; the first three warm the session up."""
    with session() as spark:
        create(url)
        took = []
        for number, batch in enumerate(batches):
            began = time.perf_counter()
            upsert(spark.read.parquet(batch), url, batch=("bench", number))
            took.append(time.perf_counter() - began)
    return {"seconds": took[3:]}
