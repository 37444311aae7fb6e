"""Copies of tables through a running cluster: which rows, of which moment, and after a program died on its way."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headgate
from headgate.maintenance import Maintenance
from headgate_tables.hudi import open_table
from support.cluster import Cluster
from support.processes import READY_S
from support.readers import read_by_hudi_rs
from support.tiers import slow_but

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("day", pa.string()),
        ("version", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
    ]
)
SOON = ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"]


def row(number: int, version: int = 1) -> dict[str, Any]:
    return {"id": number, "day": f"2026-01-0{number % 3 + 1}", "version": version, "at": None, "tags": [f"t{number}", None]}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("copies") / "cluster", options={"coordinator": SOON}, compactors=1) as made:
        yield made


@pytest.fixture
def hg(cluster: Cluster) -> Iterator[headgate.Headgate]:
    with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as connection:
        yield connection


def made(hg: headgate.Headgate, name: str, rows: list[dict[str, Any]], ordering: str | None = "version") -> headgate.Table:
    table = hg.create_table(name, SCHEMA, key="id", ordering=ordering, partition_by="day", buckets=2, hive_style=True)
    with table.channel("loader") as channel:
        channel.upsert(rows)
    return table


def found(table: headgate.Table) -> list[dict[str, Any]]:
    """By hudi-rs."""
    rows = read_by_hudi_rs(Path(table.info.url.removeprefix("file://"))).select(SCHEMA.names)
    return sorted(rows.to_pylist(), key=lambda each: each["id"])


@pytest.mark.slow
@pytest.mark.parametrize("ordering", ["version", None])
def test_a_copy_has_the_definition_and_the_rows_of_its_moment(hg: headgate.Headgate, ordering: str | None) -> None:
    name = f"of_{ordering}"
    table = made(hg, name, [row(number) for number in range(1000)], ordering)
    saved = table.savepoint("before")
    with table.channel("loader") as channel:
        channel.upsert([row(number, 2) for number in range(0, 1000, 3)])
        channel.delete([row(number, 3) for number in range(0, 1000, 10)])
    assert table.compact().dropped == 0
    now, then = found(table), [row(number) for number in range(1000)]
    seen: list[int] = []
    done = table.copy(f"{name}_now", progress=seen.append)
    assert (done.name, done.rows, seen[-1]) == (f"{name}_now", len(now), len(now))
    before = table.copy(f"{name}_then", as_of=saved)
    for copied, rows in ((done, now), (before, then)):
        new = hg.table(copied.name)
        assert found(new) == rows
        assert [channel.name for channel in new.channels()] == [copied.channel]
        old, info = table.info, new.info
        assert (info.schema, info.key, info.ordering) == (old.schema, old.key, ordering)
        assert (info.partition_by, info.buckets, info.hive_style) == (old.partition_by, old.buckets, old.hive_style)
    with hg.table(f"{name}_now").channel("loader") as channel:
        assert channel.committed_offset == 0
        channel.upsert([row(5, 99)])
    assert [each["version"] for each in found(hg.table(f"{name}_now")) if each["id"] == 5] == [99]
    assert found(table) == now


def test_of_an_empty_table_the_copy_is_empty(hg: headgate.Headgate) -> None:
    table = hg.create_table("empty", SCHEMA, key="id")
    assert (table.copy("empty_too").rows, found(hg.table("empty_too"))) == (0, [])


def test_a_table_that_is_there_is_no_copy(hg: headgate.Headgate) -> None:
    table, other = made(hg, "one", [row(1)]), made(hg, "other", [row(2)])
    with pytest.raises(headgate.TableExistsError):
        table.copy("other")
    with pytest.raises(headgate.InvalidArgumentError, match="rows of others"):
        table.copy("other", go_on=True)
    assert found(other) == [row(2)]


async def test_a_table_with_rows_of_a_program_without_a_channel_is_no_copy(hg: headgate.Headgate, cluster: Cluster) -> None:
    table = made(hg, "source", [row(1)])
    other = hg.create_table("filled", SCHEMA, key="id", ordering="version", partition_by="day", buckets=2, hive_style=True)
    async with headgate.aio.connect(cluster.address) as connection, Maintenance(connection, "filled").lend(60_000) as lent:
        with open_table(lent.url, take_over=True) as library:
            library.upsert(pa.Table.from_pylist([row(2)], table.info.schema))
    with pytest.raises(headgate.InvalidArgumentError, match="rows of others"):
        table.copy("filled", go_on=True)
    assert found(other) == [row(2)]


def test_over_a_table_that_is_there_the_advice_is_what_a_copy_takes(hg: headgate.Headgate) -> None:
    table = made(hg, "itself", [row(1)])
    with pytest.raises(headgate.TableExistsError) as refused:
        table.copy("itself")
    assert refused.value.fix == "Choose another name, or pass go_on=True to go on with a copy that broke off."


def test_a_moment_that_is_gone_makes_no_table(hg: headgate.Headgate) -> None:
    table = made(hg, "past", [row(1)])
    with pytest.raises(headgate.InvalidArgumentError, match="yesterday"):
        table.copy("never", as_of="yesterday")
    assert "never" not in [info.name for info in hg.tables()]


@pytest.mark.slow
def test_a_copy_is_of_one_moment_while_rows_stream_in(hg: headgate.Headgate) -> None:
    """Each batch writes all keys with one version: a copy with two versions would be of no moment."""
    table = made(hg, "busy", [row(number, 0) for number in range(300)])
    stop = threading.Event()

    def produce() -> None:
        version = 0
        with table.channel("producer") as channel:
            while not stop.is_set():
                version += 1
                channel.upsert([row(number, version) for number in range(300)])
                channel.flush("queryable")

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        for number in range(3):
            table.copy(f"busy_{number}")
            copied = found(hg.table(f"busy_{number}"))
            assert len(copied) == 300
            assert len({each["version"] for each in copied}) == 1
    finally:
        stop.set()
        producer.join()


async def test_asyncio_copies_the_same(cluster: Cluster, hg: headgate.Headgate) -> None:
    made(hg, "awaited", [row(number) for number in range(9)])
    async with headgate.aio.connect(cluster.address, timeout=READY_S) as connection:
        table = await connection.table("awaited")
        assert (await table.copy("awaited_too")).rows == 9
    assert found(hg.table("awaited_too")) == [row(number) for number in range(9)]


STEPS = ("before the first row", "in the middle", "before it asks for the commit", "after the commit")
KILLED = """
import os, signal, sys
import headgate, headgate.aio

step, address, table, to = sys.argv[1:]

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

upsert, flush = headgate.aio.Channel.upsert, headgate.aio.Channel.flush
calls = 0

async def upserted(self, *arguments, **options):
    global calls
    calls += 1
    if calls == (1 if step == "before the first row" else 2):
        if step == "in the middle":
            await flush(self, "queryable")
        kill()
    return await upsert(self, *arguments, **options)

async def flushed(self, *arguments, **options):
    await flush(self, *arguments, **options)
    kill()

if step in ("before the first row", "in the middle"):
    headgate.aio.Channel.upsert = upserted
else:
    headgate.aio.Channel.flush = kill if step == "before it asks for the commit" else flushed
with headgate.connect(address, timeout=60) as hg:
    hg.table(table).copy(to)
"""


@pytest.mark.parametrize("step", slow_but(["in the middle"], STEPS))
def test_a_copy_that_was_killed_goes_on_with_the_rows_of_its_moment(step: str, cluster: Cluster, hg: headgate.Headgate) -> None:
    name = f"killed_{step.replace(' ', '_')}"
    rows = [row(number) for number in range(900)]
    table = made(hg, name, rows)
    died = subprocess.run([sys.executable, "-c", KILLED, step, cluster.address, name, f"{name}_too"], check=False)
    assert died.returncode == -signal.SIGKILL
    with table.channel("loader") as channel:
        channel.upsert([row(number, 2) for number in range(1000)])
    with pytest.raises(headgate.TableExistsError):
        table.copy(f"{name}_too")
    done = table.copy(f"{name}_too", go_on=True)
    expected = rows if step != "before the first row" or done.rows == 900 else [row(number, 2) for number in range(1000)]
    assert done.rows == len(expected)
    assert found(hg.table(f"{name}_too")) == expected
    with pytest.raises(headgate.InvalidArgumentError, match="was begun as of"):
        table.copy(f"{name}_too", as_of="2020-01-01", go_on=True)
