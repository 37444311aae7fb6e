"""The producer that runs in pods, here as a process beside a cluster of processes."""

import json
import sys
from pathlib import Path

import pytest

from headgate_tables.storage.local import LocalStore
from headgate_tables.system import SystemIds
from k8s.commits import CommitWatch
from k8s.judging import histories, judge
from k8s.kubectl import wait_until
from k8s.notes import Notes
from support.cluster import Cluster
from support.committed_log import open_bytes
from support.processes import Process
from support.workload import Workload

pytestmark = pytest.mark.slow

OPTIONS = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
WORKLOAD = Workload(partitions=2)


def start(name: str, cluster: Cluster, folder: Path) -> Process:
    told = {"name": name, "table": "t", "address": cluster.address, "notes": str(folder / "notes"), "rate": "400", "batch": "40"}
    told |= {"buckets": "2", "partitions": "2", "pod": name, "token": "", "ca": ""}
    env = {f"PRODUCER_{key.upper()}": value for key, value in told.items()}
    return Process(name, [sys.executable, "-m", "k8s.producer"], folder / f"{name}.log", env=env, program="k8s.producer")


def test_producers_that_are_killed_and_fenced_leave_a_history_by_which_the_table_is_right(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    notes = Notes(LocalStore(str(tmp_path / "notes"), SystemIds()))

    def acked(name: str, attempt: int) -> bool:
        return any(a.producer == name and a.number == attempt and a.acked > max(a.committed, 100) for a in notes.attempts())

    with Cluster(tmp_path / "cluster", options=OPTIONS) as cluster:
        url = f"file://{tmp_path}/cluster/store/t"
        watch = CommitWatch(open_bytes(url))
        try:
            parts = [start("one", cluster, tmp_path), start("two", cluster, tmp_path)]
            wait_until("rows of both", lambda: acked("one", 1) and acked("two", 1))
            parts[0].kill()
            parts.append(start("one", cluster, tmp_path))
            fencing = start("two", cluster, tmp_path)
            parts.append(fencing)
            wait_until("rows of the later attempts", lambda: acked("one", 2) and acked("two", 2))
            notes.ask_to_finish()
            wait_until("the end", lambda: sum(attempt.ended for attempt in notes.attempts()) == 2)
        finally:
            watch.stop()
            for part in parts:
                part.kill()
        found = judge(url, notes.attempts(), WORKLOAD)
    assert found.is_well, found
    assert [attempt.superseded for attempt in notes.attempts() if attempt.producer == "two"] == [True, False]
    assert len(watch.seen) > 5
    assert [commit.at for commit in watch.seen] == sorted(commit.at for commit in watch.seen)


def test_an_attempt_that_was_noted_by_nobody_else_is_claimed(tmp_path: Path) -> None:
    notes = Notes(LocalStore(str(tmp_path), SystemIds()))
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "000002.json").write_text(json.dumps({"producer": "one", "number": 2, "committed": 7, "sent": 9}))
    assert notes.claim("one", "pod").number == 3
    assert [(each.number, each.committed) for each in notes.attempts()] == [(2, 7), (3, -1)]
    assert [attempt.number for attempt in histories(notes.attempts())[0].attempts] == [2]
