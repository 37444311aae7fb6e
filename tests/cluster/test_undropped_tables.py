"""Tables are dropped with a grace time while producers send, and brought back; coordinators die on the way (rule D9)."""

import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

import headgate
from headgate_cli.main import run
from support.cluster import Cluster
from support.numbered import SCHEMA, assert_each_once, owner_of, producing
from support.processes import READY_S
from support.readers import read_by_hudi_rs

pytestmark = pytest.mark.slow

OPTIONS = {
    "coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--service-interval", "300ms"],
}
WEEK = timedelta(days=7)
BEHIND_S = (0.0, 0.02, 0.1)
"""Between the beginning of a drop and the kill of its owner, which so meets the drop at different points."""
DROPPED = headgate.TableDroppedError


def test_a_table_that_is_dropped_in_the_middle_of_a_stream_comes_back_and_loses_no_row(tmp_path: Path) -> None:
    """Rule D9. A compaction is open when the table is dropped: the table's logs are due after every commit."""
    with (
        Cluster(tmp_path / "cluster", compactors=1, options=OPTIONS) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table("t", SCHEMA, key="id", buckets=2)
        table.configure({"hoodie.compact.inline.max.delta.commits": "1"})
        with producing(hg, "t", DROPPED) as producer:
            for _ in range(3):
                producer.wait_sent()
                done = table.drop(grace=WEEK)
                assert done.at is not None
                assert done.until is not None
                assert (done.files, abs(done.until - done.at - WEEK) < timedelta(seconds=5)) == (0, True)
                assert table.drop(grace=timedelta(days=1)).until == done.until  # as after an answer that was lost
                with pytest.raises(headgate.TableDroppedError, match="headgate table undrop t"):
                    hg.create_table("t", SCHEMA, key="id")
                (listed,) = hg.dropped_tables()
                assert (listed.name, listed.until, listed.uuid) == ("t", done.until, table.info.uuid)
                assert hg.tables() == []
                assert hg.status("t").tables[0].state == "dropped"
                assert hg.undrop_table("t").info.uuid == table.info.uuid
                assert hg.dropped_tables() == []
        assert any("brings it back until" in each for each in producer.told)
        assert_each_once(tmp_path / "cluster/store/t", producer)


@pytest.mark.parametrize("step", ["grace_sent:1", "grace_won:1", "grace_sent:2", "grace_won:2"])
def test_a_coordinator_that_is_killed_at_a_drop_or_a_return_is_followed_by_one_that_finishes_it(
    tmp_path: Path, step: str
) -> None:
    """Rule D9."""
    with (
        Cluster(tmp_path / "cluster", options=OPTIONS, kill_at={"coordinator-1": step}) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table("t", SCHEMA, key="id")
        restart = threading.Thread(
            target=lambda: (cluster.wait_dead("coordinator-1"), cluster.start("coordinator-1")), daemon=True
        )
        with producing(hg, "t", DROPPED) as producer:
            restart.start()
            assert table.drop(grace=WEEK).until
            hg.undrop_table("t")
            restart.join(READY_S)
        assert_each_once(tmp_path / "cluster/store/t", producer)


@pytest.mark.parametrize("behind_s", BEHIND_S)
def test_a_coordinator_that_is_killed_shortly_behind_a_drop_leaves_a_table_that_comes_back(
    tmp_path: Path, behind_s: float
) -> None:
    """Rule D9."""
    with (
        Cluster(tmp_path / "cluster", options=OPTIONS, coordinators=2) as cluster,
        headgate.connect([cluster.address_of(f"coordinator-{n}") for n in (1, 2)], timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table("t", SCHEMA, key="id")
        with producing(hg, "t", DROPPED) as producer:
            owner = owner_of(hg, "t")
            dropping = threading.Thread(target=lambda: table.drop(grace=WEEK), daemon=True)
            dropping.start()
            time.sleep(behind_s)
            cluster.kill(owner)
            dropping.join(READY_S)
            assert not dropping.is_alive()
            cluster.start(owner)
            hg.undrop_table("t")
        assert_each_once(tmp_path / "cluster/store/t", producer)


def test_when_the_grace_time_is_over_the_owner_deletes_the_files_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rule D9. Another coordinator than the one that dropped the table has it by then."""
    store = tmp_path / "cluster/store"
    with (
        Cluster(tmp_path / "cluster", options=OPTIONS, coordinators=2) as cluster,
        headgate.connect([cluster.address_of(f"coordinator-{n}") for n in (1, 2)], timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table("t", SCHEMA, key="id")
        with table.channel("c") as channel:
            channel.upsert([{"id": 1, "n": 1}])
        (store / "t/README").write_text("of somebody else")
        owner = owner_of(hg, "t")
        done = table.drop(grace=timedelta(seconds=4))
        cluster.kill(owner)
        assert read_by_hudi_rs(store / "t")["n"].to_pylist() == [1]
        deadline = time.monotonic() + READY_S
        while any((store / "t").glob(".hoodie*")) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert done.until is not None
        assert time.time() >= done.until.timestamp()
        assert sorted(path.name for path in (store / "t").rglob("*")) == [".headgate-dropped", "README"]
        with pytest.raises(headgate.TableDroppedError, match="was dropped at 2"):
            hg.undrop_table("t")
        assert hg.create_table("t", SCHEMA, key="id").info.url.endswith("/t~2")


def test_the_commands_drop_list_bring_back_and_delete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        Cluster(tmp_path / "cluster", writers=1, options=OPTIONS) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        at = ["--connect", cluster.address]
        with hg.create_table("t", SCHEMA, key="id").channel("c") as channel:
            channel.upsert([{"id": 1, "n": 1}])
        assert run(["table", "drop", "t", "--grace", "soon", "--yes", *at]) == 2
        assert run(["table", "drop", "t", "--grace", "1d", "--now", "--yes", *at]) == 2
        assert run(["table", "drop", "t", "--yes", *at]) == 0
        assert "Its files stay until 2" in capsys.readouterr().out
        assert run(["table", "list", "--dropped", *at]) == 0
        assert "t" in capsys.readouterr().out
        assert run(["table", "describe", "t", *at]) == 3
        assert "`headgate table undrop t` brings it back until 2" in capsys.readouterr().err
        assert run(["table", "undrop", "t", *at]) == 0
        assert "t is back." in capsys.readouterr().out
        assert run(["table", "undrop", "t", *at]) == 0
        assert "t was not dropped." in capsys.readouterr().out
        assert read_by_hudi_rs(tmp_path / "cluster/store/t")["n"].to_pylist() == [1]
        assert run(["table", "drop", "t", "--yes", *at]) == 0
        assert run(["table", "drop", "t", "--now", "--yes", *at]) == 0
        assert "t is dropped: 1 data file," in capsys.readouterr().out
        assert not (tmp_path / "cluster/store/t/.hoodie").exists()
