"""While a flush of the bucket side goes on, and when it ends: what counts as waiting, and what a side that is over says."""

from pathlib import Path

import pytest

from headgate_tables.errors import StoreFullError
from headgate_writer.bucket_side import BucketSide
from headgate_writer.buffers import MemoryBudget
from support.arrow_batches import routed
from support.bucket_tables import ME, OwnedTable, bucket_side, membership

SOFT = 100_000


def take(side: BucketSide, table: OwnedTable, rows: int, *, part: str = "p") -> None:
    """A row has 100 bytes and more."""
    taken = [{"id": f"k{n}", "part": part, "ts": n, "note": "x" * 80} for n in range(rows)]
    side.add_rows(1, routed(taken, table.definition), ME)


def begin(side: BucketSide, table: OwnedTable) -> None:
    side.set_membership(membership(1, ME))
    side.set_instant(1, table.begin().instant)


@pytest.mark.parametrize("end", ["closed", "broken"])
async def test_a_flush_that_ends_behind_the_end_of_its_side_reports_nothing(tmp_path: Path, end: str) -> None:
    """The checkpoint was given up, or lacks rows: nobody may count it as flushed."""
    table = OwnedTable(tmp_path, buckets=1)
    table.store.gate.clear()
    async with bucket_side(table.attached(), MemoryBudget(2, 1 << 30)) as (side, heard):
        begin(side, table)
        take(side, table, 5)
        take(side, table, 5, part="another")
        side.add_barrier(1, ME)
        await heard.until("first_flush_begun")
        if end == "closed":
            side.close()
        else:
            side.report_broken("rows of it were lost on their way")
        table.store.gate.set()
    assert not heard.flushed
    assert heard.steps[-1] == "first_flush_begun", "the flush has ended, and no step came of it"
    assert len(heard.broken) == (end == "broken")


async def test_what_is_being_flushed_presses_nobody_to_flush_more(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path, buckets=1)
    table.store.gate.clear()
    budget = MemoryBudget(soft=SOFT, hard=1 << 30)
    async with bucket_side(table.attached(), budget) as (side, heard):
        begin(side, table)
        take(side, table, 2_000)
        assert budget.is_over
        await heard.until("first_flush_begun")
        used, over = budget.used, budget.is_over
        table.store.gate.set()
    assert used > SOFT
    assert not over


async def test_the_bytes_of_a_flush_that_has_ended_are_taken_off_once(tmp_path: Path) -> None:
    """Else a table could hold more than its share by as much as it flushed last."""
    table = OwnedTable(tmp_path, buckets=1)
    budget = MemoryBudget(soft=SOFT, hard=1 << 30)
    async with bucket_side(table.attached(), budget) as (side, heard):
        begin(side, table)
        take(side, table, 2_000)
        await heard.until("file_durable")
        assert budget.used < SOFT
        take(side, table, 2_000)
        assert budget.is_over, "as with the first rows"
        await heard.until("file_durable", 2)


async def test_the_bytes_of_a_flush_that_failed_are_still_there_and_make_others_flush(tmp_path: Path) -> None:
    one, two = OwnedTable(tmp_path / "a", buckets=1), OwnedTable(tmp_path / "b", buckets=1)
    one.store.fails = StoreFullError("no space left", fix="Make room.")
    budget = MemoryBudget(soft=SOFT, hard=1 << 30)
    async with bucket_side(one.attached(), budget) as (failing, heard), bucket_side(two.attached(), budget) as (other, _):
        begin(failing, one)
        begin(other, two)
        take(failing, one, 2_000)
        await heard.until_broken()
        assert budget.is_over
        take(other, two, 5)
        chosen = budget.share_to_flush()
        assert chosen is not None
        assert chosen is not failing._share
