"""What a checkpoint may add to a slice: few log files, so many bytes; and memory, when no further file may be written (rule
EX4)."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_writer.bucket_side import BucketSide
from headgate_writer.buffers import MemoryBudget
from support.arrow_batches import routed
from support.bucket_tables import ME, OTHER, OwnedTable, bucket_side, membership


def rows(ids: range, note: str = "n" * 100) -> list[dict[str, Any]]:
    return [{"id": f"k{n}", "part": "p", "ts": n, "note": note} for n in ids]


def take(side: BucketSide, table: OwnedTable, checkpoint: int, taken: Sequence[dict[str, Any]]) -> None:
    side.add_rows(checkpoint, routed(taken, table.definition), ME)


def per_slice(flushed: wire.Flushed) -> Counter[str]:
    return Counter(file.file_id for file in flushed.files)


@pytest.mark.parametrize(("files", "flushes"), [(0, 6), (4, 3), (2, 1), (1, 0)])
async def test_a_slice_gets_no_more_files_than_the_checkpoint_may_write_and_one_is_kept_for_its_end(
    tmp_path: Path, files: int, flushes: int
) -> None:
    table = OwnedTable(tmp_path, buckets=1)
    async with bucket_side(table.attached(), MemoryBudget(soft=20_000, hard=1 << 30)) as (side, heard):
        transaction = table.begin()
        side.set_membership(membership(1, ME, files=files))
        side.set_instant(1, transaction.instant)
        for n in range(6):
            take(side, table, 1, rows(range(n * 200, n * 200 + 200)))
            if n < flushes:
                await heard.until("file_durable", n + 1)
        side.add_barrier(1, ME)
        flushed = await heard.until_flushed(1)
        assert heard.steps.count("file_durable") == flushes + (1 if flushes < 6 else 0)
        assert max(per_slice(flushed).values()) <= (files or 100)
        versions = [file.log_version for file in flushed.files]
        assert versions == list(range(1, len(versions) + 1))
        table.commit(transaction, flushed.files)
        side.mark_durable(1)
        assert len(table.notes()) == 1200


async def test_memory_that_may_not_be_flushed_makes_the_checkpoint_full_and_lets_rows_under_way_come_in(tmp_path: Path) -> None:
    """Their barriers stand behind them: without room for them the checkpoint would never end."""
    table = OwnedTable(tmp_path, buckets=1)
    budget = MemoryBudget(soft=20_000, hard=40_000)
    async with bucket_side(table.attached(), budget) as (side, heard):
        transaction = table.begin()
        side.set_membership(membership(1, ME, OTHER, files=1))
        side.set_instant(1, transaction.instant)
        take(side, table, 1, rows(range(100)))
        assert not heard.full
        assert budget.has_bucket_room
        take(side, table, 1, rows(range(100, 400)))
        assert heard.full == [1]
        assert not budget.has_room, "clients are not read"
        assert budget.has_bucket_room, "other writers' rows may come"
        take(side, table, 1, rows(range(400, 500)))
        assert heard.full == [1]
        side.add_barrier(1, ME)
        side.add_barrier(1, OTHER)
        flushed = await heard.until_flushed(1)
        assert [file.rows for file in flushed.files] == [500]
        assert budget.has_room
        side.mark_durable(1)
        assert budget.used == 0


async def test_rows_that_fill_memory_before_their_instant_let_those_of_the_older_checkpoint_come_in(tmp_path: Path) -> None:
    """Its end, which their instant may wait for, stands behind rows of another writer (rule DE5)."""
    table = OwnedTable(tmp_path, buckets=1)
    budget = MemoryBudget(soft=20_000, hard=40_000)
    async with bucket_side(table.attached(), budget) as (side, heard):
        older = table.begin()
        side.set_membership(membership(1, ME, OTHER))
        side.set_instant(1, older.instant)
        side.set_membership(membership(2, ME))
        side.add_barrier(1, ME)
        take(side, table, 2, rows(range(400)))
        assert not budget.has_room, "clients are not read"
        assert budget.has_bucket_room, "other writers' rows may come"
        side.add_barrier(1, OTHER)
        assert not budget.has_bucket_room, "nothing is missing any more"
        await heard.until_flushed(1)
        younger = table.begin()
        side.set_instant(2, younger.instant)
        await heard.until("file_durable")
        assert budget.has_room


async def test_other_tables_are_flushed_while_one_may_not_be(tmp_path: Path) -> None:
    barred, free = OwnedTable(tmp_path / "a", buckets=1), OwnedTable(tmp_path / "b", buckets=1)
    budget = MemoryBudget(soft=50_000, hard=1 << 30)
    async with bucket_side(barred.attached(), budget) as (one, _), bucket_side(free.attached(), budget) as (two, heard):
        for side, table, files in ((one, barred, 1), (two, free, 0)):
            side.set_membership(membership(1, ME, files=files))
            side.set_instant(1, table.begin().instant)
        take(one, barred, 1, rows(range(250)))
        take(two, free, 1, rows(range(100)))
        await heard.until("file_durable")


async def test_a_slice_that_gets_its_share_of_bytes_asks_for_a_checkpoint_and_then_makes_this_one_full(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path, buckets=1)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME, nbytes=60_000))
        take(side, table, 1, rows(range(150)))
        assert (heard.checkpoints_asked, heard.full) == (0, [])
        take(side, table, 1, rows(range(150, 300)))
        assert (heard.checkpoints_asked, heard.full) == (1, [])
        take(side, table, 1, rows(range(300, 500)))
        assert (heard.checkpoints_asked, heard.full) == (1, [1])


async def test_rows_that_take_more_bytes_in_files_than_in_memory_fill_a_slice_sooner(tmp_path: Path) -> None:
    """What the flushes so far have measured counts."""
    table = OwnedTable(tmp_path, buckets=1)
    async with bucket_side(table.attached()) as (side, heard):
        transaction = table.begin()
        side.set_membership(membership(1, ME))
        side.set_instant(1, transaction.instant)
        take(side, table, 1, rows(range(2), note=""))
        side.add_barrier(1, ME)
        flushed = await heard.until_flushed(1)
        taken = side.uncommitted_bytes
        growth = sum(file.size for file in flushed.files) / taken
        assert growth > 3, "a small file is mostly header"
        side.mark_durable(1)
        side.set_membership(membership(2, ME, nbytes=int(2 * taken * growth)))
        take(side, table, 2, rows(range(3), note=""))
        assert heard.checkpoints_asked == 1
        take(side, table, 2, rows(range(3), note=""))
        assert heard.full == [2]
