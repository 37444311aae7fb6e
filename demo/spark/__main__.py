"""A year of flights through Spark and a cluster.

Spark loads the flights that were planned from New York in 2013 into a new table, 336,776 rows in one commit. Then a cluster
adopts the table, and three producers stream what happened: departures, landings, cancellations. The cluster compacts the table
and sorts it by origin and destination. Spark reads one route, of which a part of the row groups alone can hold rows. In the end,
what hudi-rs and Spark read is compared with what DuckDB computes from the CSV. Exit code 0: they agree, and sorting helped.
"""

import argparse
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from demo import feed
from demo.dev_cluster import DevCluster
from demo.flights import unpack_csv
from demo.oracle import compare, count_where
from demo.producers import TABLE, Producer
from demo.reading import read_by_hudi_rs
from demo.screen import Screen
from demo.spark import jobs
from demo.spark.flights import happened, planned
from demo.spark.query import Query
from demo.spark.row_groups import row_groups
from demo.spark.verdict import SparkVerdict
from headgate_tables import hudi

FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "demo-spark"
MONTHS = 12
ROUTE = Query({"origin": "JFK", "dest": "LAX"})
_SORT = "hoodie.clustering.plan.strategy.sort.columns"
_POLL_S = 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("./task demo --spark", description=__doc__, formatter_class=as_written)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(arguments)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with Screen(json_lines=options.json) as screen:
        verdict = _run(screen, FOLDER / "tables" / TABLE)
        screen.report(verdict.lines(), verdict.record())
    return 0 if verdict.passed else 1


def _run(screen: Screen, table: Path) -> SparkVerdict:
    csv = unpack_csv(FOLDER)
    feeds = feed.read_feeds(csv, MONTHS)
    _load(screen, feeds, table)
    with DevCluster(str(table.parent), FOLDER / "logs", "1s") as cluster:
        _stream(screen, cluster, happened(feeds))
        _command(cluster, "compact", TABLE)
        before = row_groups(table, ROUTE)
        screen.note(f"compacted; now the cluster sorts the table by {', '.join(ROUTE.equal)} ...", "compacted")
        _command(cluster, "configure", TABLE, f"{_SORT}={','.join(ROUTE.equal)}")
        _command(cluster, "compact", TABLE, "--sort")
    screen.note(f"sorted; Spark and hudi-rs read the table: {ROUTE.sql} ...", "sorted")
    return SparkVerdict(
        compare(csv, MONTHS, read_by_hudi_rs(table.as_uri())),
        jobs.count(str(table), ROUTE.sql, FOLDER / "spark.log"),
        count_where(csv, MONTHS, ROUTE.sql),
        before,
        row_groups(table, ROUTE),
        str(table),
    )


def _load(screen: Screen, feeds: Sequence[feed.Feed], table: Path) -> None:
    source = FOLDER / "planned.parquet"
    pq.write_table(planned(feeds), source)
    hudi.create_table(str(table), feed.SCHEMA, record_key=feed.KEY, ordering=feed.ORDERING, buckets=1).close()
    began = time.monotonic()
    screen.note("Spark starts, and loads what was planned ...", "starting")
    done = jobs.bulk_load(source, str(table), FOLDER / "spark.log")
    took = time.monotonic() - began
    screen.note(
        f"{done['upserted']:,} rows loaded in one commit, {took:.1f} s with Spark's start", "loaded", rows=done["upserted"]
    )


def _stream(screen: Screen, cluster: DevCluster, feeds: Sequence[feed.Feed]) -> None:
    """Producers send as fast as they can; returns when readers see all rows. Raises a producer's error."""
    total = sum(each.events.num_rows for each in feeds)
    _command(cluster, "table", "adopt", TABLE)
    screen.note(f"the cluster at {cluster.address} has adopted the table; {total:,} events of what happened follow", "ready")
    hurry = threading.Event()
    hurry.set()
    producers = [Producer(cluster.address, each, 0.0, hurry) for each in feeds]
    screen.begin(total)
    began = time.monotonic()
    for producer in producers:
        producer.start()
    while any(producer.is_alive() for producer in producers):
        time.sleep(_POLL_S)
        seen = sum(producer.queryable for producer in producers)
        screen.tick(seen, total, seen / (time.monotonic() - began), None)
    screen.end()
    for producer in producers:
        if producer.failure is not None:
            raise producer.failure
    screen.note(f"all of them queryable after {time.monotonic() - began:.1f} s", "streamed", events=total)


def _command(cluster: DevCluster, *arguments: str) -> None:
    """Runs `headgate`, as a user does. Raises SystemExit."""
    command = [sys.executable, "-m", "headgate_cli", *arguments, "--connect", cluster.address, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"headgate {' '.join(arguments)} failed: {done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
