"""A portion of a checkpoint is taken apart: one row of each record, by bucket; the rest goes back as it came."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.face.writing import Changes
from headgate_tables.hudi import sift
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import file_id
from headgate_tables.writing import BucketedRows
from headgate_writer import batch_list
from headgate_writer.buffers import CheckpointBuffer, Portion
from headgate_writer.flushing import flush, take_apart
from headgate_writer.orders import read_membership
from headgate_writer.routing import RoutedRows
from support.arrow_batches import routed
from support.bucket_tables import ME, OwnedTable
from support.planted import keeps_beaten_rows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
TABLE = Definition("t", SCHEMA, ("id",), ("part",), "ts", 3, False, True, uuid.UUID(int=1))

Entry = tuple[int, int, int, bool]
"""Number of the key, partition, ordering value, whether it is a delete."""


def batch(entries: Sequence[Entry], first: int, definition: Definition) -> RoutedRows:
    rows = [
        {"id": f"k{key}", "part": f"p{part}", "ts": ts, "note": str(first + n)} for n, (key, part, ts, _) in enumerate(entries)
    ]
    return routed(rows, definition, [delete for *_, delete in entries])


def written(changes: Sequence[Changes]) -> list[tuple[str, str, int | None, bool]]:
    """(partition, id, ordering value, whether it is a delete) of all, bucket by bucket."""
    found: list[Any] = []
    for change in changes:
        flags, rows = change.deletes.to_pylist(), change.rows.to_pylist()
        assert change.keys.to_pylist() == [row["id"] for row in rows]
        assert {row["part"] for row in rows} == {change.partition}
        found += [(row["part"], row["id"], row["ts"], flag) for row, flag in zip(rows, flags, strict=True)]
    return found


def winners(entries: Sequence[Entry], *, ordered: bool) -> set[tuple[str, str, int | None, bool]]:
    """Larger ordering value first, then the later one; without ordering the later one. One row at a time, from the rules.

    A delete keeps nothing but key, partition and, where there is one, its ordering value.
    """
    standing: dict[tuple[int, int], Entry] = {}
    for entry in entries:
        identity = entry[:2]
        if identity not in standing or not ordered or entry[2] >= standing[identity][2]:
            standing[identity] = entry
    return {(f"p{part}", f"k{key}", ts if ordered or not delete else None, delete) for key, part, ts, delete in standing.values()}


def taken_apart(portion: Portion) -> tuple[list[Changes], list[BucketedRows]]:
    """Beaten rows included, so that all can be counted."""
    with pytest.MonkeyPatch.context() as patch:
        keeps_beaten_rows(patch.setattr)
        sifted = take_apart(portion, TABLE)
    assert sifted.beaten == 0
    return sifted.changes, sifted.rest


_entries = st.lists(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2), st.integers(1, 4), st.booleans()), min_size=1, max_size=8),
    min_size=1,
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(_entries, st.booleans(), st.sampled_from([1, 100]), st.sampled_from([1, 1 << 15]), st.sampled_from([2_000, 1 << 20]))
def test_of_each_record_the_row_that_readers_would_see_is_written_and_no_other(
    batches: list[list[Entry]], ordered: bool, few_rows: int, long_slice: int, bundle: int
) -> None:
    """``few_rows``, ``long_slice`` and ``bundle`` choose between its ways to sort; none may matter."""
    definition = TABLE if ordered else replace(TABLE, ordering=None)
    buffer, first = CheckpointBuffer(), 0
    for entries in batches:
        buffer.add(batch(entries, first, definition))
        first += len(entries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sift, "_FEW_ROWS", few_rows)
        patch.setattr(sift, "_LONG_SLICE", long_slice)
        patch.setattr(batch_list, "_BUNDLE", bundle)
        changes, rest, beaten = take_apart(buffer.take_portion(np.arange(len(buffer.groups))), definition)
    assert not rest
    found = written(changes)
    assert len(found) + beaten == first
    assert len(found) == len(set(found))
    assert set(found) == winners([entry for entries in batches for entry in entries], ordered=ordered)
    for change in changes:
        flags = change.deletes.to_pylist()
        assert flags == sorted(flags), "upserts first: two blocks a file, not many"
    assert [(change.partition, change.bucket) for change in changes] == list(buffer.groups)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(_entries, st.data())
def test_rows_of_other_buckets_go_back_in_their_order_and_can_still_be_written(
    batches: list[list[Entry]], data: st.DataObject
) -> None:
    buffer, first = CheckpointBuffer(), 0
    for entries in batches:
        buffer.add(batch(entries, first, TABLE))
        first += len(entries)
    everything = np.arange(len(buffer.groups))
    codes = np.array(sorted(data.draw(st.sets(st.sampled_from(everything.tolist()), min_size=1))))
    portion = buffer.take_portion(codes)
    early, rest = taken_apart(portion)
    assert not portion.batches, "what is taken apart is freed at once"
    buffer.finish_portion(portion, rest)
    others = np.setdiff1d(everything, codes)
    assert buffer.sizes[codes].tolist() == [0] * len(codes)
    late = taken_apart(buffer.take_portion(others))[0] if len(others) else []
    for change in [*early, *late]:
        notes = [int(note) for note in change.rows["note"].to_pylist() if note is not None]
        assert notes == sorted(notes)
    assert len(written([*early, *late])) == first


@pytest.mark.parametrize(("note", "copied"), [("x", True), ("x" * 100_000, False)])
def test_long_values_of_several_batches_are_not_put_together_once_more(note: str, copied: bool) -> None:
    buffer = CheckpointBuffer()
    for turn in range(3):
        rows = [{"id": f"k{turn} {key}", "part": "p", "ts": key, "note": note} for key in range(60)]
        buffer.add(routed(rows, TABLE, [False] * 60))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_list, "_SMALL", 1)
        patch.setattr(batch_list, "_BUNDLE", 1)
        changes = take_apart(buffer.take_portion(np.arange(len(buffer.groups))), TABLE).changes
    assert {change.rows["note"].num_chunks for change in changes} == ({1} if copied else {3})


def test_each_bucket_gets_one_durable_file_with_the_name_that_everybody_would_give_it(tmp_path: Path) -> None:
    table = OwnedTable(tmp_path, buckets=3)
    buffer = CheckpointBuffer()
    rows = [{"id": f"k{n}", "part": f"p{n % 2}", "ts": n, "note": "n"} for n in range(60)]
    buffer.add(routed(rows, table.definition, [n % 10 == 0 for n in range(60)]))
    transaction = table.begin()
    writer = ChangeWriter(table.store, table.definition, epoch=table.epoch, process=ME, ordinal=0)
    codes = np.array([4, 1, 0])
    portion = buffer.take_portion(codes)
    flushed = flush(writer, table.definition, transaction.instant, portion, [3, 1, 2], block_format="parquet", ordinal=1)
    assert sum(len(batch.codes) for batch in flushed.rest) + sum(file.rows + file.deletes for file in flushed.statuses) == 60
    for file, code, version in zip(flushed.statuses, codes.tolist(), [3, 1, 2], strict=True):
        partition, bucket = buffer.groups[code]
        assert file.partition == partition
        assert file.file_id == file_id(table.definition.table_uuid, partition, bucket, 0)
        assert file.log_version == version
        assert file.name.endswith(f".log.{version}_0-0-0")
        assert table.store.size(file.stage) == file.size
        assert file.stage.startswith(f".hoodie/.headgate/stage/{table.epoch}/{ME}/") or ME in file.stage


def test_taking_apart_many_tiny_buckets_does_not_cost_a_slice_for_each_of_them_and_each_batch() -> None:
    """A thousand buckets in a hundred batches: slices alone would be a hundred thousand tables."""
    buffer = CheckpointBuffer()
    generator = np.random.default_rng(1)
    for n in range(100):
        parts = generator.integers(0, 400, 500)
        rows = [{"id": f"k{n}-{m}", "part": f"p{part}", "ts": m, "note": "x" * 150} for m, part in enumerate(parts.tolist())]
        buffer.add(routed(rows, TABLE))
    changes = take_apart(buffer.take_portion(np.arange(len(buffer.groups))), TABLE).changes
    assert sum(change.rows.num_rows for change in changes) == 50_000
    assert all(column.num_chunks == 1 for change in changes for column in change.rows.columns)


def test_a_filed_batch_counts_all_of_its_arrays() -> None:
    rows = batch([(1, 1, 1, False)], 0, TABLE)
    filed = BucketedRows(rows.rows, rows.keys, rows.deletes, rows.group)
    assert filed.nbytes == rows.nbytes


def test_deletes_of_other_buckets_stay_out_of_a_flush_before_the_checkpoints_end() -> None:
    entries: list[Entry] = [(key, key % 3, 1, key % 2 == 1) for key in range(12)]
    buffer = CheckpointBuffer()
    buffer.add(batch(entries, 0, TABLE))
    portion = buffer.take_portion(np.array([0]))
    early = take_apart(portion, TABLE)
    buffer.finish_portion(portion, early.rest)
    late = take_apart(buffer.take_portion(np.arange(1, len(buffer.groups))), TABLE)
    found = written([*early.changes, *late.changes])
    assert len(found) == len(entries)
    assert set(found) == winners(entries, ordered=True)


@pytest.mark.parametrize(
    ("told", "followed"), [("avro", "avro"), ("auto", "auto"), ("", "parquet"), ("of later versions", "parquet")]
)
def test_a_checkpoint_is_flushed_in_the_format_that_its_membership_names(told: str, followed: str) -> None:
    """An owner of another version may say nothing, or name what this writer does not know: everybody reads Parquet."""
    assert read_membership(wire.Membership(checkpoint=1, block_format=told), 128).block_format == followed


def test_a_block_format_that_this_writer_does_not_know_is_logged_once() -> None:
    with structlog.testing.capture_logs() as logs:
        for checkpoint, told in enumerate(("", "auto", "of the next version", "of the next version")):
            read_membership(wire.Membership(checkpoint=checkpoint, block_format=told), 128)
    assert [(line["log_level"], line["block_format"]) for line in logs] == [("warning", "of the next version")]
