"""A savepoint of a running cluster, and the way back to it: rows, offsets, and what producers hear (rule CH8)."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import headgate
from headgate_cli.main import run
from headgate_tables.hudi import open_table
from support.cluster import Cluster
from support.compacted import compactions, until
from support.exactly_once import assert_exactly_once
from support.journal import Attempt, History
from support.processes import READY_S
from support.producers import create_table
from support.workload import Workload

pytestmark = pytest.mark.slow

SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
COMMIT_TIME = Workload(event_time=False, deletes=False)
MORE = 1500


@dataclass
class Restored:
    """A producer that sends until it is told to end, and opens its channel again when the table was taken back."""

    address: str
    name: str
    workload: Workload
    history: History = field(init=False)
    told: list[int] = field(default_factory=list)
    end: int = 0
    _acked: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.history = History(self.name)

    def run(self) -> None:
        with headgate.connect(self.address, wait=READY_S) as hg:
            while True:
                try:
                    self._send(hg.table("t").channel(self.name))
                except headgate.TableRestoredError as restored:
                    self.told.append(restored.committed_offset)
                    self.history.acked = 0
                    continue
                return

    def _send(self, channel: headgate.Channel) -> None:
        attempt = Attempt(len(self.history.attempts) + 1, channel.committed_offset, channel.committed_offset)
        self.history.attempts.append(attempt)
        while not self.end or attempt.sent < self.end:
            first, attempt.sent = attempt.sent + 1, attempt.sent + 50
            channel.write(self.workload.rows(self.name, first, attempt.sent, attempt.number), offset=attempt.sent)
            self._note(channel.committed_offset)
        channel.flush("queryable")
        self._note(channel.committed_offset)
        channel.close()

    def _note(self, committed: int) -> None:
        with self._acked:
            self.history.acked = committed
            self._acked.notify_all()

    def wait_acked(self, attempt: int, number: int) -> None:
        with self._acked:
            assert self._acked.wait_for(
                lambda: len(self.history.attempts) >= attempt and self.history.acked >= number, timeout=READY_S
            ), f"{self.history} {self.told}"


def command(cluster: Cluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The last line that a command of an operator said."""
    assert run([*arguments, "--connect", cluster.address, "--json"]) == 0, capsys.readouterr().err
    said: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return said


def go_on(producers: Sequence[Restored]) -> None:
    """Returns when some more rows of each are committed."""
    for each in producers:
        each.wait_acked(1, each.history.acked + MORE)


@contextmanager
def producing(cluster: Cluster, *names: str) -> Iterator[list[Restored]]:
    """They send until the block ends; then each flushes and ends."""
    producers = [Restored(cluster.address, name, COMMIT_TIME) for name in names]
    threads = [threading.Thread(target=each.run, name=each.name, daemon=True) for each in producers]
    for thread in threads:
        thread.start()
    try:
        yield producers
    finally:
        for each in producers:
            each.end = max((attempt.sent for attempt in each.history.attempts), default=0) + 100
        for thread in threads:
            thread.join(READY_S)
    assert not any(thread.is_alive() for thread in threads)


def go_back(cluster: Cluster, capsys: pytest.CaptureFixture[str], producers: Sequence[Restored], instant: str) -> None:
    """Returns once every producer has sent from the older offset on."""
    assert command(cluster, capsys, "restore", "t", instant, "--yes")["undone"]
    for each in producers:
        each.wait_acked(2, 1)
        each.wait_acked(2, each.told[0] + MORE)


def assert_went_back(url: str, producers: Sequence[Restored]) -> None:
    for each in producers:
        assert [attempt.committed for attempt in each.history.attempts] == [0, *each.told]
        assert 0 < each.told[0] < each.history.attempts[0].sent
    assert_exactly_once(url, [each.history for each in producers], COMMIT_TIME)


def test_a_table_goes_back_under_load_and_on_exactly_once_from_the_older_offset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(tmp_path / "cluster", options=SOON) as cluster:
        url = create_table(cluster.address, "t", COMMIT_TIME)
        with producing(cluster, "one", "two") as producers:
            go_on(producers)
            saved = command(cluster, capsys, "savepoint", "t")["instant"]
            go_on(producers)
            go_back(cluster, capsys, producers, saved)
        assert_went_back(url, producers)


def test_a_compactor_that_slept_through_a_restore_with_an_operation_of_an_undone_plan_does_no_harm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services = ["--service-interval", "100ms", "--compactor-timeout", "3s", "--compaction-pause", "100ms"]
    options = {"coordinator": [*SOON["coordinator"], *services]}
    with Cluster(tmp_path / "cluster", compactors=1, options=options) as cluster:
        url = create_table(cluster.address, "t", COMMIT_TIME)
        often = ("hoodie.compact.inline.max.delta.commits=2", "headgate.compaction.first.delta.commits=1")
        command(cluster, capsys, "configure", "t", *often)
        with producing(cluster, "one", "two") as producers:
            go_on(producers)
            until(url, lambda table: compactions(table) > 0)
            cluster.drain("compactor-1")
            saved = command(cluster, capsys, "savepoint", "t")["instant"]
            cluster.start("compactor-1", pause_at="operation_claimed:1")
            cluster.wait_stopped("compactor-1")
            go_on(producers)
            go_back(cluster, capsys, producers, saved)
            cluster.resume("compactor-1")
            before = compactions(open_table(url))
            table = until(url, lambda table: compactions(table) > before)
        assert_went_back(url, producers)
        assert table.verify().ok


def test_a_producer_that_was_away_during_the_restore_is_told_when_it_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        Cluster(tmp_path / "cluster", options=SOON, links=True) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        create_table(cluster.address, "t", COMMIT_TIME)
        channel = hg.table("t").channel("one")
        channel.write(COMMIT_TIME.rows("one", 1, 10, 1), offset=10)
        channel.flush("queryable")
        saved = command(cluster, capsys, "savepoint", "t")["instant"]
        channel.write(COMMIT_TIME.rows("one", 11, 20, 1), offset=20)
        channel.flush("queryable")
        for writer in ("writer-1", "writer-2"):
            cluster.cut("client", writer)
        command(cluster, capsys, "restore", "t", saved, "--yes")
        cluster.restart("coordinator-1")
        for writer in ("writer-1", "writer-2"):
            cluster.heal("client", writer)
        channel.write(COMMIT_TIME.rows("one", 21, 30, 1), offset=30)
        with pytest.raises(headgate.TableRestoredError) as told:
            channel.flush("queryable")
        assert told.value.committed_offset == 10
        with hg.table("t").channel("one") as again:
            assert again.committed_offset == 10


@pytest.mark.parametrize("step", ["restore_sent:1", "restore_won:1"])
def test_a_coordinator_that_dies_at_a_restore_leaves_it_undone_or_done_and_the_next_one_goes_on(
    tmp_path: Path, step: str
) -> None:
    """Behind its slot, what it undoes is still on the timeline when the next coordinator comes."""
    done = step == "restore_won:1"
    with (
        Cluster(tmp_path / "cluster", options=SOON, kill_at={"coordinator-1": step}) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        url = create_table(cluster.address, "t", COMMIT_TIME)
        with hg.table("t").channel("one") as channel:
            channel.write(COMMIT_TIME.rows("one", 1, 10, 1), offset=10)
        saved = hg.table("t").savepoint()
        with hg.table("t").channel("one") as channel:
            channel.write(COMMIT_TIME.rows("one", 11, 20, 1), offset=20)
        with pytest.raises(headgate.UnknownOutcomeError):
            hg.table("t").restore(saved)
        cluster.wait_dead("coordinator-1")
        cluster.start("coordinator-1")
        history = History("one")
        with hg.table("t").channel("one") as channel:
            first = channel.committed_offset + 1
            channel.write(COMMIT_TIME.rows("one", first, 30, 2), offset=30)
    assert first == (11 if done else 21)
    history.attempts = [Attempt(1, 0, first - 1), Attempt(2, first - 1, 30)]
    history.acked = 30
    assert_exactly_once(url, [history], COMMIT_TIME)
    assert open_table(url).verify().ok
