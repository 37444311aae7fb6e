"""The store denies everything for a while: an alarm says what it said, nobody gives up, and afterwards the table goes on."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import headgate
from support.alarms import wait_for_alarm, wait_until_quiet
from support.cluster import Cluster
from support.disks import read_only, small_disk
from support.exactly_once import assert_exactly_once
from support.faulty_proxy import FaultyProxy, faulty_proxy
from support.processes import READY_S
from support.producers import Producers, create_table
from support.s3 import S3Endpoint, real_s3
from support.workload import Workload

pytestmark = pytest.mark.slow

SOON = {
    "coordinator": [
        *("--checkpoint-interval", "1s", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"),
        *("--start-timeout", "1h"),  # however slowly this machine goes on while the store denies everything
    ]
}
WORKLOAD = Workload()
PATIENCE_S = 300.0
"""For a producer's calls: longer than any denial here."""


@dataclass(frozen=True, slots=True)
class Place:
    """``denied``: entered, nobody gets anything, and the store says ``said``. ``direct``: how the checker reaches it."""

    store: str
    env: Mapping[str, str]
    denied: Callable[[], AbstractContextManager[None]]
    said: str
    direct: S3Endpoint | None = None


@contextmanager
def read_only_disk(folder: Path) -> Iterator[Place]:
    with small_disk(folder / "disk", 256 << 20) as disk:
        yield Place(f"file://{disk}/store", {}, lambda: read_only(disk), "Read-only file system")


@contextmanager
def expired_token(folder: Path) -> Iterator[Place]:
    (folder / "s3").mkdir()
    with real_s3(folder / "s3") as s3, faulty_proxy(s3.url) as proxy:
        env = {f"AWS_{name.upper()}": value for name, value in s3.options.items()} | {"AWS_ENDPOINT": proxy.url}
        store = s3.make_bucket("denied") + "/store"
        yield Place(store, env, lambda: refusing(proxy), "403", s3)


@contextmanager
def refusing(proxy: FaultyProxy) -> Iterator[None]:
    proxy.refuse(403)
    try:
        yield
    finally:
        proxy.disarm()


PLACES = {"a disk that is read-only": read_only_disk, "S3 that answers 403": expired_token}


def sent_more(producers: Producers, rows: int) -> None:
    """Until each producer has ``rows`` more durable than it had sent when this began."""
    for history in producers.histories():
        producers.wait_acked(history.producer, history.attempts[-1].sent + rows)


@pytest.mark.parametrize("place", PLACES)
def test_a_denial_is_named_and_waited_out_and_every_row_is_there_once(place: str, tmp_path: Path) -> None:
    with (
        PLACES[place](tmp_path) as denying,
        Cluster(tmp_path / "cluster", store=denying.store, env=denying.env, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        url = create_table(cluster.address, "t", WORKLOAD)
        with Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=500, timeout=PATIENCE_S) as producers:
            producers.start("one")
            producers.start("two")
            sent_more(producers, 500)
            with denying.denied():
                alarm = wait_for_alarm(hg, "the store has denied access since")
                assert denying.said in alarm
                time.sleep(6)  # the fault's length: long enough for several tries
                # A coordinator that is new, without anything in memory, finds the table denied and waits too: it answers, and is
                # not ready before it has seen which tables there are.
                cluster.kill("coordinator-1")
                cluster.start("coordinator-1", wait=False)
                alarm = wait_for_alarm(hg, "the store has denied access since", state="unowned")
                assert denying.said in alarm
            cluster.wait_ready("coordinator-1")
            sent_more(producers, 500)
            producers.finish()
        wait_until_quiet(hg, "denied")
        direct = denying.direct
        assert_exactly_once(
            url,
            producers.histories(),
            WORKLOAD,
            options=direct.options if direct else None,
            hudi_rs_options=direct.hudi_rs_options if direct else None,
        )
