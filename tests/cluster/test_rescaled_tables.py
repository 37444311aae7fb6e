"""A cluster's table gets another number of buckets while producers send and compactions run: each row is there once."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import headgate
from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from headgate_tables import hudi
from headgate_tables.hudi.keys.bucket import bucket_of
from support.cluster import Cluster
from support.compacted import compactions, until
from support.numbered_rows import SCHEMA, sending
from support.processes import READY_S
from support.readers import read_by_hudi_rs, read_by_us

pytestmark = pytest.mark.slow

SERVICES = ["--service-interval", "100ms", "--compaction-pause", "100ms"]
SOON = {
    "coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s", *SERVICES]
}
OFTEN = {"hoodie.compact.inline.max.delta.commits": "2", "headgate.compaction.first.delta.commits": "1"}


def made(hg: headgate.Headgate) -> headgate.Table:
    table = hg.create_table("t", SCHEMA, key="id", partition_by="part", buckets=4)
    table.configure(OFTEN)
    return table


def command(address: str, buckets: int, *more: str) -> list[str]:
    return ["table", "rescale", "t", "--buckets", str(buckets), "--connect", address, "--json", *more]


def events(said: str) -> dict[str, Any]:
    """The last line of each event."""
    return {line["event"]: line for line in map(json.loads, said.splitlines())}


def assert_whole(folder: Path, sent: int) -> None:
    """All rows that were sent, once each, by two readers."""
    for read in (read_by_us, read_by_hudi_rs):
        assert sorted(row["n"] for row in read(folder).select(["n"]).to_pylist()) == list(range(1, sent + 1))
    with hudi.open_table(str(folder)) as opened:
        assert not opened.verify().findings


def test_each_row_is_there_once_while_producers_send_and_compactions_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        Cluster(tmp_path / "cluster", writers=2, compactors=1, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S) as hg,
    ):
        url = made(hg).info.url
        with sending(hg.table("t").channel("c")) as sender:
            sender.wait_for_more()
            until(url, lambda opened: compactions(opened) > 1)
            for buckets in (8, 3, 12):
                assert run(command(cluster.address, buckets)) == ExitCode.OK
                done = events(capsys.readouterr().out)["rescaled"]
                assert (done["rows"] > 0, done["pause_s"] > 0) == (True, True)
                sender.wait_for_more()
                assert hg.table("t").info.buckets == buckets
            assert run(command(cluster.address, 5, "--partitions", "b")) == ExitCode.OK
            sender.wait_for_more()
            assert hg.table("t").info.partition_buckets == (("b", 5),)
            before = compactions(hudi.open_table(url))
            until(url, lambda opened: compactions(opened) > before + 1)
    with hudi.open_table(url) as opened:
        found = {(group.partition, bucket_of(group.file_id)) for group in opened.file_groups()}
        assert found == {("a", bucket) for bucket in range(12)} | {("b", bucket) for bucket in range(5)}
    assert_whole(tmp_path / "cluster" / "store" / "t", sender.sent)


@pytest.mark.parametrize("delay", [0.8, 1.2, 1.6])
def test_after_a_command_that_is_killed_the_owner_takes_the_table_back(tmp_path: Path, delay: float) -> None:
    with (
        Cluster(tmp_path / "cluster", options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S) as hg,
    ):
        made(hg)
        with sending(hg.table("t").channel("c")) as sender:
            sender.wait_for_more()
            killed = subprocess.Popen([sys.executable, "-m", "headgate_cli", *command(cluster.address, 6)])
            threading.Event().wait(delay)  # a moment inside the loan, or before or after it
            killed.send_signal(signal.SIGKILL)
            killed.wait()
            sender.wait_for_more()
            assert hg.table("t").info.buckets in (4, 6)
    assert_whole(tmp_path / "cluster" / "store" / "t", sender.sent)


def test_a_pause_longer_than_allowed_ends_with_the_table_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        Cluster(tmp_path / "cluster", options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S) as hg,
    ):
        made(hg)
        with sending(hg.table("t").channel("c")) as sender:
            sender.wait_for_more()
            assert run(command(cluster.address, 6, "--longest-pause", "1ms")) == ExitCode.OPERATOR
            error = json.loads(capsys.readouterr().err.splitlines()[-1])["error"]
            assert ("took longer: nothing has changed" in error["message"], "--longest-pause" in error["fix"]) == (True, True)
            sender.wait_for_more()
            assert hg.table("t").info.buckets == 4
    assert_whole(tmp_path / "cluster" / "store" / "t", sender.sent)
