"""Services come and go while producers write: no error reaches a producer, rows are there once, writers share the load evenly."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import headgate
from headgate_tables.storage.store import Store
from support.cluster import Cluster
from support.committed_log import open_bytes, ours
from support.exactly_once import assert_exactly_once, check_log, check_merged, read_merged
from support.journal import History
from support.planted import ALL_ROWS
from support.processes import READY_S, Process
from support.producers import Producers, create_table
from support.shares import Written, processes, ratio, wait_for_checkpoints
from support.workload import Workload

pytestmark = pytest.mark.slow

PATIENT = ["--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]
"""A busy machine loses no writer: what rewinds a table here is a defect, not a slow heartbeat."""
EVERY_ROW = Workload(deletes=False, hot_keys=1000, partitions=8)
"""For writers that keep beaten rows: every row that one took is in its files. Half of the partitions get three times as much."""
EVENLY, CHECKPOINTS = 1.5, 3
"""So far apart the shares of two writers may be, and so many checkpoints it may take until they are (issue 4)."""


@dataclass(slots=True)
class Watched:
    """One table under load, and who wrote what of it."""

    url: str
    name: str
    workload: Workload
    producers: Producers
    store: Store

    def settled(self, writers: Sequence[str]) -> Written:
        """The checkpoint that comes three checkpoints after the first one that these processes wrote, and nobody else."""
        return wait_for_checkpoints(self.store, writers, CHECKPOINTS + 1)[CHECKPOINTS]

    def generation(self, cluster: Cluster) -> int:
        """1 while no checkpoint was given up."""
        with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
            [table] = hg.status(self.name).tables
        return table.generation

    def judge(self) -> None:
        """After the load: nobody saw an error, every row is there once."""
        assert_exactly_once(self.url, self.histories(), self.workload)

    def judge_all_rows(self) -> None:
        """As ``judge`` for EVERY_ROW, without the reader that takes most of a test with many files (others read with it)."""
        entries = ours(self.store)
        report = check_log(entries, self.histories(), self.workload, drop_beaten=False)
        report.anomalies += check_merged(read_merged(self.url), entries, self.histories(), self.workload)
        assert not report.anomalies, str(report)

    def histories(self) -> Sequence[History]:
        """Of producers that were never started again."""
        histories = self.producers.histories()
        assert all(len(history.attempts) == 1 for history in histories)
        return histories


@contextmanager
def watched(cluster: Cluster, folder: Path, workload: Workload, *names: str, buckets: int = 2, **how: Any) -> Iterator[Watched]:
    """The producers of these names write until a ``producers.finish`` of this folder. ``how``: see Producers."""
    name = f"t{workload.layout}"
    url = create_table(cluster.address, name, workload, buckets=buckets)
    with Producers(cluster.address, name, workload, folder, **{"rows": 0, "rate": 1000, **how}) as producers:
        for each in names:
            producers.start(each, wait=False)
        yield Watched(url, name, workload, producers, open_bytes(url))


def test_a_writer_is_added_and_one_is_drained_under_load(tmp_path: Path) -> None:
    options = {"coordinator": ["--checkpoint-interval", "1s", *PATIENT]}
    with (
        Cluster(tmp_path / "cluster", writers=3, options=options, plant=ALL_ROWS) as cluster,
        watched(cluster, tmp_path, EVERY_ROW, "one", "two", buckets=8, rate=2000, batch=100) as table,
    ):
        three = table.settled(list(processes(cluster).values()))
        cluster.start("writer-4")
        writers = processes(cluster)
        four = table.settled(list(writers.values()))
        assert cluster.drain("writer-1") == 0
        del writers["writer-1"]
        other_three = table.settled(list(writers.values()))
        assert table.generation(cluster) == 1, "a planned move drops nothing (rule RO3)"
        table.producers.finish()
        table.judge_all_rows()
        ratios = [ratio(table.store, written) for written in (three, four, other_three)]
        print("largest / smallest share", *(f"{each:.2f}" for each in ratios))
        assert max(ratios) <= EVENLY


def test_the_load_is_even_three_checkpoints_after_writers_changed_in_each_of_ten_layouts(tmp_path: Path) -> None:
    """Ten tables whose partitions have other names, so that their 64 buckets fall into other key groups of different weights.

    Their producers flush after each thousand rows and go on when these are durable: so many rows a checkpoint, on any machine.
    """
    options = {"coordinator": ["--checkpoint-interval", "1h", *PATIENT]}
    closed_loop = {"rate": 0, "batch": 100, "flush_every": 10}
    with Cluster(tmp_path / "cluster", writers=3, options=options, plant=ALL_ROWS) as cluster, ExitStack() as stack:
        tables = [
            stack.enter_context(
                watched(cluster, tmp_path, replace(EVERY_ROW, layout=layout), f"one-{layout}", buckets=8, **closed_loop)
            )
            for layout in range(1, 11)
        ]
        for table in tables:
            table.producers.part(f"one-{table.workload.layout}").wait_ready()
        wait_for_all(cluster, tables)
        cluster.start("writer-4")
        writers = wait_for_all(cluster, tables)
        assert cluster.drain("writer-1") == 0
        del writers["writer-1"]
        settled = [table.settled(list(writers.values())) for table in tables]
        assert [table.generation(cluster) for table in tables] == [1] * len(tables)
        for table in tables:
            table.producers.finish()
        for table in tables:
            table.judge_all_rows()
        ratios = [ratio(table.store, written) for table, written in zip(tables, settled, strict=True)]
        print("largest / smallest share", *(f"{each:.2f}" for each in ratios))
        assert max(ratios) <= EVENLY


def test_a_producer_waits_while_there_is_no_writer_and_goes_on_with_the_next_one(tmp_path: Path) -> None:
    options = {"coordinator": ["--checkpoint-interval", "500ms", *PATIENT]}
    with (
        Cluster(tmp_path / "cluster", writers=1, options=options) as cluster,
        watched(cluster, tmp_path, Workload(), "one") as table,
    ):
        table.producers.wait_acked("one", 500)
        assert cluster.drain("writer-1") == 0
        before = table.producers.history("one")
        assert processes(cluster) == {}
        cluster.start("writer-2")
        table.producers.wait_acked("one", before.attempts[-1].sent + 500)
        assert table.generation(cluster) == 1
        table.producers.finish()
        table.judge()


def test_a_coordinator_that_is_stopped_gives_its_tables_to_the_one_that_stands_by(tmp_path: Path) -> None:
    """Its lease would last for an hour: nobody waits for that, it is given back."""
    options = {"coordinator": ["--checkpoint-interval", "500ms", "--lease-ttl", "1h", *PATIENT]}
    with (
        Cluster(tmp_path / "cluster", coordinators=2, options=options) as cluster,
        watched(cluster, tmp_path, Workload(), "one", "two") as table,
    ):
        stopped = set()
        for _ in range(2):
            on(table.producers)
            [owner] = [name for name in ("coordinator-1", "coordinator-2") if owns(cluster, name, table.name)]
            assert cluster.drain(owner) == 0
            on(table.producers)
            cluster.start(owner)
            stopped.add(owner)
        assert stopped == {"coordinator-1", "coordinator-2"}
        table.producers.finish()
        table.judge()


@pytest.mark.parametrize("step", ["first_flush_begun", "file_durable"])
def test_a_writer_that_is_told_to_leave_in_the_middle_of_a_flush_finishes_it(step: str, tmp_path: Path) -> None:
    options = {"coordinator": ["--checkpoint-interval", "500ms", *PATIENT]}
    with (
        Cluster(tmp_path / "cluster", options=options, pause_at={"writer-1": f"{step}:3"}) as cluster,
        watched(cluster, tmp_path, Workload(), "one", "two") as table,
    ):
        cluster.wait_stopped("writer-1")
        assert terminate_stopped(cluster.part("writer-1")) == 0
        on(table.producers)
        assert table.generation(cluster) == 1
        table.producers.finish()
        table.judge()


def terminate_stopped(process: Process) -> int:
    """SIGTERM is what it wakes up to; its exit code."""
    process.expect_end()
    os.kill(process.pid, signal.SIGTERM)
    process.resume()
    return process.wait_end()


def wait_for_all(cluster: Cluster, tables: Sequence[Watched]) -> dict[str, str]:
    """Until each table has a checkpoint that all writers wrote; returns their process ids by name."""
    writers = processes(cluster)
    for table in tables:
        wait_for_checkpoints(table.store, list(writers.values()), 1)
    return writers


def owns(cluster: Cluster, coordinator: str, table: str) -> bool:
    """Whether that coordinator says so."""
    with headgate.connect(cluster.address_of(coordinator), timeout=READY_S, wait=READY_S) as hg:
        return [each.state for each in hg.status(table).tables] == ["owned"]


def on(producers: Producers) -> None:
    """Until each has 500 more rows durable than it had sent when this began."""
    for history in producers.histories():
        sent = history.attempts[-1].sent if history.attempts else 0
        producers.wait_acked(history.producer, sent + 500)
