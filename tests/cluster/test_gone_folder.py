"""A table's folder, or the whole store, is moved away or removed by hand: nothing of it is made anew."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from support.alarms import wait_for_alarm, wait_until_quiet
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.processes import READY_S
from support.producers import Producers, create_table
from support.readers import read_by_hudi_rs
from support.workload import Workload

pytestmark = pytest.mark.slow

SCHEMA = pa.schema({"id": pa.string(), "n": pa.int64()})
SOON = {
    "coordinator": [
        "--checkpoint-interval",
        "500ms",
        "--checkpoint-min-interval",
        "100ms",
        "--service-interval",
        "1s",
        "--writer-timeout",
        "20s",
    ]
}
WORKLOAD = Workload()


def alarms(hg: headgate.Headgate, table: str) -> str:
    (found,) = hg.status(table).tables
    assert found.state != "quarantined", found.alarms
    return "\n".join(found.alarms)


def until_refused(call: Callable[[], object], why: str) -> None:
    """Returns once a try ends for that reason, and not because no answer came in its time. Fails for a try that succeeds."""
    for _ in range(60):
        with pytest.raises(headgate.UnavailableError) as refused:
            call()
        if why in str(refused.value):
            return
    pytest.fail(str(refused.value))


def test_a_folder_that_was_moved_away_is_not_made_anew_and_the_table_goes_on_when_it_is_back(tmp_path: Path) -> None:
    store, away = tmp_path / "cluster/store", tmp_path / "away"
    with (
        Cluster(tmp_path / "cluster", compactors=1, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        url = create_table(cluster.address, "t", WORKLOAD)
        with Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=500, timeout=300) as producers:
            for name in ("one", "two"):
                producers.start(name)
                producers.wait_acked(name, 500)
            (store / "t").rename(away)
            wait_for_alarm(hg, f"{store}/t")
            cluster.restart("coordinator-1")  # also one that knows nothing of it waits
            wait_for_alarm(hg, f"{store}/t")
            assert not (store / "t").exists(), sorted((store / "t").rglob("*"))
            away.rename(store / "t")
            for history in producers.histories():
                producers.wait_acked(history.producer, history.attempts[-1].sent + 500)
            producers.finish()
        wait_until_quiet(hg, f"{store}/t")
        assert_exactly_once(url, producers.histories(), WORKLOAD)


def test_while_the_stores_disk_is_not_mounted_everybody_waits_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    store, disk = tmp_path / "cluster/store", tmp_path / "disk"
    with (
        Cluster(tmp_path / "cluster", coordinators=2, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        url = create_table(cluster.address, "t", WORKLOAD)
        with Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=500, timeout=300) as producers:
            producers.start("one")
            producers.wait_acked("one", 500)
            store.rename(disk)
            store.mkdir()  # the bare mount point
            for coordinator in cluster.address.split(","):
                with headgate.connect(coordinator, timeout=READY_S, wait=READY_S) as asked:
                    wait_for_alarm(asked, "the store's tables cannot be listed")
            with headgate.connect(cluster.address, timeout=1) as hasty:
                until_refused(lambda: hasty.create_table("new", SCHEMA, key="id"), "the table's storage does not answer")
                until_refused(lambda: hasty.table("other"), "the table's storage does not answer")
            store.rmdir()  # nothing was made in it
            disk.rename(store)
            (history,) = producers.histories()
            producers.wait_acked("one", history.attempts[-1].sent + 500)
            producers.finish()
        wait_until_quiet(hg, "cannot be listed")
        assert [table.name for table in hg.tables()] == ["t"]
        assert_exactly_once(url, producers.histories(), WORKLOAD)


def test_a_folder_that_was_removed_keeps_nobody_from_other_tables_and_can_be_forgotten(tmp_path: Path) -> None:
    store = tmp_path / "cluster/store"
    with (
        Cluster(tmp_path / "cluster", writers=1, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        for name in ("gone", "kept"):
            with hg.create_table(name, SCHEMA, key="id").channel("c") as channel:
                channel.upsert([{"id": "a", "n": 1}])
        shutil.rmtree(store / "gone")
        wait_for_alarm(hg, f"{store}/gone", "gone")  # nobody writes to it
        cluster.restart("coordinator-1")
        assert [table.name for table in hg.tables()] == ["kept"]
        assert hg.unreadable_tables() == ["gone"]
        with hg.create_table("new", SCHEMA, key="id").channel("c") as channel:
            channel.upsert([{"id": "a", "n": 2}])
        with hg.table("kept").channel("c") as channel:
            channel.upsert([{"id": "a", "n": 3}])
        with headgate.connect(cluster.address, timeout=1) as hasty:
            until_refused(lambda: hasty.create_table("gone", SCHEMA, key="id", exist_ok=True), "not at its place")
            until_refused(lambda: hasty.table("gone"), "not at its place")
        assert not (store / "gone").exists()
        assert not alarms(hg, "kept")
        (store / ".headgate/tables/gone").unlink()  # what docs/operations.md says forgets it
        with pytest.raises(headgate.TableNotFoundError):
            hg.table("gone")
        with hg.create_table("gone", SCHEMA, key="id").channel("c") as channel:
            assert channel.committed_offset == 0
            channel.upsert([{"id": "a", "n": 4}])
        assert [read_by_hudi_rs(store / name)["n"].to_pylist() for name in ("kept", "new", "gone")] == [[3], [2], [4]]


def test_a_table_that_is_forgotten_and_made_again_before_its_owner_looks_begins_anew(tmp_path: Path) -> None:
    """The owner of before would write into the new one's log, behind a gap that quarantines it for good."""
    store = tmp_path / "cluster/store"
    options = {"coordinator": [*SOON["coordinator"], "--scan-interval", "60s", "--service-interval", "60s"]}
    with (
        Cluster(tmp_path / "cluster", writers=1, options=options) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        for number in range(3):
            with hg.create_table("t", SCHEMA, key="id", exist_ok=True).channel("c") as channel:
                channel.upsert([{"id": "a", "n": number}])
        (store / ".headgate/tables/t").unlink()
        (store / "t").rename(tmp_path / "removed")
        with hg.create_table("t", SCHEMA, key="id").channel("c") as channel:
            assert channel.committed_offset == 0
            channel.upsert([{"id": "b", "n": 4}])
        assert read_by_hudi_rs(store / "t")["n"].to_pylist() == [4]
        wait_until_quiet(hg, f"{store}/t")
