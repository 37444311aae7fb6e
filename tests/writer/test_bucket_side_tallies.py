"""What a bucket side counts of a checkpoint's rows: bytes of each key group, rows of each sender, rows that others beat."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from headgate_tables.hudi.keys.bucket import key_group
from headgate_writer.bucket_side import BucketSide
from headgate_writer.buffers import MemoryBudget
from headgate_writer.tallies import Tally
from support.arrow_batches import routed
from support.bucket_tables import ME, OTHER, OwnedTable, bucket_side, membership, settled


def many(ids: range, part: str = "p") -> list[dict[str, Any]]:
    return [{"id": f"k{n}", "part": part, "ts": n, "note": "n"} for n in ids]


def take(side: BucketSide, table: OwnedTable, checkpoint: int, ids: range) -> None:
    side.add_rows(checkpoint, routed(many(ids), table.definition), ME)


async def test_bytes_by_key_group_are_those_of_the_whole_checkpoint(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path, buckets=1)
    budget = MemoryBudget(soft=10_000, hard=1 << 30)
    async with bucket_side(table.attached(), budget) as (side, heard):
        side.set_membership(membership(1, ME))
        side.set_instant(1, table.begin().instant)
        sent = [routed(many(range(n * 100, n * 100 + 100), part=f"p{n % 2}"), table.definition) for n in range(6)]
        for rows in sent:
            side.add_rows(1, rows, ME)
            await settled()
        side.add_barrier(1, ME)
        flushed = await heard.until_flushed(1)
        wanted: Counter[int] = Counter()
        for n, rows in enumerate(sent):
            wanted[key_group(f"p{n % 2}", 0)] += rows.nbytes
        assert dict(flushed.key_group_bytes) == wanted
        assert side.uncommitted_bytes == sum(rows.nbytes for rows in sent)


async def test_ro10_a_report_says_what_came_from_whom_and_how_many_rows_are_in_no_file_since_others_beat_them(
    tmp_path: Path,
) -> None:
    table = OwnedTable(tmp_path, buckets=1)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME, OTHER))
        side.set_instant(1, table.begin().instant)
        take(side, table, 1, range(20))
        take(side, table, 1, range(5, 15))
        for first in (30, 10):
            came = replace(routed(many(range(first, first + 10)), table.definition), checksum=first)
            side.add_rows(1, came, OTHER)
        take(side, table, 2, range(3))
        side.add_barrier(1, ME)
        side.add_barrier(1, OTHER)
        flushed = await heard.until_flushed(1)
        sent = Tally()
        for first in (30, 10):
            sent.add(10, first)
        assert {each.process: (each.rows, each.checksum) for each in flushed.received} == {
            ME: (30, 0),
            OTHER: (20, sent.checksum),
        }
        assert (sum(file.rows for file in flushed.files), flushed.beaten) == (30, 20)
