"""The table version of a running cluster's table changes, and its owner dies in the middle of it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import headgate
from headgate.maintenance import Maintenance
from headgate_tables.hudi import open_table
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.processes import READY_S
from support.producers import Producers, create_table
from support.tables import by_hudi_rs
from support.workload import Workload

SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}


def change(cluster: Cluster, version: int) -> int:
    """Returns the version before; the call goes on over a restart of the owner."""

    async def ask() -> int:
        async with headgate.aio.connect(cluster.address, timeout=READY_S) as hg:
            return await Maintenance(hg, "t").change_version(version)

    return asyncio.run(ask())


def agreed(url: str) -> int:
    """The version; our reader and hudi-rs open the table."""
    by_hudi_rs(url)
    with open_table(url) as table:
        return table.format_version


@pytest.mark.slow
def test_an_owner_killed_in_a_change_of_version_loses_nothing_and_the_stream_goes_on(tmp_path: Path) -> None:
    workload = Workload()
    kill_at = {"coordinator-1": "config_slot_won:1"}
    with Cluster(tmp_path / "cluster", writers=1, options=SOON, kill_at=kill_at) as cluster:
        url = create_table(cluster.address, "t", workload)
        with Producers(cluster.address, "t", workload, tmp_path, rows=0, rate=300) as producers:
            producers.start("one", wait=False)
            producers.wait_acked("one", 100)
            with ThreadPoolExecutor(1) as asking:
                asked = asking.submit(change, cluster, 9)
                cluster.wait_dead("coordinator-1")
                assert agreed(url) == 8
                cluster.start("coordinator-1")
                assert asked.result() == 9, "the new owner has ended the change, so the repeated call finds it done"
            assert agreed(url) == 9
            for version, before in ((8, 9), (9, 8)):
                assert change(cluster, version) == before
                assert agreed(url) == version
                producers.wait_acked("one", producers.history("one").attempts[-1].sent)
            producers.finish()
        assert_exactly_once(url, producers.histories(), workload)
