"""Columns are added while producers of the old and of the new columns send, owners die, and plans are open (rule C7)."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from headgate_tables.hudi import open_table
from support.cluster import Cluster
from support.compacted import compactions, until
from support.exactly_once import assert_exactly_once
from support.gates import assert_gates, gate_sender
from support.processes import READY_S
from support.producers import Producers, create_table
from support.readers import read_by_hudi_rs
from support.workload import Workload

pytestmark = pytest.mark.slow

SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
WORKLOAD = Workload(hot_keys=20, partitions=2)


def alter(address: str, **change: object) -> headgate.Alteration:
    """The call goes on over a restart of the owner."""
    with headgate.connect(address, timeout=READY_S, wait=READY_S) as hg:
        return hg.table("t").alter(add=change)


@pytest.mark.parametrize("step", ["", "alter_sent:1", "alter_won:1"])
def test_producers_of_old_and_new_columns_lose_nothing_while_columns_are_added(tmp_path: Path, step: str) -> None:
    kill_at = {"coordinator-1": step} if step else {}
    with Cluster(tmp_path / "cluster", options=SOON, kill_at=kill_at) as cluster:
        url = create_table(cluster.address, "t", WORKLOAD)
        with Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=1_000) as producers:
            for name in ("one", "two"):
                producers.start(name)
                producers.wait_acked(name, 500)
            with ThreadPoolExecutor(1) as asking:
                asked = asking.submit(alter, cluster.address, gate=pa.string())
                if step:
                    cluster.wait_dead("coordinator-1")
                    cluster.start("coordinator-1")
                # A repeated call finds it done.
                assert asked.result().added == (() if step == "alter_won:1" else ("gate: string",))
            with gate_sender(cluster.address, "new", WORKLOAD) as new:
                new.wait_acked(500)
                assert alter(cluster.address, more=pa.int64()).added == ("more: int64",)
                new.wait_acked(new.history.acked + 500)
                for name in ("one", "two"):
                    producers.wait_acked(name, producers.history(name).attempts[-1].sent)
            producers.finish()
        assert_exactly_once(url, [*producers.histories(), new.history], WORKLOAD)
        assert_gates(url, new)
        with open_table(url) as table:
            assert table.schema.names[-2:] == ["gate", "more"]
            assert table.verify().ok


def test_a_compactor_that_slept_through_an_alteration_finishes_its_operation_and_nothing_is_lost(tmp_path: Path) -> None:
    # A late row behind a delete that is compacted away is visible again (rule DE2), so the later write wins here.
    workload = Workload(event_time=False, hot_keys=20, partitions=2)
    services = ["--service-interval", "100ms", "--compactor-timeout", "3s", "--compaction-pause", "100ms"]
    options = {"coordinator": [*SOON["coordinator"], *services]}
    pause_at = {"compactor-1": "operation_claimed:1"}
    with Cluster(tmp_path / "cluster", compactors=1, options=options, pause_at=pause_at) as cluster:
        url = create_table(cluster.address, "t", workload)
        with headgate.connect(cluster.address) as hg:
            often = {"hoodie.compact.inline.max.delta.commits": "2", "headgate.compaction.first.delta.commits": "1"}
            hg.table("t").configure(often)
        with Producers(cluster.address, "t", workload, tmp_path, rows=0, rate=1_000) as producers:
            producers.start("one")
            cluster.wait_stopped("compactor-1")
            alter(cluster.address, gate=pa.string())
            with gate_sender(cluster.address, "new", workload) as new:
                new.wait_acked(500)
                cluster.resume("compactor-1")
                before = compactions(open_table(url))
                until(url, lambda table: compactions(table) > before + 2)
                new.wait_acked(new.history.acked + 200)
            producers.finish()
        assert_exactly_once(url, [*producers.histories(), new.history], workload)
        assert_gates(url, new)


def test_a_restore_takes_the_columns_back_and_a_producer_of_the_new_ones_is_told(tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.string(), "n": pa.int64()})
    with Cluster(tmp_path / "cluster", options=SOON) as cluster, headgate.connect(cluster.address) as hg:
        table = hg.create_table("t", schema, key="id")
        with table.channel("c") as channel:
            channel.upsert([{"id": "a", "n": 1}])
            channel.flush("queryable")
        saved = table.savepoint()
        table.alter(add={"gate": str})
        with table.channel("c") as channel:
            channel.upsert([{"id": "b", "n": 2, "gate": "A1"}])
            channel.flush("queryable")
        table.restore(saved)
        with table.channel("c") as channel, pytest.raises(headgate.RowError, match="gate"):
            channel.upsert([{"id": "b", "n": 2, "gate": "A1"}])
        assert hg.table("t").info.schema == schema
        with hg.table("t").channel("d") as channel:
            channel.upsert([{"id": "c", "n": 3}])
    rows = read_by_hudi_rs(tmp_path / "cluster" / "store" / "t").select(["id", "n"]).to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == [{"id": "a", "n": 1}, {"id": "c", "n": 3}]
