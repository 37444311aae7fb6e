"""A table's folder is put back from an older copy, whose epochs the writers have long left behind."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from headgate_tables.hudi import open_table
from support.cluster import Cluster
from support.processes import READY_S
from support.producers import create_table
from support.workload import Workload

pytestmark = pytest.mark.slow

SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms"]}
WORKLOAD = Workload(event_time=False, deletes=False)


def send(hg: headgate.Headgate, channel: str, rows: pa.Table) -> None:
    with hg.table("t").channel(channel) as opened:
        opened.write(rows, offset=rows.num_rows)
        opened.flush("queryable")


def test_r6_writers_take_a_table_whose_folder_was_put_back_from_an_older_copy_without_a_restart(tmp_path: Path) -> None:
    store, copy = tmp_path / "cluster/store", tmp_path / "copy"
    with (
        Cluster(tmp_path / "cluster", options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        url = create_table(cluster.address, "t", WORKLOAD)
        send(hg, "before", WORKLOAD.rows("before", 1, 10, 1))
        shutil.copytree(store / "t", copy)
        for number in range(3):
            cluster.restart("coordinator-1")
            send(hg, f"lost {number}", WORKLOAD.rows("lost", 1, 10, 1))
        newest = open_table(url).epoch
        cluster.kill("coordinator-1")
        shutil.rmtree(store / "t")
        copy.rename(store / "t")
        assert open_table(url).epoch < newest - 1
        cluster.restart("coordinator-1")
        send(hg, "after", WORKLOAD.rows("after", 1, 10, 1))
        table = open_table(url)
        assert (table.epoch > newest, sorted(table.channels)) == (True, ["after", "before"])
