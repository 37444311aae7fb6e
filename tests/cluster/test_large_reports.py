"""A checkpoint of some thousand files: the writer's report of it is larger than one message of a coordinator."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest

from headgate import aio
from headgate_runtime.limits import RECEIVED_BYTES
from support.cluster import Cluster
from support.processes import READY_S
from support.readers import read_by_hudi_rs
from support.table_files import data_files

PARTITIONS, EACH, NAME = 1_000, 8, 180


@pytest.mark.slow
async def test_a_checkpoint_whose_report_is_larger_than_a_message_commits_at_once(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("part", pa.string())])
    rows = pa.table(
        {"id": range(PARTITIONS * EACH), "part": [f"{n % PARTITIONS:0{NAME}}" for n in range(PARTITIONS * EACH)]}, schema=schema
    )
    with Cluster(tmp_path / "cluster", writers=1) as cluster:
        async with aio.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
            table = await hg.create_table("t", schema, key="id", partition_by="part", buckets=4)
            path = Path(table.info.url.removeprefix("file://"))
            async with table.channel("c") as channel:
                await channel.upsert(rows)
                async with asyncio.timeout(READY_S):
                    await channel.flush()
        files = data_files(path)
        assert len(files) * NAME > 0.5 * RECEIVED_BYTES, "names and partitions alone"
        assert len(list((path / ".hoodie/timeline").glob("*.deltacommit.requested"))) == 1, "nothing was aborted"
        found = read_by_hudi_rs(path).select(["id", "part"]).sort_by("id")
        assert found.to_pydict() == rows.to_pydict()
