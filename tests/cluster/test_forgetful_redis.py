"""A Redis that loses its data while two coordinators run: who has a lease need not be who won the last epoch."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import headgate
from headgate_tables.hudi import open_table
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.processes import READY_S
from support.producers import Producers, create_table
from support.workload import Workload

pytestmark = pytest.mark.slow

SOON = ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]
WORKLOAD = Workload(event_time=False)


def test_an_owner_that_takes_its_forgotten_lease_back_learns_that_another_has_fenced(tmp_path: Path) -> None:
    """Both take the lease while Redis has forgotten the other one, and the one whose epoch is over has it in the end."""
    with Cluster(tmp_path / "cluster", coordinators=2, options={"coordinator": SOON}) as cluster:
        url = create_table(cluster.address, "t", WORKLOAD)
        with Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=500) as producers:
            producers.start("one")
            producers.wait_acked("one", 500)
            deposed = owner(cluster, "coordinator-1")
            (heir,) = {"coordinator-1", "coordinator-2"} - {deposed}
            cluster.pause(deposed)
            cluster.redis("FLUSHALL")
            goal = sent(producers)
            producers.wait_acked("one", goal)  # by the heir
            assert owner(cluster, heir) == heir
            cluster.pause(heir)
            cluster.redis("FLUSHALL")
            cluster.resume(deposed)
            while cluster.redis(f"EXISTS headgate:{b'headgate'.hex()}:lease:{b't'.hex()}") != ":1":
                time.sleep(0.02)
            cluster.resume(heir)
            while owner(cluster, heir) != deposed:
                time.sleep(0.02)
            producers.wait_acked("one", sent(producers))
            producers.finish()
        assert_exactly_once(url, producers.histories(), WORKLOAD)


def test_leases_that_are_lost_again_and_again_change_no_owner(tmp_path: Path) -> None:
    """Redis loses its data each 0.4 s for 5 s, and is then killed twice 1.5 s apart."""
    with Cluster(tmp_path / "cluster", coordinators=2, options={"coordinator": SOON}) as cluster:
        url = create_table(cluster.address, "t", WORKLOAD)
        with Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=500) as producers:
            producers.start("one")
            producers.wait_acked("one", 500)
            for pause in faults(cluster):
                time.sleep(pause)
            producers.wait_acked("one", sent(producers))
            producers.finish()
        assert open_table(url).epoch == 1, "coordinators took the table from each other"
        assert_exactly_once(url, producers.histories(), WORKLOAD)


def faults(cluster: Cluster) -> Iterator[float]:
    for _ in range(13):
        cluster.redis("FLUSHALL")
        yield 0.4
    for _ in range(2):
        cluster.restart("redis")
        yield 1.5


def sent(producers: Producers) -> int:
    """One more than was sent so far: that is durable only if something is committed from now on."""
    return producers.history("one").attempts[-1].sent + 1


def owner(cluster: Cluster, asked: str) -> str:
    """Who has the table, as that coordinator knows."""
    with headgate.connect(cluster.address_of(asked), timeout=READY_S, wait=READY_S) as hg:
        (status,) = hg.status("t").tables
    return status.owner
