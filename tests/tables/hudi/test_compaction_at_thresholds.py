"""Random slices whose files lie on both sides of compaction's thresholds, against DuckDB and hudi-rs.

``HEADGATE_HYPOTHESIS=long`` tries 40 times as many.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.hudi.services.compaction import base_writer, parquet_batches
from support.readers import META, read_by_hudi_rs, read_by_us
from support.stories import KEY, ORDERING, SCHEMA, Call, Expected, story
from support.strategies import LONG
from support.thresholds import thresholds
from support.tiers import slow_but

TRIES = 40 if LONG else 1
REAL_SIZES = [1, 100, *(size + more for size in (64, 512, 4_000, 4_096, 16_384) for more in (-1, 0, 1)), 5_000, 40_000]
ROW_GROUP_SIZES = [131_071, 131_072, 131_073, 262_145, 300_000]
SMALL: dict[str, Sequence[int]] = {
    "SHARE_ENTRIES": [2, 5, 1_000],
    "SHARE_KEY_BYTES": [40, 1_000],
    "_KEPT_KEY_BYTES": [100, 10_000],
    "BATCH_ROWS": [1, 2, 5, 1_000],
    "_WORTH_A_LOOK": [1, 4, 8],
    "_WORTH_A_LOOK_FOR_ALL": [1, 4, 8],
    "_FIRST_ROWS": [1, 3],
    "_ROWS_PER_VALUE": [1, 2],
    "GROUP_ROWS": [1, 3, 10, 1_000],
    "_SMALL_BYTES": [0, 1 << 20],
}
"""The same thresholds, so small that files of one to twelve rows lie on both sides of them."""


@pytest.mark.parametrize("seed", slow_but(range(4), range(14 * TRIES)))
def test_slices_of_small_and_large_files_are_compacted_without_changing_a_row(tmp_path: Path, seed: int) -> None:
    tell(tmp_path / "table", seed, REAL_SIZES)


@pytest.mark.parametrize("seed", range(4 * TRIES))
@pytest.mark.slow
def test_slices_of_more_rows_than_a_row_group_are_compacted_without_changing_a_row(tmp_path: Path, seed: int) -> None:
    tell(tmp_path / "table", seed, [*REAL_SIZES[::4], *ROW_GROUP_SIZES])


@pytest.mark.parametrize("seed", slow_but(range(10), range(40 * TRIES)))
def test_small_slices_are_compacted_alike_wherever_the_thresholds_are(tmp_path: Path, seed: int) -> None:
    choice = np.random.default_rng(seed)
    with thresholds({name: int(choice.choice(values)) for name, values in SMALL.items()}):
        tell(tmp_path / "table", seed, range(1, 13))


def tell(path: Path, seed: int, sizes: Sequence[int]) -> None:
    """Every reader is asked before and after each compaction. The seed chooses the merge mode, too."""
    ordering = ORDERING if seed % 3 else None
    checkpoints = story(seed, sizes)
    print(ordering, *checkpoints, sep="\n")  # pytest shows it when the test fails
    with (
        hudi.create_table(str(path), SCHEMA, record_key=KEY, ordering=ordering, buckets=1) as table,
        contextlib.closing(Expected(ordering)) as expected,
    ):
        for calls in checkpoints:
            for call in calls:
                perform(table, call, ordering, expected)
            assert_shown(path, expected)
            [done] = compacted_slices(table)
            expected.compacted()
            assert_shown(path, expected)
            assert_base_file(path / done, expected)


def perform(table: hudi.Table, call: Call, ordering: str | None, expected: Expected) -> None:
    batch = call.batch(ordering)
    table.upsert(batch) if call.kind == "upsert" else table.delete(batch)
    expected.take(call, batch)


def compacted_slices(table: hudi.Table) -> list[str]:
    """Paths of the new base files."""
    result = table.compact()
    assert not result.dropped
    return [done.operation.path for done in result.finished]


def assert_shown(path: Path, expected: Expected) -> None:
    wanted = expected.rows()
    assert_equal(read_by_us(path), wanted, "our reader")
    assert_equal(read_by_hudi_rs(path), wanted, "hudi-rs")


def assert_equal(found: pa.Table, wanted: pa.Table, who: str) -> None:
    """Row for row, in the order of keys."""
    rows = found.select(SCHEMA.names).cast(SCHEMA).sort_by(KEY).combine_chunks()
    assert rows.num_rows == wanted.num_rows, who
    assert rows.equals(wanted.cast(SCHEMA).combine_chunks()), who


def assert_base_file(path: Path, expected: Expected) -> None:
    """It alone holds all rows; its row groups, key bounds and meta columns are right."""
    file = pq.ParquetFile(path)
    rows = file.read()
    wanted = expected.rows()
    assert_equal(rows, wanted, "the base file")
    assert rows[META[2]].equals(rows[KEY])
    assert pc.unique(rows[META[4]]).to_pylist() in ([], [path.name])
    groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    assert max(groups, default=0) <= max(base_writer.GROUP_ROWS, parquet_batches.BATCH_ROWS)
    if groups:
        footer = file.metadata.metadata
        assert footer[b"hoodie_min_record_key"].decode() == wanted[KEY][0].as_py()
        assert footer[b"hoodie_max_record_key"].decode() == wanted[KEY][-1].as_py()
