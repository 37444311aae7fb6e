"""One log of twelve slices has a flipped byte, or is gone: the others go on at their rate, and the slice comes back complete."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headgate
from headgate import aio
from headgate.maintenance import Maintenance
from headgate_cli.main import run
from headgate_tables import hudi
from headgate_tables.hudi import Table
from support.cluster import Cluster
from support.damage import end_of_last_page, flip
from support.processes import READY_S
from support.readers import query_by_hudi_rs

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
BUCKETS, LIMIT, RECORDS = 12, 12, 600
OPTIONS = {
    "coordinator": [
        *("--checkpoint-interval", "200ms", "--checkpoint-min-interval", "20ms"),
        *("--service-interval", "100ms", "--compaction-pause", "100ms", "--writer-timeout", "20s"),
    ]
}
SETTINGS = {
    "headgate.slice.max.log.files": str(LIMIT),
    "hoodie.compact.inline.max.delta.commits": "2",
    "headgate.compaction.first.delta.commits": "2",
}
FIRST = 3
"""Batches 0 to 2 are in a table before anything happens to it."""
CHECKPOINTS = 4 * LIMIT


def batch(number: int) -> list[dict[str, Any]]:
    """A version of every record, so that each checkpoint writes to every slice."""
    return [{"id": f"k{n}", "part": "p", "ts": number} for n in range(RECORDS)]


def harm_a_log(url: str, how: str) -> tuple[str, Path, bytes]:
    """A flipped byte in the rows of the first log of one slice, or no file at all. Returns the slice's name, the file and what it
    held.
    """
    group = hudi.open_table(url).file_groups()[3]
    part = group.slices()[-1]
    path = Path(url.removeprefix("file://")) / part.path(part.logs[0].name)
    before = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(flip(before, end_of_last_page(before)))
    return f"{group.partition}/{group.file_id}", path, before


def compacted(table: Table) -> set[str]:
    """Slices with a base file."""
    return {f"{group.partition}/{group.file_id}" for group in table.file_groups() if group.slices()[-1].base}


def healthy_logs(url: str, but: str) -> int:
    """The most log files of any other slice."""
    groups = hudi.open_table(url).file_groups()
    return max(len(group.slices()[-1].logs) for group in groups if not group.file_id.endswith(but.rpartition("/")[2]))


async def slice_command(cluster: Cluster, *arguments: str) -> None:
    """`headgate table slice …` as an operator types it."""
    assert await asyncio.to_thread(run, ["table", "slice", *arguments, "--connect", cluster.address]) == 0


async def status(hg: aio.Headgate) -> str:
    (table,) = (await hg.status("t")).tables
    return "; ".join(table.alarms)


async def commit(channel: aio.Channel, number: int) -> None:
    await channel.upsert(batch(number))
    await channel.flush()


@contextlib.asynccontextmanager
async def first_batches(folder: Path, writers: int) -> AsyncIterator[tuple[Cluster, aio.Headgate, aio.Channel, str]]:
    """A cluster with the ``FIRST`` batches in a table of which no slice is compacted yet; and the table's url."""
    with Cluster(folder, writers=writers, options=OPTIONS) as cluster:
        async with aio.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
            table = await hg.create_table("t", SCHEMA, key="id", ordering="ts", partition_by="part", buckets=BUCKETS)
            await Maintenance(hg, "t").configure({"headgate.compaction.first.delta.commits": "1000"})
            async with table.channel("c") as channel:
                for number in range(FIRST):
                    await commit(channel, number)
                yield cluster, hg, channel, table.info.url


@pytest.mark.parametrize(("how", "said"), [("flipped", "{} at byte 0"), ("gone", "{} is pinned by a compaction, but not there")])
async def test_a_damaged_slice_is_nobody_elses_trouble_and_comes_back_complete(tmp_path: Path, how: str, said: str) -> None:
    async with first_batches(tmp_path / "cluster", writers=2) as (cluster, hg, channel, url):
        name, path, content = harm_a_log(url, how)
        await Maintenance(hg, "t").configure(SETTINGS)
        cluster.start("compactor-1")
        for number in range(FIRST, FIRST + CHECKPOINTS):  # four times the limit
            await commit(channel, number)
        async with asyncio.timeout(READY_S):
            while f"file slice {name} cannot be compacted" not in (alarms := await status(hg)):
                await asyncio.sleep(0.1)
            while len(compacted(hudi.open_table(url))) < BUCKETS - 1 or healthy_logs(url, name) >= LIMIT:
                await asyncio.sleep(0.1)
        assert said.format(path.name) in alarms
        assert f"headgate table slice set-aside t {name}" in alarms
        assert name not in compacted(hudi.open_table(url))

        await slice_command(cluster, "set-aside", "t", name)
        cluster.kill("coordinator-1")
        cluster.start("coordinator-1")
        set_aside, number = await refused_alone(channel, FIRST + CHECKPOINTS)
        assert f"file slice {name} is set aside" in await status(hg)

        path.write_bytes(content)
        [told] = (await Maintenance(hg, "t").list_slices()).slices
        assert (told.name, told.aside) == (name, True)
        await slice_command(cluster, "readmit", "t", name)
        async with asyncio.timeout(READY_S):
            await taken(channel, set_aside)
            while name in (alarms := await status(hg)):
                await commit(channel, number := number + 1)
        cluster.drain("coordinator-1")  # one that is killed may leave a plan that its next owner puts in place
    found = hudi.open_table(url)
    assert name in compacted(found)
    assert found.verify().ok
    expected = {f"k{n}": number for n in range(RECORDS)}
    assert {row["id"]: row["ts"] for row in found.scan().to_table().to_pylist()} == expected
    assert {row["id"]: row["ts"] for row in query_by_hudi_rs(url.removeprefix("file://"))} == expected


async def test_a_file_that_is_lost_before_a_takeover_alarms_the_next_owner_until_its_loss_is_accepted(tmp_path: Path) -> None:
    async with first_batches(tmp_path / "cluster", writers=1) as (cluster, hg, channel, url):
        cluster.kill("coordinator-1")
        with hudi.open_table(url, take_over=True) as between:
            between.configure(SETTINGS)
            fold(between)
        name, path, _ = harm_a_log(url, "gone")
        cluster.start("compactor-1")
        cluster.start("coordinator-1")
        number = FIRST - 1
        async with asyncio.timeout(READY_S):
            while f"file slice {name} cannot be compacted" not in (alarms := await status(hg)):
                await commit(channel, number := number + 1)
            while len(compacted(hudi.open_table(url))) < BUCKETS - 1:
                await asyncio.sleep(0.1)
        assert f"{path.name} is pinned by a compaction, but not there" in alarms
        assert "headgate table slice readmit TABLE SLICE --accept-loss" in alarms
        assert name not in compacted(hudi.open_table(url))

        await slice_command(cluster, "readmit", "t", name, "--accept-loss")
        async with asyncio.timeout(READY_S):
            while name not in compacted(hudi.open_table(url)) or name in await status(hg):
                await commit(channel, number := number + 1)
    rows = hudi.open_table(url).scan().to_table().to_pylist()
    assert {row["id"]: row["ts"] for row in rows} == {f"k{n}": number for n in range(RECORDS)}


def fold(table: Table) -> None:
    """No slot is left that names what was written so far."""
    log = table._opened.log
    assert log is not None
    log.fold()


async def taken(channel: aio.Channel, rows: pa.RecordBatch) -> None:
    """Sends them again for as long as the writer has not heard that their slice takes rows."""
    offset = None
    while True:
        try:
            await channel.upsert(rows, offset=offset)
            return await channel.flush()
        except headgate.SliceSetAsideError as refused:
            offset = refused.offset  # the channel stands still until the batch is sent again in its place
            await asyncio.sleep(0.1)


async def refused_alone(channel: aio.Channel, number: int) -> tuple[pa.RecordBatch, int]:
    """A batch of all slices is refused, and taken without the rows of the slice that is aside; returns those."""
    await channel.upsert(batch(number))
    with pytest.raises(headgate.SliceSetAsideError) as told:
        await channel.flush()
    refused = told.value
    assert refused.reason == "SLICE_SET_ASIDE"
    assert 0 < refused.set_aside.num_rows < RECORDS // 4
    assert refused.set_aside.num_rows + refused.others.num_rows == RECORDS
    await channel.upsert(refused.others, offset=refused.offset)
    await channel.flush()
    return refused.set_aside, number
