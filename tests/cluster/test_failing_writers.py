"""One table's flushes fail at one writer: the table goes on with the others (rule RO13), with real processes."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from support.alarms import wait_for_alarm, wait_until_quiet
from support.cluster import Cluster
from support.processes import READY_S
from support.readers import read_by_hudi_rs

SCHEMA = pa.schema({"id": pa.string(), "part": pa.string(), "n": pa.int64()})
SOON = {"coordinator": ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
PARTS, ROWS = 40, 400
"""Enough partitions that each writer has the buckets of some."""


def send(channels: Sequence[headgate.Channel], first: int) -> None:
    """Rows for both writers, until readers see them."""
    for channel in channels:
        channel.upsert([{"id": f"k{n}", "part": f"p{n % PARTS}", "n": n} for n in range(first, first + ROWS)])
    for channel in channels:
        channel.flush("queryable")


@pytest.mark.slow
def test_ro13_a_table_whose_flushes_fail_at_one_writer_goes_on_with_the_other(tmp_path: Path) -> None:
    """It stood still until an operator restarted that writer."""
    plant = {"writer-2": ("fails_flushes",)}
    with (
        Cluster(tmp_path / "cluster", options=SOON, plant=plant) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        bad, good = (hg.create_table(name, SCHEMA, key="id", partition_by="part", buckets=1) for name in ("t", "good"))
        with bad.channel("c") as channel, good.channel("c") as other:
            send([channel, other], 0)
            alarm = wait_for_alarm(hg, "is excluded for")
            send([channel, other], ROWS)
        status = hg.status("good").tables[0]
    assert f"at {cluster.address_of('writer-2')} is excluded for" in alarm
    assert "it could not go on 3 times within 300 s, and others could; the last time: KeyError: 'planted'" in alarm
    assert (status.generation, status.alarms) == (1, ()), "the other table of that writer goes on as before"
    for name in ("t", "good"):
        found = read_by_hudi_rs(tmp_path / "cluster" / "store" / name)
        assert sorted(found["n"].to_pylist()) == list(range(2 * ROWS))


@pytest.mark.slow
def test_ro13_a_writer_that_has_recovered_has_a_part_again_without_an_abort(tmp_path: Path) -> None:
    plant = {"writer-2": ("fails_three_flushes",), "coordinator": ("excludes_briefly",)}
    with (
        Cluster(tmp_path / "cluster", options=SOON, plant=plant) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table("t", SCHEMA, key="id", partition_by="part", buckets=1)
        with table.channel("c") as channel:
            send([channel], 0)
            generation = hg.status("t").tables[0].generation
            wait_until_quiet(hg, "is excluded for")
            send([channel], ROWS)
            send([channel], 2 * ROWS)
        assert hg.status("t").tables[0].generation == generation
        log = (tmp_path / "cluster" / "logs" / "writer-2.log").read_text()
        attached = [line for line in log.splitlines() if "table attached" in line]
    assert generation == 4, "each of three failures aborts one"
    assert len([line for line in attached if "generation=4" in line]) == 2, "as one that is excluded, and with a part again"
    found = read_by_hudi_rs(tmp_path / "cluster" / "store" / "t")
    assert sorted(found["n"].to_pylist()) == list(range(3 * ROWS))
