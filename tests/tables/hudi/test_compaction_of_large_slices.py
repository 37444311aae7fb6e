"""Slices of more rows than a batch or a row group has (131,072): nothing begins anew with each, and the footer tells of all."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.bloom import FILTER_KEY, DynamicBloomFilter
from headgate_tables.hudi.services.compaction.base_writer import GROUP_BYTES, GROUP_ROWS
from support.slices import compact, only_operation, place, stored
from support.tables import SCHEMA, create

ROWS = 300_000
LATER_ROWS = 200_000


Numbers: TypeAlias = npt.NDArray[np.int64]


def batch(numbers: Numbers, ts: int, note: str) -> pa.Table:
    """Rows of these numbers; the larger the number, the smaller the key, so that a file's first keys are its largest."""
    ids = pa.array([f"k{ROWS * 2 - number:07}" for number in numbers.tolist()])
    notes = pc.binary_join_element_wise(note, pa.array(numbers).cast(pa.string()), " of ")
    parts = pa.array(["p"]).take(pa.array(np.zeros(len(numbers), dtype=np.int64)))
    return pa.table({"id": ids, "part": parts, "ts": pa.array(np.full(len(numbers), ts)), "note": notes}, SCHEMA)


def every(step: int, first: int, until: int = ROWS) -> Numbers:
    return np.arange(first, until, step, dtype=np.int64)


def expected(*written: tuple[Numbers, int, str], deleted: Numbers) -> pa.Table:
    """By a loop over numbers: the largest ``ts``, of equal ones the later."""
    winners: dict[int, tuple[int, str]] = {}
    for numbers, ts, note in written:
        for number in numbers.tolist():
            if number not in winners or winners[number][0] <= ts:
                winners[number] = (ts, note)
    for number in deleted.tolist():
        winners.pop(number, None)
    tables = [
        batch(np.array([n for n, winner in winners.items() if winner == each]), *each) for each in sorted(set(winners.values()))
    ]
    return pa.concat_tables(tables).sort_by("id")


def footer(metadata: pq.FileMetaData, key: str) -> str:
    return (metadata.metadata or {})[key.encode()].decode()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[hudi.Table, pa.Table]]:
    """A compacted base file of 300,000 rows; logs of 200,000 rows, some new, some late, and of 30,000 deletes. Then all rows
    that a snapshot has to show.
    """
    table = create(tmp_path_factory.mktemp("large"), buckets=1)
    first, newer, late, gone = every(1, 0), every(2, 1, 2 * LATER_ROWS), every(7, 0), every(10, 3)
    table.upsert(batch(first[:10], 10, "base"))
    table.upsert(batch(first[10:], 10, "base"))
    table.compact()
    table.upsert(batch(newer, 11, "newer"))
    table.upsert(batch(late, 9, "late"))
    keys = batch(gone, 12, "")
    table.delete(keys.drop_columns(["note"]))
    yield table, expected((first, 10, "base"), (newer, 11, "newer"), (late, 9, "late"), deleted=gone)
    table.close()


@pytest.fixture(scope="module")
def footer_and_rows(told: tuple[hudi.Table, pa.Table]) -> tuple[pq.FileMetaData, pa.Table]:
    """Of the new base file, made of a base file of several row groups and a log of several batches."""
    table, _ = told
    operation = only_operation(table)
    compact(table, operation, bloom=True)
    return pq.read_metadata(place(table) / operation.path), stored(table, operation)


@pytest.mark.slow
def test_no_row_is_lost_or_comes_twice(
    told: tuple[hudi.Table, pa.Table], footer_and_rows: tuple[pq.FileMetaData, pa.Table]
) -> None:
    found = footer_and_rows[1].select(SCHEMA.names).cast(SCHEMA).sort_by("id")
    assert found.num_rows == told[1].num_rows > ROWS
    assert found.combine_chunks().equals(told[1].combine_chunks())
    assert footer_and_rows[1]["_hoodie_record_key"].equals(footer_and_rows[1]["id"])


@pytest.mark.slow
def test_the_snapshot_before_it_is_the_same(told: tuple[hudi.Table, pa.Table]) -> None:
    found = told[0].scan().to_table().select(SCHEMA.names).cast(SCHEMA).sort_by("id")
    assert found.combine_chunks().equals(told[1].combine_chunks())


@pytest.mark.slow
def test_row_groups_are_no_larger_than_a_reader_expects(footer_and_rows: tuple[pq.FileMetaData, pa.Table]) -> None:
    metadata = footer_and_rows[0]
    sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert len(sizes) > 2
    assert max(sizes) <= GROUP_ROWS == 131_072


def test_key_bounds_are_those_of_all_row_groups(footer_and_rows: tuple[pq.FileMetaData, pa.Table]) -> None:
    """Hudi's indexes leave a file out by these."""
    metadata, rows = footer_and_rows
    keys = rows["id"].to_pylist()
    assert footer(metadata, "hoodie_min_record_key") == min(keys)
    assert footer(metadata, "hoodie_max_record_key") == max(keys)


def test_the_bloom_filter_knows_every_key(footer_and_rows: tuple[pq.FileMetaData, pa.Table]) -> None:
    metadata, rows = footer_and_rows
    settings = TableSettings()
    whole = DynamicBloomFilter(settings.bloom_entries, settings.bloom_fpp)
    whole.add(rows["_hoodie_record_key"].combine_chunks())
    assert base64.b64decode(footer(metadata, FILTER_KEY)) == whole.to_bytes()


@pytest.mark.slow
def test_wide_rows_make_row_groups_of_bounded_bytes(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    wide = pa.array([f"{number:06}" * 2_000 for number in range(6_000)])
    thin = batch(every(1, 0, 6_000), 1, "x")
    table.upsert(thin.slice(0, 1))
    table.upsert(thin.set_column(3, "note", wide))
    operation = only_operation(table)
    compact(table, operation)
    metadata = pq.read_metadata(place(table) / operation.path)
    sizes = [metadata.row_group(number).num_rows * 12_000 for number in range(metadata.num_row_groups)]
    assert sum(sizes) == 6_000 * 12_000
    assert max(sizes) <= GROUP_BYTES == 32 * 1024 * 1024
