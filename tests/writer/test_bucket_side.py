"""Checkpoints at the bucket side: which rows are in which checkpoint's files, when the owner hears of it, and what is never
lost."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables.errors import StoreDeniedError, StoreFullError, StoreUnavailableError, SyncFailedError, TableGoneError
from headgate_tables.hudi.keys.bucket import file_id
from headgate_writer.bucket_side import BucketSide
from headgate_writer.buffers import MemoryBudget
from headgate_writer.progress import ProgressReporter
from support.arrow_batches import routed
from support.bucket_tables import ME, OTHER, OwnedTable, bucket_side, membership, settled
from support.hand_clock import HandClock
from support.planted import keeps_beaten_rows
from support.processes import READY_S


def some(*entries: tuple[str, int, str], part: str = "p") -> list[dict[str, Any]]:
    return [{"id": key, "part": part, "ts": ts, "note": note} for key, ts, note in entries]


def many(ids: range, note: str = "n", part: str = "p") -> list[dict[str, Any]]:
    return some(*((f"k{n}", n, note) for n in ids), part=part)


def take(
    side: BucketSide,
    table: OwnedTable,
    checkpoint: int,
    rows: Sequence[dict[str, Any]],
    deletes: Sequence[bool] | None = None,
    sender: str = ME,
) -> None:
    side.add_rows(checkpoint, routed(rows, table.definition, deletes), sender)


async def test_a_checkpoint_of_rows_becomes_files_that_readers_see_after_the_commit(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME))
        take(side, table, 1, many(range(50), "old"))
        take(side, table, 1, some(("k7", 100, "new"), ("gone", 1, "x"), part="p"))
        take(side, table, 1, some(("gone", 2, "")), [True])
        assert heard.asked == [1]
        transaction = table.begin()
        side.set_instant(1, transaction.instant)
        side.add_barrier(1, ME)
        flushed = await heard.until_flushed(1)
        table.commit(transaction, flushed.files)
        side.mark_durable(1)
        assert table.notes() == {f"k{n}": "old" for n in range(50)} | {"k7": "new"}
        assert side.uncommitted_bytes == 0
        assert sum(file.rows for file in flushed.files) == 50
        assert sum(file.deletes for file in flushed.files) == 1
        assert heard.steps == ["first_barrier_in", "last_barrier_in", "first_flush_begun", "file_durable"]


@pytest.mark.parametrize("last", ["membership", "instant", "barrier", "other barrier"])
async def test_a_checkpoint_is_flushed_whatever_comes_last(tmp_path: Path, last: str) -> None:
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached()) as (side, heard):
        transaction = table.begin()
        events = {
            "membership": lambda: side.set_membership(membership(1, ME, OTHER)),
            "instant": lambda: side.set_instant(1, transaction.instant),
            "barrier": lambda: side.add_barrier(1, ME),
            "other barrier": lambda: side.add_barrier(1, OTHER),
        }
        take(side, table, 1, many(range(5)))
        for name, event in events.items():
            if name != last:
                event()
        await settled()
        assert "first_flush_begun" not in heard.steps
        events[last]()
        flushed = await heard.until_flushed(1)
        assert sum(file.rows for file in flushed.files) == 5


async def test_a_checkpoint_without_rows_is_answered_at_once_and_asks_for_no_instant(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME, OTHER))
        side.add_barrier(1, OTHER)
        assert not heard.flushed
        side.add_barrier(1, ME)
        assert list(heard.flushed) == [1]
        assert not heard.flushed[1].files
        assert not heard.asked


async def test_rows_are_filed_under_the_checkpoint_that_they_carry_not_under_the_one_that_fills(tmp_path: Path) -> None:
    """A faster ingest side is a checkpoint ahead; its rows must not commit with the older checkpoint (rule EX2)."""
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME, OTHER))
        take(side, table, 2, many(range(10, 15)))
        take(side, table, 1, many(range(5)))
        first, second = table.begin(), table.begin()
        side.set_instant(2, second.instant)
        side.set_instant(1, first.instant)
        side.add_barrier(1, ME)
        side.add_barrier(1, OTHER)
        flushed = await heard.until_flushed(1)
        table.commit(first, flushed.files)
        side.mark_durable(1)
        assert table.notes() == {f"k{n}": "n" for n in range(5)}
        side.set_membership(membership(2, ME, OTHER))
        side.add_barrier(2, ME)
        side.add_barrier(2, OTHER)
        table.commit(second, (await heard.until_flushed(2)).files)
        assert len(table.notes()) == 10
        assert heard.asked == [2, 1]


async def test_the_next_checkpoint_fills_while_the_older_one_is_flushed(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path)
    table.store.gate.clear()
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME))
        take(side, table, 1, many(range(5)))
        first, second = table.begin(), table.begin()
        side.set_instant(1, first.instant)
        side.add_barrier(1, ME)
        await heard.until("first_flush_begun")
        side.set_membership(membership(2, ME))
        take(side, table, 2, many(range(5, 9)))
        assert heard.asked == [1, 2]
        side.set_instant(2, second.instant)
        table.store.gate.set()
        table.commit(first, (await heard.until_flushed(1)).files)
        side.mark_durable(1)
        side.add_barrier(2, ME)
        table.commit(second, (await heard.until_flushed(2)).files)
        assert len(table.notes()) == 9


async def test_full_buckets_and_a_full_budget_flush_early_and_later_rows_still_win(tmp_path: Path) -> None:
    """Log versions of one bucket and checkpoint count up, so that of equal ordering values the later row wins."""
    table = OwnedTable(tmp_path)
    budget = MemoryBudget(soft=40_000, hard=1 << 30)
    async with bucket_side(table.attached(), budget) as (side, heard):
        side.set_membership(membership(1, ME))
        transaction = table.begin()
        side.set_instant(1, transaction.instant)
        for attempt in range(6):
            take(side, table, 1, some(*((f"k{n}", 7, f"attempt {attempt}") for n in range(400))))
            await settled()
        await heard.until("file_durable", 2)
        assert not heard.flushed
        side.add_barrier(1, ME)
        flushed = await heard.until_flushed(1)
        versions: dict[str, list[int]] = {}
        for file in flushed.files:
            versions.setdefault(file.file_id, []).append(file.log_version)
        assert all(found == list(range(1, len(found) + 1)) for found in versions.values())
        assert max(map(len, versions.values())) > 1
        table.commit(transaction, flushed.files)
        assert table.notes() == {f"k{n}": "attempt 5" for n in range(400)}


async def test_over_the_soft_limit_the_largest_bucket_is_flushed_and_small_ones_are_not(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path, buckets=1)
    budget = MemoryBudget(soft=200_000, hard=1 << 30)
    async with bucket_side(table.attached(), budget) as (side, heard):
        side.set_membership(membership(1, ME))
        transaction = table.begin()
        side.set_instant(1, transaction.instant)
        for n in range(8):
            take(side, table, 1, many(range(n * 10, n * 10 + 10), part=f"small{n}"))
        take(side, table, 1, many(range(1_000), "x" * 300, part="large"))
        await heard.until("file_durable")
        await settled()
        assert budget.used < 200_000
        side.add_barrier(1, ME)
        flushed = await heard.until_flushed(1)
        by_partition = Counter(file.partition for file in flushed.files)
        assert by_partition == {f"small{n}": 1 for n in range(8)} | {"large": 1}
        table.commit(transaction, flushed.files)
        assert table.table.scan().to_table().num_rows == 1_080


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (StoreFullError("no space left", fix="Make room."), False),
        (StoreDeniedError("no space left for you", fix="Ask for access."), False),
        (TableGoneError("no space left of it", fix="Put it back."), False),
        (StoreUnavailableError("no space left on a bad disk", fix="Look at the disk."), True),
        (OSError("no space left for the spool"), True),
        (pa.ArrowInvalid("no space left in a column"), True),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_a_flush_that_fails_is_told_once_and_no_checkpoint_is_reported_after_it(
    tmp_path: Path, error: Exception, own: bool
) -> None:
    """``own``: whether the owner may find this process at fault (rule RO13)."""
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME))
        take(side, table, 1, many(range(5)))
        table.store.fails = error
        side.set_instant(1, table.begin().instant)
        side.add_barrier(1, ME)
        assert "no space left" in await heard.until_broken()
        table.store.fails = None
        side.set_membership(membership(2, ME))
        side.add_barrier(2, ME)
        take(side, table, 3, many(range(5)))
        await settled()
        assert not heard.flushed
        assert len(heard.broken) == 1
        assert heard.own == [own]


@pytest.mark.parametrize(
    "error",
    [OSError(24, "Too many open files"), pa.ArrowInvalid("a value that no file can hold")],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_flush_meets_breaks_the_checkpoint_and_not_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Not only what the table library has a name for: the writer stays, and its other tables with it."""
    table = OwnedTable(tmp_path)

    def fail(files: object) -> None:
        raise error

    async with bucket_side(table.attached()) as (side, heard):
        monkeypatch.setattr(table.store, "stage", fail)
        side.set_membership(membership(1, ME))
        take(side, table, 1, many(range(5)))
        side.set_instant(1, table.begin().instant)
        side.add_barrier(1, ME)
        assert str(error) in await heard.until_broken()
        await settled()
        assert not heard.flushed


async def test_h14_a_flush_whose_sync_failed_is_no_broken_checkpoint_but_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint that is broken would be tried again by this process, in the folder that the failed sync was of."""
    table = OwnedTable(tmp_path)

    def fail(files: object) -> None:
        raise SyncFailedError("fsync failed", fix="Look at the disk.")

    monkeypatch.setattr(table.store, "stage", fail)

    async def flush() -> None:
        async with bucket_side(table.attached()) as (side, heard):
            side.set_membership(membership(1, ME))
            take(side, table, 1, many(range(5)))
            side.set_instant(1, table.begin().instant)
            side.add_barrier(1, ME)
            await heard.until_broken()

    with pytest.raises(ExceptionGroup) as ended:
        await flush()
    assert ended.value.subgroup(SyncFailedError) is not None


async def test_rows_that_come_behind_the_decision_of_their_checkpoint_break_the_next_instead_of_getting_lost(
    tmp_path: Path,
) -> None:
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME))
        side.add_barrier(1, ME)
        side.mark_durable(1)
        take(side, table, 1, many(range(5)))
        assert "after its end" in heard.broken[0]


async def test_rows_that_come_behind_the_end_of_their_checkpoint_break_it_instead_of_getting_lost(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME))
        side.add_barrier(1, ME)
        take(side, table, 1, many(range(5)))
        assert "after its end" in heard.broken[0]


async def test_closing_gives_every_byte_back_also_while_a_flush_is_under_way(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path)
    table.store.gate.clear()
    budget = MemoryBudget(1 << 30, 1 << 30)
    async with bucket_side(table.attached(), budget) as (side, heard):
        side.set_membership(membership(1, ME))
        take(side, table, 1, many(range(500)))
        side.set_instant(1, table.begin().instant)
        side.add_barrier(1, ME)
        await heard.until("first_flush_begun")
        take(side, table, 2, many(range(500)))
        side.close()
        assert budget.used == 0
        table.store.gate.set()
        take(side, table, 2, many(range(500)))
        side.set_instant(2, "20270115080000001")
        await settled()
        assert budget.used == 0
        assert not heard.flushed
        assert not heard.broken


async def test_a_writer_that_has_no_part_in_a_checkpoint_says_nothing_about_it(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(2, OTHER))
        side.set_instant(2, table.begin().instant)
        side.add_barrier(2, OTHER)
        await settled()
        assert not heard.flushed


async def test_a_decision_is_one_of_all_checkpoints_up_to_it(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached()) as (side, _):
        for checkpoint in (1, 2, 3):
            take(side, table, checkpoint, many(range(5)))
        each = side.uncommitted_bytes // 3
        side.mark_durable(2)
        assert side.uncommitted_bytes == each


async def test_orders_of_checkpoints_that_are_decided_change_nothing(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME))
        side.add_barrier(1, ME)
        side.mark_durable(1)
        side.mark_durable(1)
        side.set_membership(membership(1, ME))
        side.set_instant(1, "20270115080000000")
        await settled()
        assert list(heard.flushed) == [1]
        assert not heard.broken


async def test_a_writer_that_keeps_beaten_rows_for_a_test_writes_all_in_the_order_of_arrival(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests of the cluster count on it."""
    keeps_beaten_rows(monkeypatch.setattr)
    table = OwnedTable(tmp_path, buckets=1)
    async with bucket_side(table.attached()) as (side, heard):
        side.set_membership(membership(1, ME))
        take(side, table, 1, some(("a", 1, "first"), ("b", 1, "b")))
        take(side, table, 1, some(("a", 1, "")), [True])
        take(side, table, 1, some(("a", 1, "last")))
        transaction = table.begin()
        side.set_instant(1, transaction.instant)
        side.add_barrier(1, ME)
        (file,) = (await heard.until_flushed(1)).files
        assert table.logged(transaction.instant, file) == [[("a", "first"), ("b", "b")], ["a"], [("a", "last")]]
        assert file.file_id == file_id(table.definition.table_uuid, "p", 0, 0)


async def test_two_tables_share_a_budget_and_the_larger_bucket_gives_way(tmp_path: Path) -> None:
    one, two = OwnedTable(tmp_path / "a", buckets=1), OwnedTable(tmp_path / "b", buckets=1)
    budget = MemoryBudget(soft=100_000, hard=1 << 30)
    async with bucket_side(one.attached(), budget) as (small, quiet), bucket_side(two.attached(), budget) as (large, busy):
        for side, table in ((small, one), (large, two)):
            side.set_membership(membership(1, ME))
            side.set_instant(1, table.begin().instant)
        take(small, one, 1, many(range(200)))
        take(large, two, 1, many(range(2_000), "x" * 50))
        await busy.until("file_durable")
        await settled()
        assert "first_flush_begun" not in quiet.steps


async def test_a_table_that_is_broken_does_not_keep_others_from_making_room(tmp_path: Path) -> None:
    one, two = OwnedTable(tmp_path / "a", buckets=1), OwnedTable(tmp_path / "b", buckets=1)
    budget = MemoryBudget(soft=300_000, hard=1 << 30)
    async with bucket_side(one.attached(), budget) as (large, bad), bucket_side(two.attached(), budget) as (small, good):
        for side, table in ((large, one), (small, two)):
            side.set_membership(membership(1, ME))
            side.set_instant(1, table.begin().instant)
        take(large, one, 1, many(range(2_000), "x" * 50))
        large.report_broken("told so")
        assert bad.broken == ["told so"]
        take(small, two, 1, many(range(1_900), "x" * 50))
        await good.until("file_durable")


async def test_a_portion_that_is_written_and_rows_that_come_behind_a_barrier_are_progress_of_their_checkpoint(
    tmp_path: Path,
) -> None:
    """A checkpoint that takes longer than the owner waits goes on, and is not given up."""
    table = OwnedTable(tmp_path)
    async with bucket_side(table.attached(), MemoryBudget(2, 1 << 30)) as (side, heard):
        side.set_membership(membership(1, ME, OTHER))
        side.set_membership(membership(2, ME, OTHER))
        take(side, table, 2, many(range(5)))
        assert heard.progress == []
        side.add_barrier(2, ME)
        take(side, table, 2, many(range(5, 10)))
        assert heard.progress == [2]
        take(side, table, 1, many(range(5)))
        side.set_instant(1, table.begin().instant)
        side.add_barrier(1, ME)
        side.add_barrier(1, OTHER)
        await heard.until_flushed(1)
        assert heard.progress[-1] == 1


def test_progress_is_told_at_most_twice_a_second_for_each_checkpoint() -> None:
    clock, told = HandClock(), list[int]()
    progress = ProgressReporter(clock, lambda message: told.append(message.checkpoint))
    for now in (100.0, 100.1, 100.4, 100.5, 100.9, 101.0):
        clock.now = now
        progress.report_progress(1)
    assert told == [1, 1, 1]
    progress.report_progress(2)
    assert told == [1, 1, 1, 2]


async def test_ex7_frames_wait_for_the_members_of_the_next_checkpoint_or_the_end_of_the_side(tmp_path: Path) -> None:
    async with bucket_side(OwnedTable(tmp_path).attached()) as (side, _):
        side.set_membership(membership(1, ME, OTHER))
        await side.members.check_sender(OTHER, 1)
        next_one = asyncio.ensure_future(side.members.check_sender(OTHER, 2))
        await settled()
        assert not next_one.done()
        side.set_membership(membership(2, ME, OTHER))
        await asyncio.wait_for(next_one, READY_S)
        last = asyncio.ensure_future(side.members.check_sender(OTHER, 3))
        await settled()
    await asyncio.wait_for(last, READY_S)
