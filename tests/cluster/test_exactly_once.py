"""Exactly once with real processes: rows come through the SDK, processes die, and the committed log is read unmerged."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.planted import ALL_ROWS
from support.producers import Producers, create_table
from support.tiers import slow_but
from support.workload import Workload

SOON = ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms"]
PATIENT = ["--writer-timeout", "20s"]
"""A busy machine loses no writer."""
EVENT_TIME, COMMIT_TIME = Workload(), Workload(event_time=False)
BOTH = pytest.mark.parametrize("workload", slow_but([EVENT_TIME], [EVENT_TIME, COMMIT_TIME]), ids=["event time", "commit time"])
LEASE_S = 5.0


@BOTH
def test_what_two_producers_send_is_there_once(workload: Workload, tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", options={"coordinator": [*SOON, *PATIENT]}) as cluster:
        url = create_table(cluster.address, "t", workload)
        with Producers(cluster.address, "t", workload, tmp_path, rows=10_000) as producers:
            producers.start("one")
            producers.start("two")
            producers.wait()
        report = assert_exactly_once(url, producers.histories(), workload)
        assert [cluster.drain(name) for name in ("writer-1", "writer-2", "coordinator-1")] == [0, 0, 0]
    assert report.entries + report.dropped == 20_000


@pytest.mark.slow
def test_where_nothing_is_dropped_in_a_flush_every_number_is_in_the_log(tmp_path: Path) -> None:
    workload = Workload(deletes=False)
    options = {"coordinator": [*SOON, *PATIENT]}
    restart: Callable[[Cluster, Producers], Any] = NEMESES["writer killed"]
    report = under(tmp_path, workload, restart, plant=ALL_ROWS, drop_beaten=False, options=options)
    assert report.dropped == 0


def kill_producer(cluster: Cluster, producers: Producers) -> None:
    producers.kill("one")
    producers.start("one")


def fence_producer(cluster: Cluster, producers: Producers) -> None:
    old = producers.part("one")
    producers.start("one")
    assert old.wait_end() != 0, "the older producer of the name is told that it was taken over"


def kill_redis_and_coordinator(cluster: Cluster, producers: Producers) -> None:
    cluster.kill("redis")
    cluster.kill("coordinator-1")
    cluster.start("coordinator-1", wait=False)
    cluster.start("redis")


def kill_writer_and_coordinator(cluster: Cluster, producers: Producers) -> None:
    cluster.kill("writer-2")
    cluster.kill("coordinator-1")
    cluster.start("coordinator-1")
    cluster.start("writer-2")


def pause_past_the_lease(cluster: Cluster, producers: Producers) -> None:
    cluster.pause("coordinator-1")
    time.sleep(LEASE_S + 2)
    cluster.resume("coordinator-1")


def pause_writer(cluster: Cluster, producers: Producers) -> None:
    cluster.pause("writer-1")
    time.sleep(4)
    cluster.resume("writer-1")


def drain_and_add(cluster: Cluster, producers: Producers) -> None:
    cluster.start("writer-3")
    assert cluster.drain("writer-1") == 0


NEMESES: Mapping[str, Callable[[Cluster, Producers], Any]] = {
    "producer killed": kill_producer,
    "producer fenced": fence_producer,
    "writer killed": lambda cluster, producers: cluster.restart("writer-1"),
    "coordinator killed": lambda cluster, producers: cluster.restart("coordinator-1"),
    "redis killed": lambda cluster, producers: cluster.restart("redis"),
    "redis flushed": lambda cluster, producers: cluster.redis("FLUSHALL"),
    "redis and coordinator killed": kill_redis_and_coordinator,
    "writer and coordinator killed": kill_writer_and_coordinator,
    "writer paused": pause_writer,
    "a writer added, one drained": drain_and_add,
}


@pytest.mark.parametrize("nemesis", slow_but(["writer killed"], NEMESES))
def test_nothing_is_lost_doubled_or_swapped_when(nemesis: str, tmp_path: Path) -> None:
    patient = [] if nemesis == "writer paused" else PATIENT  # that one has to be missed
    under(tmp_path, COMMIT_TIME, NEMESES[nemesis], options={"coordinator": [*SOON, *patient]})


@pytest.mark.slow
def test_an_owner_that_slept_past_its_lease_writes_nothing_more(tmp_path: Path) -> None:
    under(tmp_path, EVENT_TIME, pause_past_the_lease, coordinators=2)


@pytest.mark.parametrize("kind", ["reset", "stall"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("writer-1", "writer-2"),
        ("writer-1", "coordinator-1"),
        ("coordinator-1", "redis"),
        ("client", "writer-1"),
        ("client", "coordinator-1"),
    ],
)
@pytest.mark.slow
def test_nothing_is_lost_doubled_or_swapped_when_the_connection_is_cut(one: str, other: str, kind: Any, tmp_path: Path) -> None:
    def cut(cluster: Cluster, producers: Producers) -> None:
        cluster.cut(one, other, kind)
        time.sleep(4)
        cluster.heal(one, other)

    under(tmp_path, COMMIT_TIME, cut, links=True)


def break_streams(cluster: Cluster, producers: Producers) -> None:
    """While rows are under way and a checkpoint is far: clients open again at once and send again what is not committed. Its
    callers come right behind a checkpoint, when few rows are undecided; so it waits, and does it again.
    """
    for _ in range(4):
        time.sleep(0.7)
        for name in ("writer-1", "writer-2"):
            cluster.cut("client", name)
            cluster.heal("client", name)


@pytest.mark.slow
def test_a_cluster_whose_duplicate_check_is_off_is_found_out(tmp_path: Path) -> None:
    options = {"coordinator": ["--checkpoint-interval", "2s", *PATIENT]}
    plant = {"coordinator": ("grants_at_once", "compares_nothing"), **ALL_ROWS}
    told: dict[str, Any] = {"options": options, "links": True, "drop_beaten": False}
    with pytest.raises(AssertionError, match="'doubled': "):
        under(tmp_path, Workload(deletes=False), break_streams, plant=plant, **told)


def under(
    folder: Path,
    workload: Workload,
    nemesis: Callable[[Cluster, Producers], Any],
    *,
    coordinators: int = 1,
    links: bool = False,
    options: Mapping[str, list[str]] | None = None,
    drop_beaten: bool = True,
    plant: Mapping[str, tuple[str, ...]] | None = None,
) -> Any:
    """Two producers write, the nemesis does its work twice, everybody gets on, and the table is judged."""
    options = options or {"coordinator": SOON}
    with Cluster(folder / "cluster", coordinators=coordinators, links=links, options=options, plant=plant) as cluster:
        url = create_table(cluster.address, "t", workload)
        with Producers(cluster.address, "t", workload, folder, rows=0, rate=1000) as producers:
            producers.start("one")
            producers.start("two")
            for _ in range(1 if coordinators > 1 or "writer-3" in cluster.parts else 2):
                on(producers)
                nemesis(cluster, producers)
                if "writer-3" in cluster.parts:
                    break
            on(producers)
            producers.finish()
        return assert_exactly_once(url, producers.histories(), workload, drop_beaten=drop_beaten)


def on(producers: Producers) -> None:
    """Until each has 500 more rows durable than it had sent when this began."""
    goals = {history.producer: history.attempts[-1].sent + 500 for history in producers.histories()}
    for name, goal in goals.items():
        producers.wait_acked(name, goal)
