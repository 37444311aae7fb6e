"""Programs that have one row at a time: `ch.upsert(row)` in a loop, by threads and by coroutines, in each form of a row."""

import asyncio
import dataclasses
import time
from collections.abc import Callable, Sequence

import duckdb
import pyarrow as pa

import headgate
import headgate.aio
from bench.ingest.sections import check, cluster_with_table, processes_of
from bench.ingest.workload import BATCH_ROWS, prepare
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures, Goal
from bench.tables.usage import Moment
from support.events import EVENTS_SCHEMA

SECTION = "rows in a loop"
BY_THREAD = "rows/s of the calling thread's CPU"
FORMS = ("dict", "tuple", "dataclass")
PEER = "DuckDB"
GOALS = tuple(
    Goal(f"{form}, {how}: >= {limit:,.0f} rows/s", SECTION, f"{form}, {how}", BY_THREAD, limit)
    for how in ("threads", "async")
    for form, limit in (("dict", 150e3), ("tuple", 300e3), ("dataclass", 300e3))
)
_PEER_ROWS = 4 * 2048

Event = dataclasses.make_dataclass("Event", EVENTS_SCHEMA.names, slots=True)


def rows_in_a_loop(figures: Figures, batches: int, rounds: int) -> None:
    """``batches``: of 16,384 rows of the 12-column event, each row a call. The table is compared with DuckDB's in each run."""
    feed = prepare(batches * BATCH_ROWS, "uniform")
    for _ in range(rounds):
        for how, function in (("threads", "by_thread"), ("async", "by_coroutine")):
            for form in FORMS:
                with cluster_with_table("1s", 2) as (cluster, url):
                    arguments = {"address": cluster.address, "table": "events", "feed": feed, "form": form}
                    used = run_child(f"{__name__}:{function}", processes=processes_of(cluster), **arguments)
                    check(url, feed)
                figure = f"{form}, {how}"
                for unit, of in ((BY_THREAD, "thread"), ("rows/s until queryable", "wall"), ("rows/CPU-s, cluster too", "cpu")):
                    figures.add(SECTION, figure, unit, OURS, used["rows"] / used[of], more_is_better=True)
        rate = run_child(f"{__name__}:by_duckdb", feed=feed)["rate"]
        figures.add(SECTION, "tuple, threads", BY_THREAD, PEER, rate, more_is_better=True)
    figures.note(SECTION, f"{PEER}: one INSERT a row in one transaction, into a table in memory without a key.")


def _rows(feed: str, form: str) -> list[object]:
    table = pa.ipc.open_file(pa.memory_map(feed)).read_all()
    rows = table.to_pylist()
    make: dict[str, Callable[[dict[str, object]], object]] = {
        "dict": lambda row: row,
        "tuple": lambda row: tuple(row.values()),
        "dataclass": lambda row: Event(**row),
    }
    return [make[form](row) for row in rows]


def by_thread(address: str, table: str, feed: str, form: str, processes: Sequence[int]) -> dict[str, float]:
    """Returns ``rows`` and seconds: ``thread`` (CPU of the loop's thread), ``wall`` and ``cpu`` until all is queryable."""
    rows = _rows(feed, form)
    with headgate.connect(address) as hg, hg.table(table).channel("loop") as channel:
        begin, thread = Moment.now(processes), time.thread_time()
        for row in rows:
            channel.upsert(row)
        thread = time.thread_time() - thread
        channel.flush("queryable")
        return _used(len(rows), thread, Moment.now(processes) - begin)


def by_coroutine(address: str, table: str, feed: str, form: str, processes: Sequence[int]) -> dict[str, float]:
    """The same. ``thread`` is that of the event loop, with all that the SDK does on it."""
    return asyncio.run(_by_coroutine(address, table, _rows(feed, form), processes))


async def _by_coroutine(address: str, table: str, rows: Sequence[object], processes: Sequence[int]) -> dict[str, float]:
    async with headgate.aio.connect(address) as hg, (await hg.table(table)).channel("loop") as channel:
        begin, thread = Moment.now(processes), time.thread_time()
        for row in rows:
            await channel.upsert(row)
        thread = time.thread_time() - thread
        await channel.flush("queryable")
        return _used(len(rows), thread, Moment.now(processes) - begin)


def _used(rows: int, thread: float, used: Moment) -> dict[str, float]:
    return {"rows": rows, "thread": thread, "wall": used.wall, "cpu": used.cpu}


def by_duckdb(feed: str) -> dict[str, float]:
    """``rate``: rows a second of the thread's CPU."""
    rows = _rows(feed, "tuple")[:_PEER_ROWS]
    with duckdb.connect() as connection:
        empty = EVENTS_SCHEMA.empty_table()  # noqa: F841 - DuckDB finds it by its name
        connection.execute("CREATE TABLE events AS FROM empty")
        connection.execute("SET threads = 1")
        begin = time.thread_time()
        connection.begin()
        marks = ", ".join("?" * len(EVENTS_SCHEMA))
        for row in rows:
            connection.execute(f"INSERT INTO events VALUES ({marks})", row)
        connection.commit()
        return {"rate": len(rows) / (time.thread_time() - begin)}
