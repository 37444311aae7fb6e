"""The library deletes and overwrites partitions of a table that a running cluster writes: the cluster goes on with the new file
groups, and no row that is acknowledged later goes where nobody sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import headgate
from headgate_tables import hudi
from headgate_tables.errors import ReopenTable
from support.cluster import Cluster
from support.numbered_rows import BATCH, SCHEMA, sending
from support.overwriting import overwrite
from support.processes import READY_S
from support.readers import read_by_hudi_rs, read_by_us

SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]}
# An open compaction would refuse what this test does.
PLANNED_AFTER = ("hoodie.compact.inline.max.delta.commits", "headgate.compaction.first.delta.commits")
OTHERS = pa.table({"id": [f"other {n}" for n in range(9)], "part": ["a"] * 9, "n": [-1 - n for n in range(9)]}, schema=SCHEMA)
_Result = TypeVar("_Result")


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
        with sending(table.channel("c")) as sender:
            sender.wait_for_more()
            removed = take_over(url, lambda opened: opened.delete_partitions(["a"]))
            sender.wait_for_more()
            before = sender.wait_for_more()
            replaced = take_over(url, lambda opened: overwrite(opened, OTHERS))
            after = sender.wait_for_more()
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
