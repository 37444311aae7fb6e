"""``_hoodie_commit_seqno``: no two rows of a transaction share one, however many calls, chunks and files they came in."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.hudi.batches import FLUSH_BYTES
from headgate_tables.hudi.log.block import BlockKind, HeaderKey, read_blocks
from support.committed_log import avro_rows
from support.table_files import data_files, kind
from support.tables import SCHEMA, create, keys, notes, rows

SEQNO = "_hoodie_commit_seqno"


def numbers(table: hudi.Table) -> list[str]:
    """Of every row that is stored, merged or not."""
    found: list[str] = []
    for file in data_files(Path(table.url.removeprefix("file://"))):
        content = pa.py_buffer(file.read_bytes())
        for rows_of_one in [_of_parquet(content)] if kind(file) == "base" else _row_blocks(content):
            found += rows_of_one[SEQNO].to_pylist()
    return found


def _row_blocks(log: pa.Buffer) -> Iterator[pa.Table]:
    for block in read_blocks(log, "a log file"):
        if block.kind is BlockKind.PARQUET_DATA:
            yield _of_parquet(block.content)
        elif block.kind is BlockKind.AVRO_DATA:
            yield avro_rows(block.content.to_pybytes(), block.headers[HeaderKey.SCHEMA])


def _of_parquet(content: pa.Buffer) -> pa.Table:
    return pq.read_table(pa.BufferReader(content))


def numbered(instant: str, count: int) -> list[str]:
    """Each number once and none left out, in the order of ``sorted``."""
    return sorted(f"{instant}_0_{number}" for number in range(1, count + 1))


def many(ids: Sequence[int], ts: int, part: str = "p") -> pa.Table:
    return rows(*((f"k{n}", ts, f"at {ts}") for n in ids), part=part)


def test_rows_of_all_calls_of_one_transaction_have_numbers_of_their_own(tmp_path: Path) -> None:
    """Through the counts at which a number gets one more digit, in base files and in logs."""
    table = create(tmp_path, buckets=2)
    with table.transaction() as transaction:
        transaction.upsert(many(range(7), 1))
        transaction.upsert(many(range(5, 12), 2))
        transaction.upsert(many([0, 1, 2, *range(12, 120)], 3))
        transaction.upsert(many(range(120, 1_050), 4))
    assert sorted(numbers(table)) == numbered(transaction.instant, 7 + 7 + 111 + 930)
    assert len(notes(table)) == 1_050


def test_deletes_and_rows_that_others_beat_take_no_number_and_do_not_begin_anew(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=2)
    with table.transaction() as transaction:
        transaction.upsert(pa.concat_tables([many(range(20), 1), many(range(10), 2)]))
        transaction.delete(keys(("k0", 2), ("k1", 2)))
        transaction.upsert(many(range(30, 40), 1, part="another"))
        transaction.delete(keys(("k30", 1), part="another"))
        transaction.upsert(many(range(15, 25), 3))
    assert sorted(numbers(table)) == numbered(transaction.instant, 20 + 10 + 10)
    assert len(notes(table)) == 23 + 9


def test_the_next_transaction_numbers_its_rows_from_one_under_its_own_instant(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    instants = [table.upsert(many(range(12), ts)).instant for ts in (1, 2)]
    assert sorted(numbers(table)) == numbered(instants[0], 12) + numbered(instants[1], 12)


@pytest.mark.slow
def test_a_stream_that_is_written_in_several_chunks_numbers_its_rows_through(tmp_path: Path) -> None:
    """At the size at which a stream really is cut: what comes behind it goes into files of its own."""
    table = create(tmp_path, buckets=1)
    notes_of_1_mib = pa.array(["x" * (1 << 20)] * 64)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, FLUSH_BYTES + (80 << 20), 64 << 20):
            ids = [f"k{start >> 20}/{n}" for n in range(64)]
            columns = [pa.array(ids), pa.array(["p"] * 64), pa.array([1] * 64), notes_of_1_mib]
            yield pa.record_batch(columns, schema=SCHEMA)

    result = table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    assert (result.upserted, result.files) == (384, 2)
    assert sorted(numbers(table)) == numbered(result.instant, 384)
