"""Processes are taken from version 1 of the protocol to this one and back, one at a time, while rows come."""

from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest

from headgate_proto.api.v1 import tables_pb2, tables_pb2_grpc
from headgate_proto.handshake import UNSAID, VERSION, version_in
from support import earlier
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.producers import Producers, create_table
from support.workload import Workload

WORKLOAD = Workload(event_time=False)
LIMIT_S = 300
"""For one step on a loaded machine."""
PARTS = ("coordinator-1", "writer-1", "writer-2", "compactor-1")
UPGRADED = ("coordinator-1", "writer-1", "compactor-1")
"""The other writer stays old, and speaks with all of these."""
SOON = ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms"]
OPTIONS = {"coordinator": [*SOON, "--writer-timeout", "20s", "--lease-ttl", "30s", "--lease-renewal", "2s"]}


def on(everybody: Sequence[Producers]) -> None:
    """Until each producer has 100 more rows durable than it had sent when this began."""
    goals = [
        (producers, history.producer, history.attempts[-1].sent + 100)
        for producers in everybody
        for history in producers.histories()
    ]
    for producers, name, goal in goals:
        producers.wait_acked(name, goal, LIMIT_S)


def version_of(address: str) -> int:
    """What a coordinator says of itself."""
    with grpc.insecure_channel(address) as channel:
        find = tables_pb2_grpc.TableServiceStub(channel).FindWriters
        call = find.with_call(tables_pb2.FindWritersRequest(), timeout=LIMIT_S, wait_for_ready=True)[1]
        return version_in(dict(call.initial_metadata()))


def exchange(cluster: Cluster, name: str) -> None:
    """A process of the other version in its place."""
    cluster.drain(name, LIMIT_S)
    cluster.start(name)


@pytest.mark.slow
def test_rows_of_old_and_new_programs_come_through_once_while_each_process_is_upgraded_and_taken_back(tmp_path: Path) -> None:
    old = earlier.import_path(tmp_path / "earlier")
    code = dict.fromkeys(PARTS, old)
    with Cluster(tmp_path / "cluster", writers=2, compactors=1, options=OPTIONS, code=code) as cluster:
        url = create_table(cluster.address, "t", WORKLOAD)
        with (
            Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=100, timeout=LIMIT_S, code=old) as before,
            Producers(cluster.address, "t", WORKLOAD, tmp_path, rows=0, rate=100, timeout=LIMIT_S) as today,
        ):
            before.start("before")
            today.start("today")
            on([before, today])
            assert version_of(cluster.address_of("coordinator-1")) == UNSAID
            for name in UPGRADED:
                del cluster.code[name]
                exchange(cluster, name)
                on([before, today])
            assert version_of(cluster.address_of("coordinator-1")) == VERSION
            cluster.code["coordinator-1"] = old
            exchange(cluster, "coordinator-1")
            on([before, today])
            for producers in (before, today):
                producers.finish(LIMIT_S)
            assert_exactly_once(url, [*before.histories(), *today.histories()], WORKLOAD)
