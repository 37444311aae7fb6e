"""A year of flights becomes a table, while processes are killed.

Starts a cluster (`headgate dev`: Redis, a coordinator, two writers, a compactor), streams the flights that left New York in 2013
as about a million inserts, updates and deletes from three producers, and kills a writer, the compactor and the coordinator with
-9 in the middle. Meanwhile the table is compacted, cleaned and archived. In the end, and once more when all is compacted, what
hudi-rs reads is compared, row for row, with what DuckDB computes from the CSV. Exit code 0: all held; 1: not.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import headgate
from demo import feed
from demo.dev_cluster import USUAL_PORT, DevCluster
from demo.doubles import count_events
from demo.flights import unpack_csv
from demo.oracle import compare
from demo.producers import TABLE
from demo.reading import AWS, read_by_hudi_rs
from demo.report import Observations, Verdict
from demo.s3_server import demo_store
from demo.screen import Screen
from demo.services import compact_and_clean, configure, what_services_did
from demo.stream import Stream
from demo.witness import Witness
from headgate_tables import hudi

_RATE, _QUICK_RATE = 20_000, 3_000
_LOCAL_INTERVAL, _S3_INTERVAL = "1s", "3s"
_BUCKETS = 2
_OWN_FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "demo"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)  # the cluster and the S3 server end with us
    with Screen(json_lines=options.json) as screen, ExitStack() as stack:
        folder = _folder(options.folder)
        store = _store(options.store, folder, stack)
        months = 1 if options.quick else 12
        csv = unpack_csv(folder)
        feeds = feed.read_feeds(csv, months)
        events = sum(part.events.num_rows for part in feeds)
        screen.note(
            f"{events:,} events of {months} month(s) of flights, three producers, tables in {store}", "feed", events=events
        )
        interval = options.interval or (_S3_INTERVAL if store.startswith("s3:") else _LOCAL_INTERVAL)
        with DevCluster(store, folder / "logs", interval, options.port) as cluster:
            screen.note(f"cluster ready at {cluster.address}, a checkpoint every {interval}", "ready", connect=cluster.address)
            url = _create(cluster.address)
            configure(cluster.address)
            witness = Witness(url)
            witness.start()
            run = Stream(cluster, feeds, options.rate or (_QUICK_RATE if options.quick else _RATE), screen).run()
            screen.end()
            screen.note("All sent and queryable. Reading it, compacting the rest, cleaning, reading it again ...", "reading")
            merged = compare(csv, months, read_by_hudi_rs(url))
            compact_and_clean(cluster.address, url)
            witness.stop()
            if not options.keep:
                cluster.stop()
            found = compare(csv, months, read_by_hudi_rs(url))
            services = what_services_did(url)
            blocks = count_events(witness.read, services.log_files)
            observations = Observations(witness.fullest, witness.hidden)
            verdict = Verdict(events, run, merged, found, blocks, services, observations, _verify(url), url)
            screen.report([*verdict.lines(), *_how_to_open(url, options)], verdict.record())
            if options.keep:
                _wait_for_ctrl_c(screen, cluster.address)
    return 0 if verdict.passed else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("./task demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the cluster up afterwards, until Ctrl-C")
    parser.add_argument(
        "--store",
        metavar="URI",
        help='"s3" for an S3 server of its own, or a folder, or s3://bucket/prefix with AWS_* set; default: under --folder',
    )
    parser.add_argument("--folder", help="for the CSV, logs and (without --store) tables; default .cache/demo, emptied first")
    parser.add_argument("--quick", action="store_true", help="January only")
    parser.add_argument(
        "--rate", type=float, metavar="N", help=f"events a second until all kills are survived; default {_RATE:,}"
    )
    parser.add_argument(
        "--port", type=int, help=f"of the first coordinator; default {USUAL_PORT}, or a free one where that is taken"
    )
    parser.add_argument("--interval", help=f"checkpoint interval; default {_LOCAL_INTERVAL}, on S3 {_S3_INTERVAL}")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser.parse_args(arguments)


def _folder(wanted: str | None) -> Path:
    """Emptied when it is the demo's own, so that each run starts from nothing; another one must be new."""
    folder = Path(wanted).absolute() if wanted else _OWN_FOLDER
    if folder.exists() and any(folder.iterdir()):
        if wanted:
            raise SystemExit(f"{folder} is not empty: name a new folder.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _store(wanted: str | None, folder: Path, stack: ExitStack) -> str:
    """The store's address; what is needed to reach it is in the environment then, for us and for all that we start."""
    if wanted == "s3":
        address, environment = stack.enter_context(demo_store(folder / "s3"))
        os.environ.update(environment)
        return address
    if wanted and "://" in wanted:
        return wanted
    return (Path(wanted).absolute() if wanted else folder / "tables").as_uri()


def _create(address: str) -> str:
    with headgate.connect(address) as cluster:
        table = cluster.create_table(
            TABLE, feed.SCHEMA, key=feed.KEY, ordering=feed.ORDERING, partition_by=feed.PARTITION, buckets=_BUCKETS
        )
        return table.info.url


def _verify(url: str) -> hudi.Verification:
    """Every byte of slots, timeline and files against what was committed."""
    with hudi.open_table(url) as table:
        return table.verify()


def _how_to_open(url: str, options: argparse.Namespace) -> list[str]:
    if options.store == "s3" and not options.keep:
        return ["  The table is gone with its S3 server; --keep leaves both up."]
    exports = "".join(f"{name}={os.environ[name]} " for name in AWS if options.store == "s3")
    return [
        f"  The table is {url}; open it with Spark or hudi-rs, or:",
        f"    {exports}headgate table scan {url} --limit 5",
        f"    python -c 'from hudi import HudiTableBuilder as T; print(len(T.from_base_uri(\"{url}\").build().read()))'",
    ]


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _wait_for_ctrl_c(screen: Screen, address: str) -> None:
    text = f"The cluster stays at {address}: headgate status --watch --connect {address}. Ctrl-C ends it."
    with contextlib.suppress(KeyboardInterrupt):
        screen.note(text, "kept", connect=address)
        threading.Event().wait()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
