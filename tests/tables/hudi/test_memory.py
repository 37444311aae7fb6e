"""Memory of reading and writing does not grow with the table or the stream. Each measure is a process of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.hudi.log import parquet_rows
from support.measured import Peak, measure

pytestmark = pytest.mark.slow

MIB = 1 << 20
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.int32()), ("version", pa.int64()), ("text", pa.string())])
WIDTH = 100
"""Bytes of ``text``: a row takes about 130 in Arrow, 190 with its meta columns."""

READ = """
base_reader.BATCH_ROWS = int(sys.argv[2])
table = hudi.open_table(sys.argv[1])
scan = table.scan(meta_columns=True)
rows, before = 0, rss()
for batch in scan.to_reader():
    rows += batch.num_rows
print(json.dumps([rows, pool.max_memory(), rss() - before]))
"""


def made_of(numbers: np.ndarray, parts: int, version: int) -> pa.Table:
    """Rows with text that does not compress."""
    letters = np.random.default_rng((version, len(numbers))).integers(33, 127, (len(numbers), WIDTH), dtype=np.uint8)
    offsets = np.arange(0, letters.size + 1, WIDTH, dtype=np.int32)
    text = pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets.data), pa.py_buffer(letters.data))
    ids = pa.array(numbers).cast(pa.string())
    partitions = pa.array((numbers % parts).astype(np.int32))
    return pa.table([ids, partitions, pa.repeat(pa.scalar(version), len(numbers)), text], schema=SCHEMA)


def written(folder: Path, count: int, parts: int, *, logs: bool) -> str:
    """A table of ``count`` rows; with ``logs`` each file group has one with a tenth of its rows."""
    table = hudi.create_table(str(folder), SCHEMA, record_key="id", partition_by="part", ordering="version", buckets=1)
    table.upsert(made_of(np.arange(count), parts, 1))
    if logs:
        table.upsert(made_of(np.arange(count // 10), parts, 2))
    return table.url


def test_streaming_a_table_of_32_times_the_partitions_takes_no_more_memory(tmp_path: Path) -> None:
    """20,000 rows in 4 partitions, then 640,000 in 128: one slice at a time is held, of about 1 MiB here.

    What a process keeps of freed memory differs by 24 MiB between two runs of the same table on a busy machine.
    """
    small = measure(READ, written(tmp_path / "small", 20_000, 4, logs=True), 131_072)
    large = measure(READ, written(tmp_path / "large", 640_000, 128, logs=True), 131_072)
    assert (small.rows, large.rows) == (20_000, 640_000)
    assert large.arrow <= small.arrow + MIB, (small, large)
    assert large.process <= small.process + 48 * MIB, "120 MiB of rows went through"


@pytest.mark.parametrize(("group_rows", "logs"), [(4_096, True), (1 << 20, False)])
def test_streaming_one_base_file_of_eight_times_the_rows_takes_no_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_rows: int, logs: bool
) -> None:
    """Row groups of 0.5 MiB or a single one, batches of 2,048 rows: the bound is a few batches and pages of 1 MiB, not the file.

    With logs, their keys and bytes are held too; they do not grow here.
    """
    monkeypatch.setattr(parquet_rows, "_GROUP_ROWS", group_rows)
    peaks = []
    for count in (20_000, 160_000):
        table = hudi.create_table(str(tmp_path / f"{count}"), SCHEMA, record_key="id", ordering="version", buckets=1)
        table.upsert(made_of(np.arange(count), 1, 1))
        if logs:
            table.upsert(made_of(np.arange(1_000), 1, 2))
        peaks.append(measure(READ, table.url, 2_048))
    small, large = peaks
    assert (small.rows, large.rows) == (20_000, 160_000)
    assert large.arrow <= small.arrow + 2 * MIB, peaks
    assert large.arrow <= 8 * MIB, "20 MiB went through"


STREAM = """
import numpy as np
batches.FLUSH_BYTES = int(sys.argv[2])
count, rows_each = int(sys.argv[3]), 2_500
table = hudi.open_table(sys.argv[1])
def stream():
    for number in range(count):
        ids = pa.array(np.arange(number * rows_each, (number + 1) * rows_each)).cast(pa.string())
        letters = np.random.default_rng(number).integers(33, 127, (rows_each, 100), dtype=np.uint8)
        offsets = np.arange(0, letters.size + 1, 100, dtype=np.int32)
        text = pa.StringArray.from_buffers(rows_each, pa.py_buffer(offsets), pa.py_buffer(letters))
        # Through the pool, so that it counts what is held.
        text = pa.concat_arrays([text, text.slice(0, 0)])
        columns = [ids, pa.array(np.zeros(rows_each, np.int32)), pa.array(np.full(rows_each, 1)), text]
        yield pa.record_batch(columns, schema=table.schema)
before = rss()
result = table.upsert(pa.RecordBatchReader.from_batches(table.schema, stream()))
print(json.dumps([result.upserted, pool.max_memory(), rss() - before]))
"""


def test_upserting_a_stream_holds_a_few_chunks_however_long_it_is(tmp_path: Path) -> None:
    """Chunks of 2 MiB. At once there are: one as it came or as rows of the table, as rows in file-group order, and as files,
    whose buffers grow by doubling: 3.7 chunks, the same on each run. The longer stream has 12 chunks more: of each not a tenth
    may be kept, nor a chunk's files until the next one is written.
    """
    flush = 2 * MIB
    peaks: list[Peak] = []
    for chunks in (4, 16):
        count = chunks * flush // (2_500 * 130)
        table = hudi.create_table(
            str(tmp_path / f"{chunks}"), SCHEMA, record_key="id", partition_by="part", ordering="version", buckets=2
        )
        peaks.append(measure(STREAM, table.url, flush, count))
        assert peaks[-1].rows == count * 2_500
        assert table.scan().to_table().num_rows == count * 2_500
        assert len(table.commits()) == 1
    assert peaks[1].arrow <= peaks[0].arrow + flush, peaks
    assert peaks[1].arrow <= 6 * flush, peaks


DELETE = """
from headgate_tables.hudi import deleting
deleting.PIECE_ROWS = int(sys.argv[2])
base_reader.BATCH_ROWS = 2_048
table = hudi.open_table(sys.argv[1])
before = rss()
result = table.delete_where("version = 1 AND text <> ''")
print(json.dumps([result.rows, pool.max_memory(), rss() - before]))
"""


def test_deleting_by_a_condition_holds_a_piece_however_many_rows_match(tmp_path: Path) -> None:
    """Pieces of 10,000 keys, of one slice: 2 and 16 of them in one commit."""
    peaks = []
    for count in (20_000, 160_000):
        url = written(tmp_path / f"{count}", count, 1, logs=False)
        peaks.append(measure(DELETE, url, 10_000))
        table = hudi.open_table(url)
        assert table.scan().to_table().num_rows == 0
        assert len(table.commits()) == 2
    small, large = peaks
    assert (small.rows, large.rows) == (20_000, 160_000)
    assert large.arrow <= small.arrow + 2 * MIB, peaks
    assert large.process <= small.process + 40 * MIB, peaks
