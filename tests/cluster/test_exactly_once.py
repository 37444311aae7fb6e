"""Exactly once with real processes: rows come through the SDK, processes die, and the committed log is read unmerged."""

from pathlib import Path

import pytest

from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.producers import Producers, create_table
from support.workload import Workload

SOON = {"coordinator": ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms"]}
BOTH = pytest.mark.parametrize("workload", [Workload(), Workload(event_time=False)], ids=["event time", "commit time"])


@BOTH
def test_what_two_producers_send_is_there_once(workload: Workload, tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", options=SOON) as cluster:
        url = create_table(cluster.address, "t", workload)
        with Producers(cluster.address, "t", workload, tmp_path, rows=10_000) as producers:
            producers.start("one")
            producers.start("two")
            producers.wait()
        report = assert_exactly_once(url, producers.histories(), workload)
    assert report.entries + report.dropped == 20_000


@BOTH
def test_a_writer_that_is_killed_loses_and_doubles_nothing(workload: Workload, tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", options=SOON) as cluster:
        url = create_table(cluster.address, "t", workload)
        with Producers(cluster.address, "t", workload, tmp_path, rows=0, rate=2000) as producers:
            producers.start("one")
            producers.start("two")
            producers.wait_acked("one", 1000)
            cluster.kill("writer-1")
            producers.wait_acked("one", producers.history("one").attempts[-1].sent)
            cluster.start("writer-1")
            producers.wait_acked("two", producers.history("two").attempts[-1].sent)
            producers.finish()
        assert_exactly_once(url, producers.histories(), workload)
