"""A cluster that is given more than it can write goes on at its own rate: nothing is given up, and clients wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headgate
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.producers import Producers, create_table
from support.workload import Workload

pytestmark = pytest.mark.slow

WORKLOAD = Workload()
ROWS = 30_000
SMALL = ["--checkpoint-interval", "500ms", "--checkpoint-timeout", "2s"]
"""All rows of a producer come within a second and take a writer six, three times as long as a checkpoint may stand still."""


@contextmanager
def overloaded(folder: Path, *, coordinators: int) -> Iterator[tuple[Cluster, Producers, str]]:
    """Two producers send as fast as they can what writers write slowly."""
    options, plant = {"coordinator": SMALL}, {"writer": ("encodes_slowly", "keeps_beaten_rows")}
    with Cluster(folder / "cluster", coordinators=coordinators, options=options, plant=plant) as cluster:
        url = create_table(cluster.address, "t", WORKLOAD, limited=False)
        with Producers(cluster.address, "t", WORKLOAD, folder, rows=ROWS, batch=1000) as producers:
            producers.start("one")
            producers.start("two")
            yield cluster, producers, url


def test_a_checkpoint_that_takes_longer_than_the_limit_is_committed_while_it_goes_on(tmp_path: Path) -> None:
    with overloaded(tmp_path, coordinators=1) as (cluster, producers, url):
        producers.wait()
        with headgate.connect(cluster.address) as hg:
            (table,) = hg.status("t").tables
        assert table.generation == 1, "no checkpoint was given up"
        assert_exactly_once(url, producers.histories(), WORKLOAD, drop_beaten=False)


def test_coordinators_that_are_restarted_in_turn_while_clients_are_far_ahead_hand_over_in_time(tmp_path: Path) -> None:
    with overloaded(tmp_path, coordinators=2) as (cluster, producers, url):
        for name in ("coordinator-1", "coordinator-2") * 2:
            assert cluster.drain(name) == 0
            cluster.start(name)
        producers.wait()
        assert_exactly_once(url, producers.histories(), WORKLOAD, drop_beaten=False)
    for log in (tmp_path / "cluster/logs").glob("coordinator-*.log"):
        assert "handed over before their checkpoints were decided" not in log.read_text(encoding="utf-8")
