"""Operating a table from Python, blocking and with asyncio, on a real cluster."""

import asyncio
import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from support.cluster import Cluster
from support.processes import READY_S
from support.readers import read_by_hudi_rs
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert table.configure({name: 18})[name] == "18"
    assert table.configure(unset=[name]) == before


@pytest.mark.slow
def test_a_compaction_that_sorts_rewrites_base_files_without_logs_and_does_so_once(table: headgate.Table) -> None:
    table.compact()
    with pytest.raises(headgate.InvalidArgumentError, match="no order to be sorted in"):
        table.compact(sort=True)
    with pytest.raises(headgate.InvalidArgumentError, match="no column 'nte' to sort by"):
        table.configure({"hoodie.clustering.plan.strategy.sort.columns": "nte"})
    table.configure({"hoodie.clustering.plan.strategy.sort.columns": "note"})
    assert table.compact().plans == ()
    assert table.compact(sort=True).finished == 1
    assert table.compact(sort=True).plans == ()
    assert len(keys_of(table.info.url)) == 10


@pytest.mark.slow
def test_a_compaction_is_over_when_the_call_returns(table: headgate.Table) -> None:
    done = table.compact()
    assert (len(done.plans), done.finished, done.dropped, done.cancelled) == (1, 1, 0, 0)
    assert table.compact().plans == ()


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_table_gets_columns_and_a_channel_that_was_open_goes_on_without_them(cluster: Cluster, table: headgate.Table) -> None:
    with table.channel("old") as old:
        old.upsert({"id": 20, "note": "before"})
        changed = table.alter(add={"gate": str, "spot": pa.struct([("x", pa.int32())])}, widen={"id": int})
        assert (changed.added, changed.widened) == (("gate: string", "spot: struct<x: int32>"), ())
        assert table.info.schema == changed.schema
        old.upsert({"id": 21, "note": "after"})
        with table.channel("new") as new:
            new.upsert({"id": 22, "note": "new", "gate": "A1", "spot": {"x": 1}})
            with pytest.raises(headgate.FixCall, match="gata"):
                new.upsert({"id": 23, "note": "new", "gata": "A1"})
    assert table.alter(add={"spot.y": float}, plan_only=True).added == ("spot.y: double",)
    assert table.alter(add={"gate": str}).added == ()
    found = {row["id"]: (row["gate"], row["spot"]) for row in read_by_hudi_rs(Path(table.info.url[7:])).to_pylist()}
    assert {number: found[number] for number in (0, 20, 21, 22)} == {
        0: (None, None),
        20: (None, None),
        21: (None, None),
        22: ("A1", {"x": 1}),
    }
    with pytest.raises(headgate.SchemaError, match="'note' is string and cannot become int64"):
        table.alter(widen={"note": int})


@pytest.mark.slow
def test_a_program_that_knows_the_table_of_before_opens_a_channel_with_the_columns_of_now(
    cluster: Cluster, table: headgate.Table
) -> None:
    with headgate.connect(cluster.address) as hg:
        hg.table(table.info.name).alter(add={"gate": str})
    assert "gate" not in table.info.schema.names
    with table.channel("c") as channel:
        channel.upsert({"id": 0, "note": "again", "gate": "A1"})
    rows = read_by_hudi_rs(Path(table.info.url[7:])).to_pylist()
    assert [row["gate"] for row in rows if row["id"] == 0] == ["A1"]


@pytest.mark.slow
def test_a_producer_of_the_narrow_type_goes_on_behind_a_widening(cluster: Cluster, request: pytest.FixtureRequest) -> None:
    schema = pa.schema({"id": pa.string(), "n": pa.int32(), "m": pa.int32(), "f": pa.float32(), "d": pa.decimal128(5, 2)})
    row = {"id": "a", "n": 1, "m": 2, "f": 0.5, "d": decimal.Decimal("1.25")}
    with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
        table = hg.create_table(request.node.name[:60], schema, key="id", buckets=1)
        with table.channel("old") as old:
            old.upsert(row)
            old.flush("queryable")
            wide = {"n": pa.int64(), "m": pa.float64(), "f": pa.float64(), "d": pa.decimal128(18, 2)}
            assert len(table.alter(widen=wide).widened) == 4
            old.upsert(row | {"id": "b"})
            old.upsert(pa.table({name: [value] for name, value in (row | {"id": "c"}).items()}, schema))
            with table.channel("new") as new:
                new.upsert(row | {"id": "d", "n": 2**40})
        table.compact()
        found = {each["id"]: each for each in read_by_hudi_rs(Path(table.info.url[7:])).select(schema.names).to_pylist()}
    assert found == {key: row | {"id": key} for key in "abc"} | {"d": row | {"id": "d", "n": 2**40}}
