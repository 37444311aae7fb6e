"""Operating a table from Python, blocking and with asyncio, on a real cluster."""

import asyncio
import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

import headgate
from support.cluster import Cluster
from support.processes import READY_S
from support.scene import keys_of

ROWS = [{"id": number, "note": "a"} for number in range(10)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(Path(tmp_path_factory.mktemp("operating")) / "cluster", compactors=1) as cluster:
        yield cluster


@pytest.fixture
def table(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[headgate.Table]:
    with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
        table = hg.create_table(request.node.name[:60], [("id", int), ("note", str)], key="id", buckets=1)
        with table.channel("c") as channel:
            channel.upsert(ROWS)
        yield table


def test_a_restore_takes_the_table_back_to_its_savepoint(table: headgate.Table) -> None:
    saved = table.savepoint("before the mistake")
    assert table.savepoints() == [saved]
    with table.channel("c") as channel:
        channel.delete(ROWS[:5])
    planned = table.restore(saved, plan_only=True)
    assert (planned.instant, len(planned.undone)) == ("", 1)
    assert len(keys_of(table.info.url)) == 5
    restored = table.restore(saved)
    assert restored.instant > saved
    assert restored.undone == planned.undone
    assert len(keys_of(table.info.url)) == 10
    with table.channel("c") as channel:
        assert channel.committed_offset == 10
    table.remove_savepoint(saved)
    assert table.savepoints() == []


def test_a_savepoint_that_is_not_there_is_an_error_that_says_so(table: headgate.Table) -> None:
    with pytest.raises(headgate.FixCall):
        table.restore("20200101000000000")


def test_a_dropped_table_is_gone_and_its_name_is_free_for_another(cluster: Cluster, table: headgate.Table) -> None:
    assert table.drop(plan_only=True) == headgate.TableDrop(None, "", 1, (planned := table.drop(plan_only=True)).bytes, (), 0)
    done = table.drop()
    assert (done.files, done.bytes, done.left) == (1, planned.bytes, ())
    assert done.at is not None
    with headgate.connect(cluster.address, timeout=READY_S) as hg:
        for call in (lambda: hg.table(table.info.name), table.compact, table.savepoints, lambda: table.channel("c")):
            with pytest.raises(headgate.TableDroppedError, match=f"was dropped at {done.at:%Y-%m-%d %H:%M:%S} UTC"):
                call()
        again = hg.create_table(table.info.name, [("id", int)], key="id")
        assert (again.info.uuid, again.info.url) != (table.info.uuid, table.info.url)
        assert table.drop() == headgate.TableDrop(done.at, done.by, 0, 0, (), 0)
        assert hg.table(table.info.name).info == again.info
        other = hg.create_table(f"{table.info.name[:50]}-2", [("id", int)], key="id")
        again.drop()
        with pytest.raises(headgate.TableDroppedError):
            table.drop()
        assert other.drop().files == 0


def test_settings_are_changed_unset_and_shown(table: headgate.Table) -> None:
    name = "hoodie.compact.inline.max.delta.commits"
    before = table.configure()
    assert table.configure({name: "17"})[name] == "17"
    assert table.configure()[name] == "17"
    assert table.configure(unset=[name]) == before


def test_a_compaction_is_over_when_the_call_returns(table: headgate.Table) -> None:
    done = table.compact()
    assert (len(done.plans), done.finished, done.dropped, done.cancelled) == (1, 1, 0, 0)
    assert table.compact().plans == ()


def test_channels_say_how_far_their_producers_have_come(table: headgate.Table) -> None:
    began = datetime.datetime.now(datetime.UTC)
    with table.channel("loader-1") as channel:
        channel.upsert(ROWS[:3])
    with table.channel("loader-2"):
        pass
    with table.channel("c") as channel:
        channel.delete(ROWS[:1])
    found = table.channels()
    assert [(each.name, each.committed_offset, each.incarnation) for each in found] == [
        ("c", 11, 2),
        ("loader-1", 3, 1),
        ("loader-2", 0, 1),
    ]
    assert all(began <= each.last_used <= datetime.datetime.now(datetime.UTC) for each in found)
    assert table.channels("loader-") == found[1:]
    assert table.channels("nobody") == []


def test_the_same_is_there_for_asyncio(cluster: Cluster, table: headgate.Table) -> None:
    async def operate() -> tuple[list[str], str]:
        async with headgate.aio.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
            same = await hg.table(table.info.name)
            saved = await same.savepoint()
            return await same.savepoints(), saved

    found, saved = asyncio.run(operate())
    assert found == [saved]
