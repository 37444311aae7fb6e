"""A table is dropped while producers send rows, owners die and sleep, and others go on (rules D5 to D8)."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from headgate_cli.main import run
from headgate_tables.hudi import open_table
from headgate_tables.storage.open import open_store
from headgate_tables.system import System
from support.cluster import Cluster
from support.processes import READY_S
from support.readers import read_by_hudi_rs, without_meta
from support.s3 import real_s3

pytestmark = pytest.mark.slow

SCHEMA = pa.schema({"id": pa.string(), "n": pa.int64()})
OTHER = pa.schema({"key": pa.int64(), "city": pa.string()})
SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--service-interval", "500ms"]}


class Sender(threading.Thread):
    """Sends rows until its channel fails; ``failure`` says why."""

    def __init__(self, table: headgate.Table, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._table = table
        self.failure: headgate.HeadgateError | None = None
        self.sent = threading.Event()
        self.stop = threading.Event()
        self.committed = 0

    def run(self) -> None:
        try:
            with self._table.channel(self.name) as channel:
                n = 0
                while not self.stop.is_set():
                    n += 1
                    channel.upsert([{"id": f"{self.name}-{n}", "n": n}])
                    if n % 20 == 0:
                        channel.flush("queryable")
                        self.committed = n
                        self.sent.set()
        except headgate.HeadgateError as error:
            self.failure = error


def sending(*tables: headgate.Table) -> list[Sender]:
    senders = [Sender(table, f"s{number}") for number, table in enumerate(tables)]
    for each in senders:
        each.start()
    for each in senders:
        assert each.sent.wait(READY_S), each.failure
    return senders


def test_producers_of_a_dropped_table_are_told_and_others_go_on(tmp_path: Path) -> None:
    """Rule D5."""
    store = tmp_path / "cluster/store"
    with (
        Cluster(tmp_path / "cluster", compactors=1, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        goes, stays = (hg.create_table(name, SCHEMA, key="id") for name in ("goes", "stays"))
        dropped, also, kept = sending(goes, goes, stays)
        (store / "goes/README").write_text("of somebody else")
        planned = goes.drop(plan_only=True)
        assert (planned.at, planned.left) == (None, ("README",))
        done = goes.drop()
        assert done.at is not None
        assert done.files >= planned.files > 0
        assert done.left == ("README",)
        for each in (dropped, also):
            each.join(READY_S)
            assert isinstance(each.failure, headgate.TableDroppedError), each.failure
            assert "was dropped at 2" in str(each.failure)
        assert sorted(path.name for path in (store / "goes").rglob("*")) == [".headgate-dropped", "README"]
        assert [table.name for table in hg.tables()] == ["stays"]
        assert hg.unreadable_tables() == []
        assert goes.drop().at == done.at  # as after an answer that was lost
        with pytest.raises(headgate.TableDroppedError, match="was dropped at 2"):
            hg.table("goes")
        kept.sent.clear()
        assert kept.sent.wait(READY_S)
        kept.stop.set()
        kept.join(READY_S)
        assert kept.failure is None


def test_an_old_producer_never_sends_into_the_new_table_of_the_name(tmp_path: Path) -> None:
    """Rule D8."""
    with (
        Cluster(tmp_path / "cluster", writers=1, links=True, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        old = hg.create_table("t", SCHEMA, key="id")
        channel = old.channel("c")
        channel.upsert([{"id": "old", "n": 1}])
        channel.flush("queryable")
        cluster.cut("client", "writer-1")
        channel.upsert([{"id": "old", "n": 2}])
        done = old.drop()
        new = hg.create_table("t", SCHEMA, key="id")
        assert new.info.url == f"{old.info.url}~2"
        cluster.heal("client", "writer-1")
        with pytest.raises(headgate.TableDroppedError):
            channel.flush("queryable")
        with new.channel("c") as fresh:
            assert fresh.committed_offset == 0
            fresh.upsert([{"id": "new", "n": 3}])
        with pytest.raises(headgate.TableDroppedError):
            old.channel("c")
        assert old.drop().at == done.at
        assert read_by_hudi_rs(tmp_path / "cluster/store/t~2")["n"].to_pylist() == [3]
        cluster.restart("coordinator-1")
        assert [table.info.url for table in [hg.table("t")]] == [new.info.url]
        with new.channel("c") as again:
            assert again.committed_offset == 1


@pytest.mark.parametrize(
    "step",
    ["drop_sent:1", "drop_won:1", "dropped_file:1", "dropped_file:9", "dropped_folder:9", "tombstone_made:1", "log_removed:1"],
)
def test_a_drop_whose_owner_is_killed_is_not_begun_or_is_finished_by_the_next(tmp_path: Path, step: str) -> None:
    """Rule D5."""
    store = tmp_path / "cluster/store"
    with (
        Cluster(tmp_path / "cluster", options=SOON, coordinators=2) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table("t", SCHEMA, key="id")
        (sender,) = sending(table)
        for number in (1, 2):
            cluster.kill(f"coordinator-{number}")
        cluster.start("coordinator-1", kill_at=step)
        (store / "t/README").write_text("of somebody else")
        answered = threading.Event()

        def drop() -> None:
            assert table.drop().at is not None
            answered.set()

        thread = threading.Thread(target=drop, daemon=True)
        thread.start()
        cluster.wait_dead("coordinator-1")
        cluster.start("coordinator-2")
        assert answered.wait(READY_S)
        sender.join(READY_S)
        assert isinstance(sender.failure, headgate.TableDroppedError)
        assert sorted(path.name for path in (store / "t").rglob("*")) == [".headgate-dropped", "README"]
        assert hg.tables() == []
        use_again(hg, table, sender.name)
        assert without_meta(read_by_hudi_rs(store / "t~2")).to_pylist() == [{"key": 1, "city": "Bern"}]


def use_again(hg: headgate.Headgate, old: headgate.Table, channel: str) -> headgate.Table:
    """Makes a table of the old one's name at once, with another definition, and sends a row through a channel of an old name."""
    new = hg.create_table(old.info.name, OTHER, key="key")
    assert new.info.url == f"{old.info.url}~2"
    with new.channel(channel) as fresh:
        assert fresh.committed_offset == 0
        fresh.upsert([{"key": 1, "city": "Bern"}])
    with pytest.raises(headgate.TableDroppedError):
        old.channel(channel)
    return new


@pytest.mark.parametrize("step", ["drop_won:1", "dropped_file:2", "tombstone_made:1"])
def test_in_an_object_store_the_next_owner_finishes_and_the_name_is_free(tmp_path: Path, step: str) -> None:
    """Rules D5, D6, D8."""
    (tmp_path / "s3").mkdir()
    with real_s3(tmp_path / "s3") as s3:
        env = {f"AWS_{name.upper()}": value for name, value in s3.options.items()}
        place = s3.make_bucket("lake") + "/store"
        with (
            Cluster(tmp_path / "cluster", options=SOON, store=place, env=env, kill_at={"coordinator-1": step}) as cluster,
            headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
        ):
            old = hg.create_table("t", SCHEMA, key="id")
            (sender,) = sending(old)
            dropping = threading.Thread(target=old.drop, daemon=True)
            dropping.start()
            cluster.wait_dead("coordinator-1")
            cluster.start("coordinator-1")
            dropping.join(READY_S)
            sender.join(READY_S)
            assert isinstance(sender.failure, headgate.TableDroppedError)
            left = open_store(old.info.url, s3.options, System.real().ids).list_folder("")
            # The writer may still have been uploading what no slot has decided (rule D6, its limit).
            in_flight = [name for name in left.files if ".log." in name]
            assert len({name.split("_")[1].partition(".")[0] for name in in_flight}) <= 1, in_flight
            assert ([name for name in left.files if name not in in_flight], left.folders) == ([".headgate-dropped"], [".hoodie"])
            with open_table(use_again(hg, old, sender.name).info.url, storage_options=s3.options) as table:
                assert table.scan().to_table().to_pylist() == [{"key": 1, "city": "Bern"}]


def test_a_load_makes_the_table_again_and_loads_the_whole_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file was loaded into the dropped table before: nothing of that counts any more."""
    file = tmp_path / "rows.csv"
    file.write_text("id,n\na,1\nb,2\n")
    with (
        Cluster(tmp_path / "cluster", writers=1, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        load = ["load", str(file), "--table", "t", "--create", "--key", "id", "--connect", cluster.address]
        for place in ("t", "t~2"):
            assert run(load) == 0, capsys.readouterr().err
            assert sorted(read_by_hudi_rs(tmp_path / "cluster/store" / place)["n"].to_pylist()) == [1, 2]
            assert hg.table("t").drop().files > 0


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_an_owner_and_a_writer_that_slept_through_the_drop_write_nothing(tmp_path: Path) -> None:
    """Rule D6."""
    store = tmp_path / "cluster/store"
    quick = {"coordinator": [*SOON["coordinator"], "--lease-ttl", "3s", "--lease-renewal", "500ms", "--writer-timeout", "3s"]}
    with (
        Cluster(tmp_path / "cluster", options=quick, coordinators=2) as cluster,
        headgate.connect([cluster.address_of(f"coordinator-{n}") for n in (1, 2)], timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table("t", SCHEMA, key="id")
        (sender,) = sending(table)
        while not (owner := hg.status("t").tables[0].owner):  # a coordinator that has not heard of the lease yet
            continue
        asleep = [owner, "writer-1"]
        for name in asleep:
            cluster.pause(name)
        table.drop()
        left = names_in(store / "t")
        assert left == [".headgate-dropped"]
        with hg.create_table("t", SCHEMA, key="id").channel("c") as channel:
            channel.upsert([{"id": "new", "n": 1}])
            for name in asleep:
                cluster.resume(name)
            sender.join(READY_S)
            assert isinstance(sender.failure, headgate.TableDroppedError), sender.failure
            channel.upsert([{"id": "new", "n": 2}])
        assert names_in(store / "t") == left
        assert read_by_hudi_rs(store / "t~2")["n"].to_pylist() == [2]


def test_the_command_asks_for_the_name_and_finishes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        Cluster(tmp_path / "cluster", writers=1, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        with hg.create_table("t", SCHEMA, key="id").channel("c") as channel:
            channel.upsert([{"id": "a", "n": 1}])
        assert run(["table", "drop", "t", "--connect", cluster.address, "--json"]) == 2
        assert run(["table", "drop", "t", "--now", "--connect", cluster.address, "--yes"]) == 0
        assert "t is dropped: 1 data file," in capsys.readouterr().out
        assert run(["table", "drop", "t", "--now", "--connect", cluster.address, "--yes"]) == 3
        assert "was dropped at 2" in capsys.readouterr().err
