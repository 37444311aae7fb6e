"""Deletes by a condition through a running cluster, while rows stream in, and after the program died on its way."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import headgate
import headgate.deleting
from headgate.reading.matching import Matching
from support.access import access_text, role
from support.cluster import Cluster
from support.processes import READY_S
from support.readers import read_by_hudi_rs
from support.tiers import slow_but

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("version", pa.int64()), ("state", pa.string())])
SOON = ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"]
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


def row(number: int, version: int = 1, state: str | None = "old") -> dict[str, Any]:
    return {"id": number, "day": DAYS[number % 3], "version": version, "state": state}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("deletes") / "cluster", options={"coordinator": SOON}, compactors=1) as made:
        yield made


@pytest.fixture
def hg(cluster: Cluster) -> Iterator[headgate.Headgate]:
    with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as connection:
        yield connection


def made(hg: headgate.Headgate, name: str, rows: list[dict[str, Any]], ordering: str | None = "version") -> headgate.Table:
    table = hg.create_table(name, SCHEMA, key="id", ordering=ordering, partition_by="day", buckets=2)
    with table.channel("loader") as channel:
        channel.upsert(rows)
    return table


def found(table: headgate.Table) -> dict[int, tuple[int, str | None]]:
    """By hudi-rs."""
    rows = read_by_hudi_rs(Path(table.info.url.removeprefix("file://"))).to_pylist()
    by_key = {row["id"]: (row["version"], row["state"]) for row in rows}
    assert len(by_key) == len(rows), "a key is there twice"
    return by_key


class Meanwhile(Matching):
    """Somebody else writes when the search has begun: its snapshot is fixed, and no delete is sent yet."""

    work: Callable[[], None] | None = None

    def tables(self) -> Iterator[pa.Table]:
        work, Meanwhile.work = Meanwhile.work, None
        if work is not None:
            work()
        yield from super().tables()


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> type[Meanwhile]:
    monkeypatch.setattr(headgate.deleting, "Matching", Meanwhile)
    return Meanwhile


@pytest.mark.slow
def test_what_matches_is_deleted_when_the_call_returns(hg: headgate.Headgate) -> None:
    rows = [row(number, state=None if number % 7 == 0 else "ab"[number % 2]) for number in range(1000)]
    table = made(hg, "plain", rows)
    condition = "NOT state = 'a' AND id >= 10"
    planned = table.delete_where(condition, dry_run=True)
    given = pa.Table.from_pylist(rows, SCHEMA)
    with duckdb.connect() as con:
        con.register("given", given)
        counts = dict(con.sql(f"SELECT day, count(*) FROM given WHERE {condition} GROUP BY ALL").fetchall())
        kept = {each for (each,) in con.sql(f"SELECT id FROM given WHERE ({condition}) IS NOT TRUE").fetchall()}
    assert (planned.rows, planned.partitions) == (sum(counts.values()), counts)
    assert (planned.channel, planned.offset, planned.left) == ("", 0, None)
    assert found(table).keys() == set(range(1000)), "a dry run deletes nothing"
    assert [channel.name for channel in table.channels()] == ["loader"]
    done = table.delete_where(condition)
    assert (done.rows, done.partitions, done.as_of, done.left) == (planned.rows, counts, planned.as_of, 0)
    assert found(table).keys() == kept
    assert {each.name: each.committed_offset for each in table.channels()} == {"loader": 1000, done.channel: done.offset}
    assert done.offset == done.rows
    assert table.compact().dropped == 0
    assert found(table).keys() == kept


def test_nothing_is_sent_when_nothing_matches(hg: headgate.Headgate) -> None:
    table = made(hg, "nothing", [row(1)])
    done = table.delete_where("id > 1")
    assert (done.rows, done.partitions, done.channel, done.left) == (0, {}, "", None)
    assert [channel.name for channel in table.channels()] == ["loader"]


async def test_what_is_no_text_of_a_condition_deletes_nothing(cluster: Cluster, hg: headgate.Headgate) -> None:
    """A scan takes None for all rows."""
    table = made(hg, "no-condition", [row(1), row(2)])
    nothing: Any = None
    async with headgate.aio.connect(cluster.address, timeout=READY_S) as connection:
        awaited = await connection.table("no-condition")
        for options in ({}, {"channel": "mine"}, {"dry_run": True}):
            with pytest.raises(headgate.InvalidArgumentError, match="None is no condition in SQL") as refused:
                table.delete_where(nothing, **options)
            assert "Pass the condition as text" in refused.value.fix
            with pytest.raises(headgate.InvalidArgumentError, match="None is no condition in SQL"):
                await awaited.delete_where(nothing, **options)
    assert found(table).keys() == {1, 2}
    assert [channel.name for channel in table.channels()] == ["loader"]


def test_a_row_that_is_updated_meanwhile_stays_in_an_ordered_table(hg: headgate.Headgate, meanwhile: type[Meanwhile]) -> None:
    """One that came with a larger ordering value, whether it still matches or not; and not one that came late."""
    table = made(hg, "ordered", [row(number, version=5) for number in range(10)])

    def work() -> None:
        with table.channel("other") as channel:
            channel.upsert([row(1, 6, "new"), row(2, 6), row(3, 5), row(4, 4, "late"), row(20)])

    meanwhile.work = work
    done = table.delete_where("state = 'old'")
    assert (done.rows, done.left) == (10, 2), "those that came meanwhile and match are counted"
    assert found(table) == {1: (6, "new"), 2: (6, "old"), 20: (1, "old")}
    again = table.delete_where("state = 'old'")
    assert (again.rows, again.left, again.channel, again.offset) == (2, 0, done.channel, 12)
    assert found(table) == {1: (6, "new")}


def test_the_later_write_wins_in_a_table_without_ordering(hg: headgate.Headgate, meanwhile: type[Meanwhile]) -> None:
    """As help and pages say: a key that is written between the search and the delete goes; one that is written later stays."""
    table = made(hg, "unordered", [row(number) for number in range(4)], ordering=None)

    def work() -> None:
        with table.channel("other") as channel:
            channel.upsert([row(1, 2, "new"), row(9, 1, "new")])

    meanwhile.work = work
    done = table.delete_where("state = 'old'")
    assert (done.rows, done.left) == (4, 0)
    assert found(table) == {9: (1, "new")}
    with table.channel("other") as channel:
        channel.upsert([row(1, 3, "new")])
    assert found(table) == {1: (3, "new"), 9: (1, "new")}


@pytest.mark.slow
def test_producers_lose_nothing_newer_while_rows_are_deleted_again_and_again(hg: headgate.Headgate) -> None:
    """Keys below 600 are written until their last version is ``new``, the others never again; deletes run all the time."""
    keys, table = range(600), made(hg, "streamed", [row(number) for number in range(700)])
    stop = threading.Event()

    def produce() -> None:
        try:
            with table.channel("producer") as channel:
                for version in range(2, 12):
                    for start in range(0, 600, 100):
                        some = keys[start : start + 100]
                        channel.upsert([row(number, version, "new" if version > number % 11 else "old") for number in some])
                        channel.flush("queryable")
        finally:
            stop.set()

    producer = threading.Thread(target=produce)
    producer.start()
    runs = 0
    while not stop.is_set():
        table.delete_where("state = 'old'")
        runs += 1
    producer.join()
    done = table.delete_where("state = 'old'")
    assert done.left in (0, None)
    assert runs > 3
    assert found(table) == dict.fromkeys(keys, (11, "new"))


async def test_asyncio_deletes_the_same(cluster: Cluster, hg: headgate.Headgate) -> None:
    made(hg, "awaited", [row(number) for number in range(9)])
    async with headgate.aio.connect(cluster.address, timeout=READY_S) as connection:
        table = await connection.table("awaited")
        assert (await table.delete_where("id < 4", dry_run=True)).rows == 4
        done = await table.delete_where("id < 4", channel="mine")
        assert (done.rows, done.left, done.channel, done.offset) == (4, 0, "mine", 4)
        assert sorted((await (await table.scan(["id"])).to_arrow())["id"].to_pylist()) == [4, 5, 6, 7, 8]


def test_a_row_whose_ordering_value_no_delete_can_have_is_named_before_anything_is_sent(hg: headgate.Headgate) -> None:
    schema = pa.schema([("id", pa.int64()), ("version", pa.int32())])
    table = hg.create_table("zero", schema, key="id", ordering="version")
    with table.channel("loader") as channel:
        channel.upsert([{"id": 1, "version": 0}, {"id": 2, "version": 1}])
    with pytest.raises(headgate.InvalidArgumentError, match="1 of the rows have null, or 0 in 32 bits"):
        table.delete_where("id < 9")
    assert table.scan().to_arrow().num_rows == 2
    assert table.delete_where("version > 0").left == 0
    assert table.scan().to_arrow()["id"].to_pylist() == [1]


def test_a_condition_on_a_column_that_there_is_not_names_the_one_that_is_meant(hg: headgate.Headgate) -> None:
    table = made(hg, "columns", [row(1)])
    for dry_run in (True, False):
        with pytest.raises(headgate.SchemaError, match="Did you mean 'state'"):
            table.delete_where("stat = 'old'", dry_run=dry_run)
    with pytest.raises(headgate.InvalidArgumentError, match="is not a condition"):
        table.delete_where("")
    assert len(found(table)) == 1


STEPS = ("while it searches", "before it asks for the commit", "after the commit")
KILLED = """
import os, signal, sys
import headgate, headgate.aio
from headgate_tables.hudi import deleting

deleting.PIECE_ROWS = 100
step, address, table = sys.argv[1:]

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

pieces = deleting.Matches.tables
def some(self):
    for number, piece in enumerate(pieces(self)):
        if number == 2:
            kill()
        yield piece

flush = headgate.aio.Channel.flush
async def flushed(self, *arguments, **options):
    await flush(self, *arguments, **options)
    kill()

if step == "while it searches":
    deleting.Matches.tables = some
elif step == "before it asks for the commit":
    headgate.aio.Channel.flush = kill
else:
    headgate.aio.Channel.flush = flushed
with headgate.connect(address, timeout=60) as hg:
    hg.table(table).delete_where("state = 'old'")
"""


@pytest.mark.parametrize("step", slow_but(["while it searches"], STEPS))
def test_a_killed_program_is_run_again(step: str, cluster: Cluster, hg: headgate.Headgate) -> None:
    rows = [row(number, state="old" if number < 900 else "new") for number in range(1000)]
    table = made(hg, f"killed_{step.replace(' ', '_')}", rows)
    died = subprocess.run([sys.executable, "-c", KILLED, step, cluster.address, table.info.name], check=False)
    assert died.returncode == -signal.SIGKILL
    with table.channel("other") as channel:
        channel.upsert([row(number, 2, "new") for number in range(50)])
    done = table.delete_where("state = 'old'")
    assert done.left in (0, None)
    assert found(table) == {number: (2 if number < 50 else 1, "new") for number in (*range(50), *range(900, 1000))}
    assert len([each for each in table.channels() if each.name.startswith("delete:")]) == 1, "the second run had the first one's"


@pytest.mark.slow
def test_it_needs_the_rights_to_read_and_to_write(tmp_path: Path) -> None:
    """A role may bound the names of channels; then the caller names one."""
    access = tmp_path / "access.toml"
    roles = [
        role("admin", "admin"),
        role("ann", "write", tables=["t"]),
        role("bob", "read", tables=["t"]),
        role("cid", "write", tables=["t"], channels=["{principal}/"]),
    ]
    tokens = {f"{name}-token": name for name in ("admin", "ann", "bob", "cid")}
    access.write_text(access_text(tokens, *roles))
    flags = ["--access", str(access)]
    options = {"coordinator": [*flags, *SOON], "writer": flags}
    with Cluster(tmp_path / "cluster", writers=1, options=options, env={"HEADGATE_CLUSTER_TOKEN": "cluster-token"}) as guarded:

        def table_of(name: str) -> Any:
            connection = headgate.connect(guarded.address, token=f"{name}-token", timeout=READY_S, wait=READY_S)
            with connection:
                yield connection.table("t")

        with headgate.connect(guarded.address, token="admin-token", timeout=READY_S, wait=READY_S) as admin:
            made(admin, "t", [row(number) for number in range(10)])
        for table in table_of("bob"):
            assert table.delete_where("id = 1", dry_run=True).rows == 1
            with pytest.raises(headgate.PermissionDeniedError, match="write"):
                table.delete_where("id = 1")
        for table in table_of("cid"):
            with pytest.raises((headgate.PermissionDeniedError, headgate.ChannelForbiddenError)):
                table.delete_where("id = 2")
            assert table.delete_where("id = 2", channel="cid/erasure").left == 0
        for table in table_of("ann"):
            assert table.delete_where("id = 3").left == 0
            assert sorted(found(table)) == [0, 1, 4, 5, 6, 7, 8, 9]
