"""The library deletes and overwrites partitions of a table that a running cluster writes: the cluster goes on with the new file
groups, and no row that is acknowledged later goes where nobody sees it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import headgate
from headgate_tables import hudi
from headgate_tables.errors import ReopenTable
from support.cluster import Cluster
from support.overwriting import overwrite
from support.processes import READY_S
from support.readers import read_by_hudi_rs, read_by_us

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
# An open compaction would refuse what this test does.
PLANNED_AFTER = ("hoodie.compact.inline.max.delta.commits", "headgate.compaction.first.delta.commits")
OTHERS = pa.table({"id": [f"other {n}" for n in range(9)], "part": ["a"] * 9, "n": [-1 - n for n in range(9)]}, schema=SCHEMA)
BATCH = 20
_Result = TypeVar("_Result")


@dataclass
class Sender:
    """Sends rows 1, 2, 3, … until it is stopped, each with a key of its own; even ones go to partition a, odd ones to b."""

    channel: headgate.Channel
    sent: int = 0
    ended: bool = False
    failed: list[BaseException] = field(default_factory=list)
    moved: threading.Condition = field(default_factory=threading.Condition)

    def run(self) -> None:
        try:
            while not self.ended:
                self._send()
            self.channel.flush("queryable")
        except BaseException as error:
            self.failed.append(error)
            raise
        finally:
            with self.moved:
                self.moved.notify_all()

    def _send(self) -> None:
        numbers = range(self.sent + 1, self.sent + BATCH + 1)
        columns = {"id": [str(n) for n in numbers], "part": ["ab"[n % 2] for n in numbers], "n": list(numbers)}
        self.channel.upsert(pa.table(columns, schema=SCHEMA), offset=numbers[-1])
        self.channel.flush("durable")
        with self.moved:
            self.sent = numbers[-1]
            self.moved.notify_all()

    def wait_for_more(self) -> int:
        """Waits until rows that were sent from now on are durable; returns the number of the newest durable row at the begin."""
        with self.moved:
            mark = self.sent
            assert self.moved.wait_for(lambda: self.failed or self.sent >= mark + 3 * BATCH, timeout=4 * READY_S), "no commits"
            assert not self.failed
            return mark


def take_over(url: str, work: Callable[[hudi.Table], _Result]) -> _Result:
    """Does it in this process, again as often as the cluster takes the table back before it is committed."""
    while True:
        with hudi.open_table(url, take_over=True) as table:
            try:
                return work(table)
            except ReopenTable:
                continue


@pytest.mark.slow
def test_rows_go_to_the_new_file_groups_while_two_writers_run(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster", options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S) as hg,
    ):
        table = hg.create_table("t", SCHEMA, key="id", partition_by="part", buckets=4)
        url = table.info.url
        take_over(url, lambda opened: opened.configure(dict.fromkeys(PLANNED_AFTER, "100000")))
        sender = Sender(table.channel("c"))
        thread = threading.Thread(target=sender.run)
        thread.start()
        try:
            sender.wait_for_more()
            removed = take_over(url, lambda opened: opened.delete_partitions(["a"]))
            sender.wait_for_more()
            before = sender.wait_for_more()
            replaced = take_over(url, lambda opened: overwrite(opened, OTHERS))
            after = sender.wait_for_more()
        finally:
            sender.ended = True
            thread.join()
        assert not sender.failed
        sender.channel.close()
    assert (removed.replaced, replaced.replaced) == (4, 4)
    for read in (read_by_us, read_by_hudi_rs):
        found = read(tmp_path / "cluster" / "store" / "t").select(["part", "n"]).to_pylist()
        of_a, of_b = (sorted(row["n"] for row in found if row["part"] == part) for part in "ab")
        assert of_b == list(range(1, sender.sent + 1, 2)), "of a partition that nobody overwrote"
        streamed = [n for n in of_a if n > 0]
        assert streamed == list(range(streamed[0], sender.sent + 1, 2)), "all rows since the overwrite"
        assert before < streamed[0] <= after + BATCH + 2, "of rows that were durable before it none, of later ones all"
        assert len(of_a) - len(streamed) == OTHERS.num_rows
    with hudi.open_table(url) as opened:
        assert not opened.verify().findings
