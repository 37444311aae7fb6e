"""Partitions expire by themselves while a producer sends: older rows are gone, later ones are all there, once."""

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from headgate_tables import hudi
from headgate_tables.catalog import Catalog
from headgate_tables.commitlog.times import parse_time
from headgate_tables.system import System
from support.cluster import Cluster
from support.compacted import until
from support.numbered_rows import SCHEMA, sending
from support.processes import READY_S
from support.readers import read_by_hudi_rs, read_by_us
from support.systems import SetClock, system

pytestmark = pytest.mark.slow

SERVICES = ["--service-interval", "100ms", "--compaction-pause", "100ms", "--expiry-interval", "1s"]
SOON = {
    "coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s", *SERVICES]
}
DAY_MS = 86_400_000
OLD = 40
"""Days since partition ``a``, which gets rows again, and ``old``, which gets none, were written."""


def make_old_table(store: Path) -> None:
    """A table with rows of OLD days ago."""
    clock = SetClock(int(time.time() * 1000) - OLD * DAY_MS)
    with hudi.create_table(
        str(store / "t"), SCHEMA, record_key="id", partition_by="part", buckets=2, name="t", system=system(clock)
    ) as table:
        table.upsert(hudi_rows("a", "old"))
    Catalog(str(store), None, System.real()).add("t", "t")


def hudi_rows(*parts: str) -> pa.Table:
    return pa.Table.from_pylist([{"id": f"{part}0", "part": part, "n": 0} for part in parts], SCHEMA)


def numbers(folder: Path) -> list[int]:
    """Of all rows, as two readers see them."""
    ours, theirs = (sorted(row["n"] for row in read(folder).to_pylist()) for read in (read_by_us, read_by_hudi_rs))
    assert ours == theirs
    return ours


def removals(table: hudi.Table) -> int:
    return sum(commit.action == "replacecommit" for commit in table.commits())


def test_partitions_expire_while_rows_come_and_rows_that_come_later_stay(tmp_path: Path) -> None:
    store = tmp_path / "cluster" / "store"
    with (
        Cluster(tmp_path / "cluster", compactors=1, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S) as hg,
    ):
        make_old_table(store)
        table = hg.table("t")
        url = table.info.url
        with sending(table.channel("c")) as sender:
            table.configure({"headgate.ttl": "30d"})
            until(url, lambda opened: removals(opened) > 0)
            with table.channel("late") as late:
                late.upsert({"id": "late", "part": "old", "n": -1})
            until(url, lambda opened: len(opened.commits()) > 25)  # some looks later
            sender.wait_for_more()
        last = sender.sent
    found = numbers(store / "t")
    assert found == [-1] + [0] * found.count(0) + list(range(1, last + 1)), "every row that was sent, once"
    assert found.count(0) <= 1, "of old it is gone; that of a has stayed if the producer wrote to a first"
    with hudi.open_table(url) as opened:
        assert not opened.verify().findings


@pytest.mark.parametrize("delay", [0.9, 1.05, 1.2])
def test_an_owner_that_is_killed_meanwhile_has_removed_all_expired_partitions_or_its_successor_does(
    tmp_path: Path, delay: float
) -> None:
    store = tmp_path / "cluster" / "store"
    with (
        Cluster(tmp_path / "cluster", coordinators=2, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S) as hg,
    ):
        make_old_table(store)
        table = hg.table("t")
        with sending(table.channel("c")) as sender:
            sender.wait_for_more()
            table.configure({"headgate.ttl": "30d"})
            [status] = [each for each in hg.status("t").tables if each.name == "t"]
            threading.Event().wait(delay)  # a moment before, inside or after the removal
            cluster.kill(status.owner)
            cluster.start(status.owner)
            until(table.info.url, lambda opened: removals(opened) > 0)
            sender.wait_for_more()
        last = sender.sent
    found = [n for n in numbers(store / "t") if n]
    assert found == list(range(1, last + 1)), "no hole"
    with hudi.open_table(table.info.url) as opened:
        assert not opened.verify().findings
        [removal] = [each for each in opened.commits() if each.action == "replacecommit"]
        assert parse_time(removal.completion) <= time.time() * 1000 + 1000
