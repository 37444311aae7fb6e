"""kill -9 at each step that docs/protocol/crashes.md names: nothing is lost, doubled or swapped, whoever dies there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.planted import folds_often
from support.producers import Producers, create_table
from support.s3 import real_s3
from support.tiers import slow_but
from support.workload import Workload

SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
"""A process that dies is known by its streams, at once; a busy machine loses no writer."""
RATE = 1000


@dataclass(frozen=True, slots=True)
class Death:
    """``part`` kills itself when it reaches ``step`` for the ``hit``-th time."""

    part: str
    step: str
    hit: int
    writers: int = 2

    def __str__(self) -> str:
        return f"{self.part} at {self.step}"


@dataclass(frozen=True, slots=True)
class Place:
    """``store``: "" for a folder of the cluster's own. ``options``, ``hudi_rs_options``: how the checker reaches it."""

    store: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] | None = None
    hudi_rs_options: Mapping[str, str] | None = None


LOCAL = Place()
WRITER = [
    # With two, all channels may be at the other one.
    Death("writer-1", "channel_opened", 1, writers=1),
    Death("writer-1", "acks_sent", 2, writers=1),
    *(
        Death("writer-1", step, hit)
        for step, hit in [
            ("first_flush_begun", 2),
            ("file_durable", 3),
            ("first_barrier_in", 3),
            ("last_barrier_in", 3),
            ("status_sent", 3),
        ]
    ),
]
COORDINATOR = [
    Death("coordinator-1", step, hit)
    for step, hit in [
        ("fence_sent", 1),
        ("fence_won", 1),
        ("incarnation_slot_sent", 1),
        ("incarnation_slot_won", 1),
        ("filling_begun", 3),
        ("barrier_sent", 4),
        ("first_barrier_in", 4),
        ("last_barrier_in", 4),
        ("all_statuses_in", 3),
        ("slot_sent", 4),
        ("slot_won", 4),
        ("derived_file", 40),
        ("acks_sent", 5),
    ]
]
COORDINATOR += [
    Death("coordinator-1", "border_with_move", 1),
    Death("coordinator-1", "fold_written", 1),
]
FAST = ["coordinator-1 at slot_won"]
WORKLOADS = [Workload(), Workload(event_time=False)]


ON_S3 = ["writer-1 at file_durable", "coordinator-1 at fence_won", "coordinator-1 at slot_sent", "coordinator-1 at slot_won"]
"""Where an object store does another thing than a disk: files have their names before the slot, and there are no links."""


@pytest.mark.parametrize("death", slow_but(FAST, [*WRITER, *COORDINATOR]), ids=str)
def test_who_dies_at_a_step_loses_doubles_and_swaps_nothing(death: Death, tmp_path: Path) -> None:
    die_and_come_back(death, tmp_path, LOCAL)


@pytest.mark.slow
@pytest.mark.parametrize("death", [death for death in (*WRITER, *COORDINATOR) if str(death) in ON_S3], ids=str)
def test_who_dies_at_a_step_on_s3_loses_doubles_and_swaps_nothing(death: Death, tmp_path: Path) -> None:
    (tmp_path / "s3").mkdir()
    with real_s3(tmp_path / "s3") as s3:
        env = {f"AWS_{name.upper()}": value for name, value in s3.options.items()}
        die_and_come_back(death, tmp_path, Place(s3.make_bucket("lake") + "/store", env, s3.options, s3.hudi_rs_options))


def die_and_come_back(death: Death, folder: Path, place: Place) -> None:
    workload = WORKLOADS[len(death.step) % 2]
    cluster = Cluster(
        folder / "cluster",
        store=place.store,
        env=place.env,
        writers=death.writers,
        options=SOON,
        kill_at={death.part: f"{death.step}:{death.hit}"},
        plant={"coordinator": (folds_often.__name__,)} if death.step == "fold_written" else {},
    )
    with cluster:
        url = create_table(cluster.address, "t", workload)
        with Producers(cluster.address, "t", workload, folder, rows=0, rate=RATE) as producers:
            for name in ("one", "two", "three"):
                producers.start(name, wait=False)
            cluster.wait_dead(death.part)
            cluster.start(death.part)
            for name in ("one", "two", "three"):
                producers.wait_acked(name, 500)
                producers.wait_acked(name, producers.history(name).attempts[-1].sent)
            producers.finish()
        assert cluster.hits(death.part)[death.step] >= death.hit
        assert_exactly_once(url, producers.histories(), workload, options=place.options, hudi_rs_options=place.hudi_rs_options)
