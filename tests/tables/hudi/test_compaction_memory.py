"""Memory of a compaction does not grow with the slice. Each measure is a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headgate_tables import hudi
from support.measured import Peak, measure

pytestmark = pytest.mark.slow

MIB = 1 << 20
WIDTH = 100
SCHEMA = pa.schema([("id", pa.string()), ("version", pa.int64()), ("text", pa.string())])

COMPACT = """
from headgate_tables.hudi.services.compaction import base_writer, parquet_batches, pinned_slice, survivors
# A hundredth of what they are.
parquet_batches.BATCH_BYTES = base_writer.GROUP_BYTES = 320 * 1024
parquet_batches._WORTH_A_LOOK = parquet_batches._WORTH_A_LOOK_FOR_ALL = parquet_batches._FIRST_ROWS = 256
survivors.SHARE_ENTRIES, survivors.SHARE_KEY_BYTES = 20_000, 640 * 1024
survivors._KEPT_KEY_BYTES = 640 * 1024
pinned_slice._KEPT_BYTES = pinned_slice._SMALL_BYTES = 320 * 1024
table = hudi.open_table(sys.argv[1])
before = rss()
[done] = table.compact().finished
print(json.dumps([done.rows, pool.max_memory(), rss() - before]))
"""


def made_of(numbers: np.ndarray, version: int, width: int) -> pa.Table:
    """Rows with text that does not compress."""
    letters = np.random.default_rng((version, len(numbers))).integers(33, 127, (len(numbers), width), dtype=np.uint8)
    offsets = np.arange(0, letters.size + 1, width, dtype=np.int32)
    text = pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets.data), pa.py_buffer(letters.data))
    return pa.table([pa.array(numbers).cast(pa.string()), pa.repeat(pa.scalar(version), len(numbers)), text], schema=SCHEMA)


def slice_of(folder: Path, base_rows: int, logs: Sequence[int], width: int = WIDTH) -> str:
    """A table of one slice: a base file and logs that each renew every third row and add as many."""
    table = hudi.create_table(str(folder), SCHEMA, record_key="id", ordering="version", buckets=1)
    table.upsert(made_of(np.arange(base_rows), 1, width))
    for version, rows in enumerate(logs, 2):
        old, new = np.arange(0, rows, 2) * 3 % base_rows, base_rows * version + np.arange(rows // 2)
        table.upsert(made_of(np.unique(np.concatenate([old, new])), version, width))
    return table.url


def compared(tmp_path: Path, small: str, large: str) -> tuple[Peak, Peak]:
    del tmp_path
    return measure(COMPACT, small), measure(COMPACT, large)


@pytest.mark.parametrize(
    ("small", "large"),
    [
        ((30_000, [3_000] * 3), (240_000, [3_000] * 3)),
        ((60_000, [4_000] * 4), (60_000, [4_000] * 32)),
        ((60_000, [20_000]), (60_000, [160_000])),
    ],
    ids=["base of eight times the rows", "eight times the logs", "one log of eight times the rows"],
)
def test_a_larger_slice_takes_little_more_memory(
    tmp_path: Path, small: tuple[int, list[int]], large: tuple[int, list[int]]
) -> None:
    """A byte for each row and entry, and nothing else that grows."""
    few, many = compared(tmp_path, slice_of(tmp_path / "small", *small), slice_of(tmp_path / "large", *large))
    assert many.rows > 1.5 * few.rows
    assert many.arrow <= few.arrow + 2 * MIB, (few, many)
    assert many.arrow <= 10 * MIB, "12 to 60 MiB went through"
    assert many.process <= few.process + 16 * MIB, (few, many)


@pytest.mark.parametrize("by", ["version,id", "text"])
def test_a_larger_slice_takes_little_more_memory_when_it_is_sorted(tmp_path: Path, by: str) -> None:
    """The values of the columns it is sorted by, 8 to 24 bytes a row for the order, and two row groups."""
    sizes = {"small": 60_000, "large": 240_000}
    urls = {name: slice_of(tmp_path / name, rows, [3_000] * 3) for name, rows in sizes.items()}
    for url in urls.values():
        with hudi.open_table(url) as table:
            table.configure({"hoodie.clustering.plan.strategy.sort.columns": by})
    few, many = (measure(COMPACT, urls[name]) for name in sizes)
    more = sizes["large"] - sizes["small"]
    values = more * (WIDTH + 4 if by == "text" else 8 + 10)
    assert many.rows > 3 * few.rows
    assert many.arrow <= few.arrow + 2 * values + 24 * more + 4 * MIB, (few, many)


def test_wide_rows_come_in_smaller_batches(tmp_path: Path) -> None:
    """Rows of 100 bytes, and as many bytes in rows of 10,000."""
    few, many = compared(
        tmp_path,
        slice_of(tmp_path / "narrow", 100_000, [10_000]),
        slice_of(tmp_path / "wide", 1_500, [150], 10_000),
    )
    assert many.arrow <= few.arrow + 6 * MIB, (few, many)
