"""A disk that is full for a while: what clients have sent stays where it is until it can be written."""

from pathlib import Path

import pytest

import headgate
from support.alarms import wait_for_alarm
from support.cluster import Cluster
from support.disks import fill_up, small_disk
from support.exactly_once import assert_exactly_once
from support.processes import READY_S
from support.producers import Producers, create_table
from support.workload import Workload

pytestmark = pytest.mark.slow

WORKLOAD = Workload()
TRIES = 8
"""So often the store refuses before the disk has room again: some seconds, of which each was several generations."""


def test_a_full_disk_is_waited_out_without_everybody_sending_everything_again_and_again(tmp_path: Path) -> None:
    """It was given up four to eight times a second."""
    options = {"coordinator": ["--checkpoint-interval", "1s", "--writer-timeout", "20s"]}
    with (
        small_disk(tmp_path / "disk", 256 << 20) as disk,
        Cluster(tmp_path / "cluster", store=f"file://{disk}", options=options) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        url = create_table(cluster.address, "t", WORKLOAD, limited=False)
        with Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=1000) as producers:
            for name in ("one", "two"):
                producers.start(name)
            producers.wait_acked("one", 1000)
            filler = fill_up(disk)
            wait_for_alarm(hg, "the store has been full since", times=TRIES)
            assert hg.status("t").tables[0].generation <= 3, "a flush that fails ends one; nothing is begun after that"
            filler.unlink()
            producers.wait_acked("one", producers.history("one").attempts[-1].sent)
            producers.finish()
        assert_exactly_once(url, producers.histories(), WORKLOAD)
