"""A table with a small limit and no compactor: it slows down, stops and says why; nothing is lost, and it goes on by itself."""

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

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
LIMIT = 6
FILES = "headgate.slice.max.log.files"
OPTIONS = {"coordinator": ["--checkpoint-interval", "200ms", "--checkpoint-min-interval", "20ms"]}


def batches() -> Iterator[list[dict[str, Any]]]:
    """Twenty rows each, of the same fifty records."""
    for first in range(0, 1_000_000, 20):
        yield [{"id": f"k{n % 50}", "part": "p", "ts": n, "note": "n" * 50} for n in range(first, first + 20)]


def most_log_files(url: str) -> int:
    """Of any slice that readers see now."""
    return max((len(group.slices()[-1].logs) for group in hudi.open_table(url).file_groups()), default=0)


def stored(url: str) -> dict[str, int]:
    return {row["id"]: row["ts"] for row in hudi.open_table(url).scan().to_table().to_pylist()}


async def alarms(hg: aio.Headgate) -> str:
    (status,) = (await hg.status("t")).tables
    return " ".join(status.alarms)


async def write_until_stopped(channel: aio.Channel, source: Iterator[list[dict[str, Any]]], url: str) -> headgate.HeadgateError:
    """The limit holds after every commit. Returns what the program is told in the end."""
    while True:
        await channel.upsert(next(source))
        try:
            await channel.flush(timeout=5)
        except headgate.NotCommittedError as late:
            return late
        assert most_log_files(url) <= LIMIT


async def test_without_compactors_a_table_stops_at_its_limit_and_says_why_and_nothing_is_lost(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", writers=2, options=OPTIONS) as cluster:
        async with aio.connect(cluster.address, timeout=60) as hg:
            table = await hg.create_table("t", SCHEMA, key="id", ordering="ts", partition_by="part", buckets=2)
            url = table.info.url
            await Maintenance(hg, "t").configure({FILES: str(LIMIT)})
            source = batches()
            async with table.channel("c") as channel:
                late = await write_until_stopped(channel, source, url)
                assert "log files of one slice wait for compaction" in late.message
                assert f"the limit is {LIMIT}; no compactor is connected" in late.message
                assert "Start compactors" in late.fix
                assert isinstance(late.__cause__, headgate.OverloadedError)
                assert "no rows are taken" in await alarms(hg)
                assert LIMIT // 2 < most_log_files(url) <= LIMIT
                cluster.kill("coordinator-1")
                cluster.start("coordinator-1")
                for _ in range(3):  # a new owner does not know how full the slices are, and is not fooled
                    await channel.upsert(next(source))
                with pytest.raises(headgate.NotCommittedError):
                    await channel.flush(timeout=5)
                assert most_log_files(url) <= LIMIT
                await Maintenance(hg, "t").configure({FILES: "1000"})
                await channel.flush()
                last = channel.offset
        expected = {f"k{n % 50}": n for n in range(last)}
        assert stored(url) == expected
