"""A running cluster writes the blocks that the table's setting asks for, from the next checkpoints on."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest

from headgate import aio
from headgate.maintenance import Maintenance
from headgate_tables.hudi import open_table
from headgate_tables.hudi.log.block import read_blocks
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.processes import READY_S
from support.producers import Producers, create_table
from support.readers import read_by_hudi_rs
from support.table_files import data_files, instant_of
from support.workload import Workload

SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
FORMAT = "hoodie.logfile.data.block.format"


def kinds_by_commit(path: Path) -> list[set[str]]:
    found: dict[str, set[str]] = {}
    for file in data_files(path):
        kinds = {block.kind.name for block in read_blocks(pa.py_buffer(file.read_bytes()), file.name)}
        found.setdefault(instant_of(file), set()).update(kinds)
    return [found[instant] for instant in sorted(found)]


@pytest.mark.slow
async def test_writers_follow_the_setting_while_a_channel_is_open(tmp_path: Path) -> None:
    """A checkpoint that is open already when the setting changes keeps its format."""
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    with Cluster(tmp_path / "cluster", writers=1) as cluster:
        async with aio.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
            table = await hg.create_table("t", schema, key="id", buckets=4)
            path = Path(table.info.url.removeprefix("file://"))
            async with table.channel("c") as channel:
                sent = 0

                async def commit() -> None:
                    nonlocal sent
                    for _ in range(20):
                        await channel.upsert([{"id": f"k{sent}", "n": sent}])
                        sent += 1
                    await channel.flush()

                await commit()
                epoch = open_table(table.info.url).epoch
                formats = ("parquet", "avro", "auto")
                for form in formats:
                    await Maintenance(hg, "t").configure({FORMAT: form})
                    for _ in range(3):
                        await commit()
            assert open_table(table.info.url).epoch == epoch, "no new owner was needed"
        by_commit = kinds_by_commit(path)
        assert by_commit[0] == {"AVRO_DATA"}
        for at, form in enumerate(formats):
            assert by_commit[3 * at + 3] == {"PARQUET_DATA" if form == "parquet" else "AVRO_DATA"}, form
        ids = sorted(f"k{n}" for n in range(sent))
        assert sorted(read_by_hudi_rs(path)["id"].to_pylist()) == ids
        assert sorted(open_table(table.info.url).scan(["id"]).to_table()["id"].to_pylist()) == ids


@pytest.mark.slow
def test_a_writer_that_dies_with_a_file_of_avro_rows_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Rows are counted block by block, by fastavro and by us, and merged by every reader."""
    workload = Workload(hot_keys=20, partitions=2)
    with Cluster(tmp_path / "cluster", options=SOON, kill_at={"writer-1": "file_durable:3"}) as cluster:
        url = create_table(cluster.address, "t", workload)
        asyncio.run(configure(cluster.address, "avro"))
        with Producers(cluster.address, "t", workload, tmp_path, rows=0, rate=1000) as producers:
            for name in ("one", "two"):
                producers.start(name, wait=False)
            cluster.wait_dead("writer-1")
            cluster.start("writer-1")
            for name in ("one", "two"):
                producers.wait_acked(name, producers.history(name).attempts[-1].sent + 500)
            producers.finish()
        assert_exactly_once(url, producers.histories(), workload)
        assert open_table(url).verify().ok
    assert "AVRO_DATA" in set().union(*kinds_by_commit(Path(url.removeprefix("file://"))))


async def configure(address: str, form: str) -> None:
    async with aio.connect(address, timeout=READY_S, wait=READY_S) as hg:
        await Maintenance(hg, "t").configure({FORMAT: form})
