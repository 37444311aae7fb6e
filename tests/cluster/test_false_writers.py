"""A writer that loses rows, or says that it had none, costs a table seconds and no row (rule RO10), with real processes."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.false_writer import false_writer
from support.processes import READY_S
from support.producers import Producers, create_table
from support.readers import read_by_hudi_rs
from support.workload import Workload

SCHEMA = pa.schema({"id": pa.string(), "part": pa.string(), "n": pa.int64()})
SOON = {"coordinator": ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
PARTS, ROWS = 40, 1_000
"""Enough partitions that every writer has the buckets of some."""
PRODUCERS = [f"producer-{number}" for number in range(8)]
"""Each chooses its writer by itself. Where all choose the false one, no other hands frames over to it, and it loses nothing."""


def some(first: int) -> list[dict[str, object]]:
    return [{"id": f"k{n}", "part": f"p{n % PARTS}", "n": n} for n in range(first, first + ROWS)]


def alarms(hg: headgate.Headgate) -> str:
    return "; ".join(alarm for table in hg.status().tables for alarm in table.alarms)


@pytest.mark.slow
async def test_ro10_rows_that_a_flush_has_confirmed_are_there_though_a_false_writer_reports_that_it_got_none(
    tmp_path: Path,
) -> None:
    with (
        Cluster(tmp_path / "cluster", options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table("t", SCHEMA, key="id", partition_by="part", buckets=1)
        channel = table.channel("c")

        def send(first: int) -> None:
            channel.upsert(some(first))
            channel.flush("queryable")

        await asyncio.to_thread(send, 0)
        async with false_writer(cluster.address_of("coordinator-1")) as (writer, swallowing):
            await writer.attached("t")
            sent = ROWS
            while not swallowing.rows:  # it has a part in the table from the next checkpoint on
                await asyncio.to_thread(send, sent)
                sent += ROWS
            said = await asyncio.to_thread(alarms, hg)
            assert not writer.ended.is_set(), "it may be out of the table, but its stream lives"
        channel.close()
        found = read_by_hudi_rs(tmp_path / "cluster" / "store" / "t")
        assert sorted(found["n"].to_pylist()) == list(range(sent))
        assert f"writer {writer.process} at {writer.address} is excluded until it restarts" in said


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["drops_frames", "forgets_files"])
def test_ro10_a_writer_that_loses_rows_is_left_out_and_what_producers_send_is_there_once(tmp_path: Path, bug: str) -> None:
    workload = Workload()
    plant = {"writer-2": (bug,)}
    with Cluster(tmp_path / "cluster", writers=3, options=SOON, plant=plant) as cluster:
        url = create_table(cluster.address, "t", workload)
        with Producers(cluster.address, "t", workload, tmp_path, rows=1_500) as producers:
            for name in PRODUCERS:
                producers.start(name)
            producers.wait()
        with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
            said = alarms(hg)
        report = assert_exactly_once(url, producers.histories(), workload)
        assert f"at {cluster.address_of('writer-2')} is excluded until it restarts" in said
    assert report.entries + report.dropped == 12_000
