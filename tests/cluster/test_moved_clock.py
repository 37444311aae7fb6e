"""A coordinator whose wall clock is ahead for a moment: what is issued then would be a floor for good."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

import headgate
from headgate_tables.commitlog.times import parse_time
from headgate_tables.hudi import open_table
from support.alarms import wait_for_alarm
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.processes import READY_S
from support.producers import Producers, create_table
from support.systems import SetClock, system
from support.workload import Workload

pytestmark = pytest.mark.slow

SOON = ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]
WORKLOAD = Workload(event_time=False)
HOUR, DAY = 3600.0, 86400.0


@pytest.mark.parametrize("ahead", [HOUR, DAY, 400 * DAY], ids=["an hour", "a day", "400 days"])
def test_a_clock_that_was_ahead_for_a_moment_stops_commits_for_that_moment_only(ahead: float, tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster", options={"coordinator": SOON}) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        url = create_table(cluster.address, "t", WORKLOAD)
        with Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=500) as producers:
            producers.start("one")
            producers.wait_acked("one", 500)
            cluster.move_clock("coordinator-1", ahead)
            wait_for_alarm(hg, "s ahead of Redis")
            cluster.restart("coordinator-1")  # opens the table by a clock that is ahead
            wait_for_alarm(hg, "s ahead of Redis")
            cluster.move_clock("coordinator-1", 0)
            producers.wait_acked("one", producers.history("one").attempts[-1].sent + 1)
            producers.finish()
        assert_exactly_once(url, producers.histories(), WORKLOAD)
    table = open_table(url)
    assert parse_time(max(commit.completion for commit in table.commits())) < time.time() * 1000
    assert table.channels["one"][0] == 1, "the channel was forgotten"


def test_a_table_whose_times_are_in_the_future_goes_on_when_an_operator_says_so(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", options={"coordinator": SOON}) as cluster:
        url = create_table(cluster.address, "t", WORKLOAD)
        with Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=500) as producers:
            producers.start("one")
            producers.wait_acked("one", 500)
            assert cluster.drain("coordinator-1") == 0
            ahead = SetClock(int((time.time() + 400 * DAY) * 1000))
            with open_table(url, take_over=True, system=system(ahead)) as table:
                table.own()  # its FENCE issues times
            cluster.start("coordinator-1")
            with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
                wait_for_alarm(hg, "adopt TABLE --future-times")
            command = [
                sys.executable,
                "-m",
                "headgate_cli",
                "table",
                "adopt",
                "t",
                "--future-times",
                "--connect",
                cluster.address,
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            producers.wait_acked("one", producers.history("one").attempts[-1].sent + 1)
            cluster.restart("coordinator-1")
            producers.wait_acked("one", producers.history("one").attempts[-1].sent + 1)
            producers.finish()
        assert_exactly_once(url, producers.histories(), WORKLOAD)
    completions = [commit.completion for commit in open_table(url).commits()]
    assert completions == sorted(completions)
    assert parse_time(completions[-1]) < ahead.now + HOUR * 1000
