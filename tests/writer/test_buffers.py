"""Bytes by bucket, what is flushed next, and a budget that everybody's bytes go through."""

import asyncio
import json
import subprocess
import sys
import uuid
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_tables.hudi.definition import Definition
from headgate_writer import batch_list
from headgate_writer.buffers import CheckpointBuffer, FlushCandidate, MemoryBudget, next_flush
from headgate_writer.flushing import take_apart
from headgate_writer.routing import RoutedRows
from headgate_writer.sizes import buffered_bytes
from support.arrow_batches import routed
from support.planted import keeps_beaten_rows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
TABLE = Definition("t", SCHEMA, ("id",), ("part",), "ts", 3, False, True, uuid.UUID(int=1))


def rows(*entries: tuple[int, int, int], deletes: list[bool] | None = None) -> RoutedRows:
    """(number of the key, partition, length of the note); ``ts`` is the position."""
    return routed(
        [{"id": f"k{key}", "part": f"p{part}", "ts": n, "note": "x" * size} for n, (key, part, size) in enumerate(entries)],
        TABLE,
        deletes,
    )


_batches = st.lists(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=10),
    min_size=1,
    max_size=50,
)


@pytest.mark.slow
@settings(deadline=None)
@given(_batches, st.sampled_from([1, 2_000, 64 << 10]), st.sampled_from([2, 5, 32]), st.data())
def test_bytes_by_bucket_are_exact_in_sum_whatever_is_added_and_taken_out(
    batches: list[list[tuple[int, int, int]]], small: int, fan_in: int, data: st.DataObject
) -> None:
    """``small`` and ``fan_in`` say which batches are put together; none may matter."""
    buffer = CheckpointBuffer()
    there = added = 0
    order: dict[tuple[str, int], list[str]] = {}
    gone: dict[tuple[str, int], list[str]] = {}

    def add(number: int, batch: list[tuple[int, int, int]]) -> None:
        nonlocal there, added
        came = rows(*batch)
        notes = [f"{number}.{n}" for n in range(len(batch))]
        came = RoutedRows.of(came.rows.set_column(3, "note", pa.array(notes)), came.keys, came.deletes, came.group, came.groups)
        for at, note in zip(came.group, notes, strict=True):
            order.setdefault(came.groups[at], []).append(note)
        buffer.add(came)
        there, added = there + came.nbytes, added + came.nbytes

    def take(codes: np.ndarray[Any, Any]) -> None:
        nonlocal there
        there -= int(buffer.sizes[codes].sum())
        portion = buffer.take_portion(codes)
        add(1_000 + there, [(1, 1, 1)])  # comes while the flush is under way
        sifted = take_apart(portion, TABLE)
        for change in sifted.changes:
            gone.setdefault((change.partition, change.bucket), []).extend(change.rows["note"].to_pylist())
        buffer.finish_portion(portion, sifted.rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_list, "_SMALL", small)
        patch.setattr(batch_list, "_FAN_IN", fan_in)
        keeps_beaten_rows(patch.setattr)
        for number, batch in enumerate(batches):
            add(number, batch)
            if data.draw(st.booleans()):
                waiting = np.flatnonzero(buffer.sizes).tolist()
                take(np.array(sorted(data.draw(st.sets(st.sampled_from(waiting), min_size=1)))))
            assert int(buffer.sizes.sum()) == there
            assert int(buffer.totals.sum()) == added
            assert (buffer.sizes >= 0).all()
        for _ in range(2):  # the second time for what came during the first
            take(np.flatnonzero(buffer.sizes))
    for group, notes in order.items():
        assert notes[: len(gone[group])] == gone[group], "in the order of the bucket"
    assert sum(map(len, order.values())) - sum(map(len, gone.values())) == 1, "every row once, but for the last that came"


def test_a_bucket_with_larger_rows_has_more_bytes() -> None:
    buffer = CheckpointBuffer()
    buffer.add(rows(*((n, 0, 10) for n in range(90)), *((n, 1, 1_000) for n in range(10))))
    by_partition: Counter[str] = Counter()
    for (partition, _), size in zip(buffer.groups, buffer.sizes.tolist(), strict=True):
        by_partition[partition] += size
    assert by_partition["p1"] > 2 * by_partition["p0"]


def waiting(checkpoint: int, *sizes: int, closing: bool = False) -> FlushCandidate:
    return FlushCandidate(checkpoint, np.array(sizes, np.int64), closing, np.array(sizes, np.int64))


def chosen(
    *checkpoints: FlushCandidate, portion: int = 100, full: int = 1_000, pressed: bool = False
) -> tuple[int, list[int]] | None:
    flush = next_flush(checkpoints, portion=portion, full=full, pressed=pressed)
    return None if flush is None else (flush.checkpoint, flush.codes.tolist())


def test_a_checkpoint_that_waits_for_its_end_goes_first_in_portions() -> None:
    older, younger = waiting(1, 60, 0, 30, 40, closing=True), waiting(2, 5_000)
    assert chosen(older, younger, pressed=True) == (1, [0, 2])
    assert chosen(waiting(1, 0, 0, 0, 40, closing=True), younger) == (1, [3])
    assert chosen(waiting(1, 0, closing=True), younger) == (2, [0])


def test_full_buckets_are_flushed_before_their_checkpoint_ends() -> None:
    assert chosen(waiting(1, 999, 10), waiting(2, 5, 1_000, 10, 1_001), portion=3_000) == (2, [1, 3])
    assert chosen(waiting(1, 999, 10)) is None


def test_under_pressure_the_largest_buckets_are_flushed_and_empty_ones_never() -> None:
    assert chosen(waiting(1, 5, 70, 0, 20, 1), waiting(2, 60), pressed=True) == (1, [1, 3, 0, 4])
    assert chosen(waiting(1, 5, 70, 40, 20), waiting(2, 71), pressed=True) == (2, [0])
    assert chosen(waiting(1, 0, 0), pressed=True) is None
    assert chosen(pressed=True) is None


def test_a_bucket_has_the_bytes_of_its_own_rows() -> None:
    came = rows((1, 0, 10_000), (2, 1, 5), (3, 0, 7), (4, 2, 0))
    buffer = CheckpointBuffer()
    buffer.add(came)
    own: dict[tuple[str, int], int] = {}
    for at, size in zip(came.group.tolist(), came.sizes.tolist(), strict=True):
        own[came.groups[at]] = own.get(came.groups[at], 0) + size
    assert dict(zip(buffer.groups, buffer.sizes.tolist(), strict=True)) == own


def test_a_row_without_a_value_has_bytes() -> None:
    """A bucket that counts as empty is passed over for ever, and its rows with it."""
    nothing = pa.table({"a": pa.nulls(1)})
    assert buffered_bytes(nothing, pa.array([""])).tolist() == [4 + 4 + 1]


def test_a_bucket_that_is_larger_than_a_portion_goes_alone() -> None:
    assert chosen(waiting(1, 5, 700, 40), pressed=True) == (1, [1])


async def test_clients_are_not_read_at_the_hard_limit_and_again_below_it() -> None:
    budget = MemoryBudget(soft=500, hard=1_000)
    share = budget.add_share(lambda: None)
    budget.reserve(200)
    share.set_bytes(799, 0)
    await budget.wait_for_room()
    share.set_bytes(800, 0)
    assert not budget.has_room
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(budget.wait_for_room())
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.free(1)
    assert budget.used == 999


async def test_other_writers_wait_for_buckets_only_and_these_flush_before() -> None:
    budget = MemoryBudget(soft=500, hard=1_000)
    share = budget.add_share(lambda: None)
    share.set_bytes(749, 1)
    assert budget.has_bucket_room
    share.set_bytes(750, 1)
    assert not budget.has_bucket_room
    assert share.must_flush, "or nothing would ever make room"
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(budget.wait_for_bucket_room())
        await asyncio.sleep(0)
        assert not waiting.done()
        share.set_bytes(700, 1)


async def test_the_table_with_the_largest_bucket_is_woken_once_the_soft_limit_is_passed() -> None:
    budget = MemoryBudget(soft=100, hard=1_000)
    woken: list[str] = []
    one, two = budget.add_share(lambda: woken.append("one")), budget.add_share(lambda: woken.append("two"))
    one.set_bytes(60, 60)
    two.set_bytes(39, 30)
    assert not woken
    two.set_bytes(40, 30)
    assert woken == ["one"]
    assert one.must_flush
    assert not two.must_flush
    one.being_flushed = 60
    assert not one.must_flush, "what is being flushed is not in anybody's way for long"
    budget.remove_share(one)
    budget.remove_share(one)
    assert budget.used == 40


async def test_what_waits_at_the_ingest_side_makes_no_bucket_flush() -> None:
    """Else a long queue would turn every few rows that reach a bucket into a file of their own."""
    budget = MemoryBudget(soft=100, hard=1_000)
    share = budget.add_share(lambda: None)
    budget.reserve(900)
    share.set_bytes(50, 50)
    assert not share.must_flush
    assert budget.used == 950


async def test_buckets_that_can_not_be_flushed_yet_press_nobody() -> None:
    budget = MemoryBudget(soft=100, hard=1_000)
    share = budget.add_share(lambda: pytest.fail("woken for nothing"))
    share.set_bytes(500, 0)
    assert budget.share_to_flush() is None


_SINGLE_ROWS = """
import json
import numpy as np
import pyarrow as pa
from support.tables import SCHEMA
from headgate_writer.buffers import CheckpointBuffer
from headgate_writer.routing import RoutedRows
from headgate_tables.hudi.definition import Definition
from support.arrow_batches import routed
from support.planted import keeps_beaten_rows
import uuid
table = Definition("t", SCHEMA, ("id",), ("part",), "ts", 3, False, True, uuid.UUID(int=1))
def rss():
    (line,) = (line for line in open("/proc/self/status") if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
many = routed([{"id": str(n), "part": "p", "ts": n, "note": "n"} for n in range(10_000)], table)
def add(buffer, n):
    at = np.array([n])
    one = many.rows.take(at), many.keys.take(at), many.deletes.take(at), many.group[at]
    buffer.add(RoutedRows.of(*one, many.groups))
for n in range(200):
    add(CheckpointBuffer(), n)
buffer, before = CheckpointBuffer(), rss()
for n in range(10_000):
    add(buffer, n)
print(json.dumps([buffer.nbytes, rss() - before, int(buffer.sizes.sum())]))
"""


@pytest.mark.slow
def test_what_single_rows_really_take_is_what_is_counted() -> None:
    """Ten thousand batches of one row: uncounted, their objects alone would be ten times the rows."""
    done = subprocess.run([sys.executable, "-c", _SINGLE_ROWS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counted, really, plain = json.loads(done.stdout)
    assert really < counted + (8 << 20)
    assert counted < 3 * plain, "small batches are put together"
