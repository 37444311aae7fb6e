"""Rows of a table are removed while producers send and compactions run: older ones are gone, later ones are all there."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import headgate
from headgate_tables import hudi
from support.cluster import Cluster
from support.compacted import compactions, until
from support.numbered_rows import BATCH, SCHEMA, Sender, sending
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


def numbers(folder: Path, part: str) -> list[int]:
    """Of the rows of a partition, as two readers see them."""
    ours, theirs = (
        sorted(row["n"] for row in read(folder).select(["part", "n"]).to_pylist() if row["part"] == part)
        for read in (read_by_us, read_by_hudi_rs)
    )
    assert ours == theirs
    return ours


def test_rows_are_removed_while_producers_send_and_compactions_run(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster", compactors=1, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S) as hg,
    ):
        table = made(hg)
        url = table.info.url
        with sending(table.channel("c")) as sender:
            sender.wait_for_more()
            until(url, lambda opened: compactions(opened) > 1)
            for partitions in ("a", None, "b", None):
                before = sender.wait_for_more()
                assert table.truncate(partitions).file_groups >= 4
            after = sender.wait_for_more()
            done = compactions(hudi.open_table(url))
            until(url, lambda opened: compactions(opened) > done + 1)
        with pytest.raises(headgate.InvalidArgumentError, match="no partition 'z'"):
            table.truncate(["a", "z"])
        assert sender.sent > after
    folder = tmp_path / "cluster" / "store" / "t"
    for part, parity in (("a", 0), ("b", 1)):
        found = numbers(folder, part)
        assert found == list(range(found[0], sender.sent + 1, 2)), "all rows since the truncation, once"
        assert before < found[0] <= after + BATCH + 2, "none of the rows that were durable before it"
        assert found[0] % 2 == parity
    with hudi.open_table(url) as opened:
        assert not opened.verify().findings


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1])
def test_an_owner_that_is_killed_meanwhile_has_removed_all_older_rows_or_none(tmp_path: Path, delay: float) -> None:
    with (
        Cluster(tmp_path / "cluster", coordinators=2, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S) as hg,
        ThreadPoolExecutor(1) as asking,
    ):
        table = made(hg)
        with sending(table.channel("c")) as sender:
            before = _durable(sender)
            [status] = [each for each in hg.status("t").tables if each.name == "t"]
            asked = asking.submit(table.truncate)
            threading.Event().wait(delay)  # a moment inside the call, or before or after it
            cluster.kill(status.owner)
            cluster.start(status.owner)
            try:
                asked.result(READY_S)
                unknown = False
            except headgate.UnknownOutcomeError:
                unknown = True
            after = sender.wait_for_more()
    folder = tmp_path / "cluster" / "store" / "t"
    for part, parity in (("a", 0), ("b", 1)):
        found = numbers(folder, part)
        first = parity or 2
        assert found == list(range(found[0], sender.sent + 1, 2)), "no hole"
        assert (unknown and found[0] == first) or before < found[0] <= after + BATCH + 2
    with hudi.open_table(table.info.url) as opened:
        assert not opened.verify().findings


def _durable(sender: Sender) -> int:
    sender.wait_for_more()
    return sender.wait_for_more()
