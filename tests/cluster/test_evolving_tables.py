"""Batches change a table's columns by themselves, as far as its setting ``headgate.evolve`` allows it (rule C7)."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headgate
from headgate_tables.hudi import open_table
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.gates import assert_gates, gate_sender
from support.processes import READY_S
from support.producers import Producers, create_table
from support.readers import read_by_hudi_rs
from support.workload import Workload

pytestmark = pytest.mark.slow

SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms"]}
SCHEMA = {"id": pa.string(), "n": pa.int32()}
WORKLOAD = Workload(hot_keys=20, partitions=2)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("evolving") / "cluster", options=SOON) as running:
        yield running


@pytest.fixture
def hg(cluster: Cluster) -> Iterator[headgate.Headgate]:
    with headgate.connect(cluster.address, wait=READY_S) as connected:
        yield connected


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"t{abs(hash(request.node.name)):x}"


def made(hg: headgate.Headgate, name: str, evolve: str) -> headgate.Table:
    table = hg.create_table(name, list(SCHEMA.items()), key="id")
    table.configure({"headgate.evolve": evolve})
    assert hg.table(name).info.evolve == table.info.evolve == evolve
    return table


def rows_of(table: headgate.Table) -> dict[str, dict[str, Any]]:
    found = read_by_hudi_rs(Path(table.info.url.removeprefix("file://")))
    kept = [column for column in found.schema.names if not column.startswith("_hoodie")]
    return {row["id"]: row for row in found.select(kept).to_pylist()}


def test_a_table_refuses_new_columns_by_default_and_says_which_commands_help(hg: headgate.Headgate, name: str) -> None:
    table = hg.create_table(name, list(SCHEMA.items()), key="id")
    with table.channel("c") as ch:
        with pytest.raises(headgate.RowError) as refused:
            ch.upsert([{"id": "a", "gate": "A1"}])
        assert f"headgate table alter {name} --add gate=TYPE" in refused.value.fix
        assert f"headgate configure {name} headgate.evolve=add" in refused.value.fix
        ch.upsert([{"id": "a", "n": 1}])
    assert rows_of(table) == {"a": {"id": "a", "n": 1}}


def test_each_kind_of_call_brings_new_columns_and_older_rows_are_null_there(hg: headgate.Headgate, name: str) -> None:
    table = made(hg, name, "add")
    with table.channel("c") as ch:
        ch.upsert([{"id": "a", "n": 1}])
        ch.upsert({"id": "b", "n": 2, "gate": "A1"})
        ch.upsert(pa.table({"id": ["c"], "lounge": [True]}))
        ch.upsert(pa.table({"id": ["d"], "seats": pa.array([4], pa.int16())}).to_reader())
        ch.write([{"op": "upsert", "id": "e", "note": "x"}, {"op": "delete", "id": "a"}])
        ch.upsert([{"id": "f", "place": {"zip": 1}}])
        ch.upsert([{"id": "g", "place": {"zip": 2, "street": "Main"}, "n": 7}])
    assert hg.table(name).info.schema.names == ["id", "n", "gate", "lounge", "seats", "note", "place"]
    with open_table(table.info.url) as stored:
        found = {row["id"]: {k: v for k, v in row.items() if v is not None} for row in stored.scan().to_table().to_pylist()}
    assert found == {
        "b": {"id": "b", "n": 2, "gate": "A1"},
        "c": {"id": "c", "lounge": True},
        "d": {"id": "d", "seats": 4},
        "e": {"id": "e", "note": "x"},
        "f": {"id": "f", "place": {"zip": 1, "street": None}},
        "g": {"id": "g", "place": {"zip": 2, "street": "Main"}, "n": 7},
    }


async def test_an_asyncio_producer_brings_columns_in_the_order_of_its_calls(cluster: Cluster, name: str) -> None:
    async with headgate.aio.connect(cluster.address, wait=READY_S) as hg:
        table = await hg.create_table(name, list(SCHEMA.items()), key="id")
        await table.configure({"headgate.evolve": "add"})
        async with table.channel("c") as ch:
            calls = [ch.upsert({"id": "a", "n": at, f"c{at % 5}": at}) for at in range(20)]
            receipts = await asyncio.gather(*calls)
            assert [each.offset for each in receipts] == list(range(1, 21))
    with headgate.connect(cluster.address) as blocking:
        assert rows_of(blocking.table(name))["a"] == {"id": "a", "n": 19, "c4": 19} | dict.fromkeys(f"c{at}" for at in range(4))


def test_values_widen_columns_only_in_a_table_that_says_so(hg: headgate.Headgate, name: str) -> None:
    table = made(hg, name, "add")
    large = {"id": "a", "n": 1 << 40}
    with table.channel("c") as ch, pytest.raises(headgate.RowError, match="'n'"):
        ch.upsert([large])
    table.configure({"headgate.evolve": "add-and-widen"})
    with table.channel("c") as ch:
        ch.upsert([large])
        with pytest.raises(headgate.RowError, match="'n'"):
            ch.upsert([{"id": "b", "n": "many"}])
        ch.upsert([{"id": "c", "n": 3}])
    assert rows_of(table) == {"a": large, "c": {"id": "c", "n": 3}}
    assert hg.table(name).info.schema.field("n").type == pa.int64()


def test_producers_that_bring_one_column_at_once_converge(cluster: Cluster, hg: headgate.Headgate, name: str) -> None:
    table = made(hg, name, "add")
    start = threading.Barrier(6)

    def produce(at: int) -> None:
        with headgate.connect(cluster.address) as own, own.table(name).channel(f"c{at}") as ch:
            start.wait(READY_S)
            for number in range(30):
                ch.upsert([{"id": f"{at}-{number}", "gate": f"g{at}", f"own{at % 3}": number}])

    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(produce, at) for at in range(6)]:
            done.result(READY_S)
    found = rows_of(table)
    assert set(hg.table(name).info.schema.names) == {"id", "n", "gate", "own0", "own1", "own2"}
    expected = {(f"{at}-{n}", f"g{at}", n) for at in range(6) for n in range(30)}
    assert {(row["id"], row["gate"], row[f"own{int(row['id'][0]) % 3}"]) for row in found.values()} == expected


def test_of_two_producers_with_different_types_the_later_gets_an_error_that_names_both(
    cluster: Cluster, hg: headgate.Headgate, name: str
) -> None:
    table = made(hg, name, "add-and-widen")
    with headgate.connect(cluster.address) as other, other.table(name).channel("second") as second:
        with table.channel("first") as first:
            first.upsert([{"id": "a", "gate": "A1"}])
        with pytest.raises(headgate.SchemaError, match="'gate' is string in the table and int64 in the batch"):
            second.upsert([{"id": "b", "gate": 1}])
        second.upsert([{"id": "b", "n": 2}])
    assert rows_of(table) == {"a": {"id": "a", "n": None, "gate": "A1"}, "b": {"id": "b", "n": 2, "gate": None}}


def test_a_producer_whose_table_was_configured_meanwhile_is_told_by_the_owner(
    cluster: Cluster, hg: headgate.Headgate, name: str
) -> None:
    table = made(hg, name, "add")
    with headgate.connect(cluster.address) as other:
        other.table(name).configure({"headgate.evolve": "refuse"})
    with table.channel("c") as ch, pytest.raises(headgate.SchemaError, match=r"headgate\.evolve=refuse"):
        ch.upsert([{"id": "a", "gate": "A1"}])
    assert hg.table(name).info.schema.names == ["id", "n"]


@pytest.mark.parametrize("step", ["alter_sent:1", "alter_won:1"])
def test_an_owner_that_is_killed_while_a_batch_changes_the_table_loses_nothing(tmp_path: Path, step: str) -> None:
    """A producer of the columns of before sends meanwhile."""
    options = {"coordinator": [*SOON["coordinator"], "--writer-timeout", "20s"]}
    with Cluster(tmp_path / "cluster", options=options, kill_at={"coordinator-1": step}) as cluster:
        url = create_table(cluster.address, "t", WORKLOAD)
        with headgate.connect(cluster.address) as hg:
            hg.table("t").configure({"headgate.evolve": "add"})
        with Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=1_000) as producers:
            producers.start("one")
            producers.wait_acked("one", 500)
            with gate_sender(cluster.address, "new", WORKLOAD) as new:
                cluster.wait_dead("coordinator-1")
                cluster.start("coordinator-1")
                new.wait_acked(500)
                producers.wait_acked("one", producers.history("one").attempts[-1].sent)
            producers.finish()
        assert_exactly_once(url, [*producers.histories(), new.history], WORKLOAD)
        assert_gates(url, new)
