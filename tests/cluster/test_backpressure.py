"""A table with small limits and no compactor: it slows down, stops and says why; nothing is lost, and it goes on by itself."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headgate
from headgate import aio
from headgate.maintenance import Maintenance
from headgate_tables import hudi
from support.cluster import Cluster
from support.processes import READY_S
from support.readers import query_by_hudi_rs

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
MAX_FILES, MAX_BYTES = 6, 256 << 10
FILES, BYTES = "headgate.slice.max.log.files", "headgate.slice.max.log.bytes"
OPTIONS = {"coordinator": ["--checkpoint-interval", "200ms", "--checkpoint-min-interval", "20ms", "--writer-timeout", "20s"]}
RECORDS = 500


def batches(rows: int) -> Iterator[list[dict[str, Any]]]:
    """Of the same records again and again, with text that does not compress."""
    for first in range(0, 1_000_000, rows):
        yield [{"id": f"k{n % RECORDS}", "part": "p", "ts": n, "note": token(n)} for n in range(first, first + rows)]


def token(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest() * 2


def fullest(url: str) -> tuple[int, int]:
    """The most log files and log bytes of any slice that readers see now."""
    logs = [(len(group.slices()[-1].logs), group.slices()[-1].log_bytes) for group in hudi.open_table(url).file_groups()]
    return max((files for files, _ in logs), default=0), max((nbytes for _, nbytes in logs), default=0)


def stored(url: str) -> dict[str, int]:
    """id to ts, by our reader and by hudi-rs, which must agree."""
    ours = {row["id"]: row["ts"] for row in hudi.open_table(url).scan().to_table().to_pylist()}
    assert ours == {row["id"]: row["ts"] for row in query_by_hudi_rs(url.removeprefix("file://"))}
    return ours


async def alarms(hg: aio.Headgate) -> str:
    (status,) = (await hg.status("t")).tables
    return "; ".join(status.alarms)


async def stopped(channel: aio.Channel) -> headgate.NotCommittedError | None:
    """None once all rows are durable, or the error of a table that takes none; a checkpoint that is only slow is waited for."""
    while True:
        try:
            await channel.flush(timeout=2)
        except headgate.NotCommittedError as late:
            if isinstance(late.__cause__, headgate.OverloadedError):
                return late
        else:
            return None


async def write_until_stopped(
    hg: aio.Headgate, channel: aio.Channel, source: Iterator[list[dict[str, Any]]], url: str, *, files: int, nbytes: int
) -> tuple[headgate.NotCommittedError, list[str]]:
    """The limits hold after every commit. Returns what the program is told in the end, and alarms on the way."""
    rung: list[str] = []
    while True:
        await channel.upsert(next(source))
        if (late := await stopped(channel)) is not None:
            return late, rung
        now = fullest(url)
        assert now[0] <= files
        assert now[1] <= nbytes
        rung.append(await alarms(hg))


async def test_without_compactors_a_table_stops_at_its_limit_of_files_and_says_why_and_nothing_is_lost(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", writers=2, options=OPTIONS) as cluster:
        async with aio.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
            table = await hg.create_table("t", SCHEMA, key="id", ordering="ts", partition_by="part", buckets=2)
            url, source = table.info.url, batches(rows=20)
            await Maintenance(hg, "t").configure({FILES: str(MAX_FILES)})
            async with table.channel("c") as channel:
                late, rung = await write_until_stopped(hg, channel, source, url, files=MAX_FILES, nbytes=1 << 30)
                assert "log files of one slice wait for compaction" in late.message
                assert f"the limit is {MAX_FILES}; no compactor is connected" in late.message
                assert "Start compactors" in late.fix
                assert any("times further apart" in text for text in rung)
                assert "no rows are taken" in await alarms(hg)
                assert MAX_FILES // 2 < fullest(url)[0] <= MAX_FILES
                cluster.kill("coordinator-1")
                cluster.start("coordinator-1")
                # A new owner does not know how full the slices are. It may commit what there is room for, and then stops, too.
                await write_until_stopped(hg, channel, source, url, files=MAX_FILES, nbytes=1 << 30)
                assert fullest(url)[0] <= MAX_FILES
                await Maintenance(hg, "t").configure({FILES: "1000"})
                await channel.flush()
                last = channel.offset
        assert stored(url) == {f"k{n % RECORDS}": n for n in range(last)}


async def test_log_bytes_of_a_slice_stay_below_their_limit_while_rows_are_taken_ever_slower(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", writers=2, options=OPTIONS) as cluster:
        async with aio.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
            table = await hg.create_table("t", SCHEMA, key="id", ordering="ts", partition_by="part", buckets=1)
            url, source = table.info.url, batches(rows=200)
            await Maintenance(hg, "t").configure({FILES: "1000", BYTES: str(MAX_BYTES)})
            async with table.channel("c") as channel:
                late, rung = await write_until_stopped(hg, channel, source, url, files=1000, nbytes=MAX_BYTES)
                assert f"the limit is {MAX_BYTES >> 10} KiB" in late.message
                assert any("rows are taken at" in text for text in rung)
                assert MAX_BYTES // 2 < fullest(url)[1] <= MAX_BYTES
                await Maintenance(hg, "t").configure({BYTES: str(1 << 30)})
                await channel.flush()
                last = channel.offset
        assert stored(url) == {f"k{n % RECORDS}": n for n in range(last)}
