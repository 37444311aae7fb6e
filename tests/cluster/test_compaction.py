"""Compactors in a cluster of real processes: whoever dies, rows go on coming and the table ends compacted, equal and complete."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from headgate import aio
from headgate.maintenance import Maintenance
from headgate_tables.hudi import Table, open_table
from headgate_tables.hudi.view import FileSlice
from support.cluster import Cluster
from support.compacted import compactions, until
from support.exactly_once import assert_exactly_once
from support.minor import SETTINGS as MINOR
from support.processes import READY_S
from support.producers import Producers, create_table
from support.readers import query_by_hudi_rs
from support.tiers import slow_but
from support.workload import Workload

OPTIONS = {
    "coordinator": [
        *("--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms"),
        *("--service-interval", "200ms", "--compactor-timeout", "20s", "--compaction-pause", "200ms"),
        *("--writer-timeout", "20s"),
    ]
}
RATE = 500
SHORT_TIMELINE = {
    "headgate.compaction.first.delta.commits": "20",
    "hoodie.clean.commits.retained": "3",
    "headgate.clean.min.age": "0",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "8",
}
NAMES = ("one", "two")


@dataclass(frozen=True, slots=True)
class Death:
    """``part`` kills itself when it reaches ``step`` for the ``hit``-th time."""

    part: str
    step: str
    hit: int

    def __str__(self) -> str:
        return f"{self.part} at {self.step}"


DEATHS = [
    Death("compactor-1", "operation_claimed", 2),
    Death("compactor-1", "output_created", 2),
    Death("coordinator-1", "plan_won", 1),
    Death("coordinator-1", "plan_done_won", 1),
]


def is_compacted(table: Table) -> bool:
    """Every file group has a base file, and only few logs on it: less than make a slice due."""
    slices = [group.slices()[-1] for group in table.file_groups()]
    return bool(slices) and all(each.base and len(each.logs) < 20 for each in slices)


@pytest.mark.parametrize("death", slow_but(["compactor-1 at output_created"], DEATHS), ids=str)
def test_who_dies_in_a_compaction_loses_nothing_and_the_table_ends_compacted(death: Death, tmp_path: Path) -> None:
    workload = Workload(event_time=death.step != "plan_won", hot_keys=20, partitions=2)
    kill_at = {death.part: f"{death.step}:{death.hit}"}
    with Cluster(tmp_path / "cluster", writers=1, compactors=1, options=OPTIONS, kill_at=kill_at) as cluster:
        url = create_table(cluster.address, "t", workload, buckets=2)
        with Producers(cluster.address, "t", workload, tmp_path, rows=0, rate=RATE) as producers:
            for name in NAMES:
                producers.start(name, wait=False)
            cluster.wait_dead(death.part)
            cluster.start(death.part)
            until(url, lambda table: compactions(table) > 0)
            for name in NAMES:
                producers.wait_acked(name, producers.history(name).attempts[-1].sent)
            producers.finish()
        table = until(url, is_compacted)
        assert cluster.hits(death.part)[death.step] >= death.hit
        assert cluster.hits("compactor-1")["output_created"] >= len(table.file_groups())
        report = assert_exactly_once(url, producers.histories(), workload)
        assert report.merged > 0
        assert table.verify().ok
        with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
            while hg.status().tables[0].alarms:
                time.sleep(0.1)


@pytest.mark.slow
def test_plans_wait_for_a_compactor_with_an_alarm_and_it_drains_without_a_loss(tmp_path: Path) -> None:
    workload = Workload(partitions=2)
    with Cluster(tmp_path / "cluster", writers=1, options=OPTIONS) as cluster:
        url = create_table(cluster.address, "t", workload, buckets=1)
        with Producers(cluster.address, "t", workload, tmp_path, rows=0, rate=RATE) as producers:
            producers.start("one")
            with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
                while "operations wait and no compactor is connected" not in hg.status().tables[0].alarms:
                    time.sleep(0.1)
                cluster.start("compactor-1")
                until(url, lambda table: compactions(table) > 0)
                assert len(hg.status().compactors) == 1
                assert cluster.drain("compactor-1") == 0
                while hg.status().compactors:
                    time.sleep(0.1)
            producers.finish()
        assert_exactly_once(url, producers.histories(), workload)


@pytest.mark.slow
async def test_a_partition_that_is_quiet_while_others_are_archived_is_shown_by_hudi_rs_when_it_goes_on(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("part", pa.string())])
    sent: list[str] = []
    with Cluster(tmp_path / "cluster", writers=1, compactors=1, options=OPTIONS) as cluster:
        async with aio.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
            table = await hg.create_table("t", schema, key="id", partition_by="part", buckets=1)
            url = table.info.url
            await Maintenance(hg, "t").configure(SHORT_TIMELINE)
            async with table.channel("c") as channel:

                async def commit(part: str) -> None:
                    sent.append(f"{part} {len(sent)}")
                    await channel.upsert([{"id": sent[-1], "part": part}])
                    await channel.flush()

                await commit("quiet")
                await commit("quiet")
                quiet = open_table(url).commits()[-1].instant
                while open_table(url).commits()[0].instant <= quiet:
                    await commit("busy")
                    assert len(sent) < 300, "nothing is archived any more"
                await commit("quiet")
        assert {row["id"] for row in query_by_hudi_rs(url.removeprefix("file://"))} == set(sent)


@pytest.mark.slow
def test_minor_compactions_are_made_while_rows_come_all_the_time(tmp_path: Path) -> None:
    """Two checkpoints are always open, so each of them needs a moment of its own (rule DE5)."""
    workload = Workload(event_time=False, hot_keys=20, partitions=2)
    with Cluster(tmp_path / "cluster", writers=2, compactors=1, options=OPTIONS) as cluster:
        url = create_table(cluster.address, "t", workload, buckets=2)
        with Producers(cluster.address, "t", workload, tmp_path, rows=0, rate=RATE) as producers:
            for name in NAMES:
                producers.start(name, wait=False)
            until(url, lambda table: compactions(table) > 0)
            asyncio.run(configure(cluster.address, {**MINOR, "hoodie.compact.inline.max.delta.commits": "8"}))
            until(url, lambda table: sum(map(was_minor, table.scan().slices())) >= 3)
            producers.finish()
        assert_exactly_once(url, producers.histories(), workload)
        assert open_table(url).verify().ok


async def configure(address: str, changes: Mapping[str, str]) -> None:
    async with aio.connect(address, timeout=READY_S, wait=READY_S) as hg:
        await Maintenance(hg, "t").configure(changes)


def was_minor(part: FileSlice) -> bool:
    """Whether the slice has a log file of its base file's own instant."""
    return any(log.instant == part.base_instant for log in part.logs)
