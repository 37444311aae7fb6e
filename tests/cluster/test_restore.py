"""A savepoint of a running cluster, and the way back to it: rows, offsets, and what producers hear (rule CH8)."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import headgate
from headgate_cli.main import run
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.journal import Attempt, History
from support.producers import create_table
from support.workload import Workload

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
        with headgate.connect(self.address) as hg:
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
                lambda: len(self.history.attempts) >= attempt and self.history.acked >= number, timeout=60
            ), f"{self.history} {self.told}"


def command(cluster: Cluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The last line that a command of an operator said."""
    assert run([*arguments, "--connect", cluster.address, "--json"]) == 0, capsys.readouterr().err
    said: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return said


def go_on(producers: Sequence[Restored], attempt: int) -> None:
    for each in producers:
        each.wait_acked(attempt, (each.history.acked if len(each.history.attempts) == attempt else each.told[-1]) + MORE)


def test_a_table_goes_back_under_load_and_on_exactly_once_from_the_older_offset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(tmp_path / "cluster", options=SOON) as cluster:
        url = create_table(cluster.address, "t", COMMIT_TIME)
        producers = [Restored(cluster.address, name, COMMIT_TIME) for name in ("one", "two")]
        threads = [threading.Thread(target=each.run, name=each.name, daemon=True) for each in producers]
        for thread in threads:
            thread.start()
        try:
            for each in producers:
                each.wait_acked(1, MORE)
            saved = command(cluster, capsys, "savepoint", "t")["instant"]
            for each in producers:
                each.wait_acked(1, each.history.acked + MORE)
            undone = command(cluster, capsys, "restore", "t", saved, "--yes")["undone"]
            for each in producers:
                each.wait_acked(2, 1)
            for each in producers:
                each.wait_acked(2, each.told[0] + MORE)
        finally:
            for each in producers:
                each.end = max((attempt.sent for attempt in each.history.attempts), default=0) + 100
            for thread in threads:
                thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert undone
        for each in producers:
            assert [attempt.committed for attempt in each.history.attempts] == [0, *each.told]
            assert 0 < each.told[0] < each.history.attempts[0].sent
        assert_exactly_once(url, [each.history for each in producers], COMMIT_TIME)


def test_a_producer_that_was_away_during_the_restore_is_told_when_it_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(tmp_path / "cluster", options=SOON, links=True) as cluster, headgate.connect(cluster.address) as hg:
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
