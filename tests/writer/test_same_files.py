"""One way from rows to files: the library and a cluster's writer make the same files of the same rows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables import hudi
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.storage.local import LocalStore
from headgate_tables.system import SystemIds
from headgate_writer.admission import Admitted
from headgate_writer.buffers import CheckpointBuffer
from headgate_writer.flushing import flush
from headgate_writer.routing import route
from support.strategies import effort, new_folder
from support.tables import SCHEMA

Entry = tuple[int, str, int]
"""Number of the key, partition, ordering value."""
File = tuple[str, str, int, int, int, int, str]
"""Partition, name, log version, rows, deletes, size, SHA-256."""

_entries = st.lists(st.tuples(st.integers(0, 60), st.sampled_from("pq"), st.integers(1, 4)), min_size=1, max_size=80)


def data_of(entries: Sequence[Entry]) -> pa.Table:
    rows = [{"id": f"k{key}", "part": part, "ts": ts, "note": f"note {at}"} for at, (key, part, ts) in enumerate(entries)]
    return pa.Table.from_pylist(rows, SCHEMA)


def create(path: Path, ordering: str | None) -> hudi.Table:
    """With a row in each bucket, so that the library writes log files, too."""
    table = hudi.create_table(
        f"file://{path}", schema=SCHEMA, record_key=["id"], partition_by=["part"], ordering=ordering, buckets=3
    )
    table.upsert(data_of([(key, part, 1) for key in range(40) for part in "pq"]))
    return table


def of_the_library(transaction: hudi.Transaction, rows: pa.Table, *, deletes: bool) -> list[File]:
    if deletes:
        transaction.delete(rows.select(["part", "id", "ts"]))
    else:
        transaction.upsert(rows)
    found = []
    for status in transaction.statuses:
        stat = status.stat
        size_and_hash = (status.file.size, status.file.sha256)
        found.append((stat.partition, stat.name, stat.log_version, stat.rows, stat.deletes, *size_and_hash))
    return found


def of_a_writer(table: hudi.Table, instant: str, rows: pa.Table, *, deletes: bool) -> list[File]:
    assert table.definition is not None
    store = LocalStore(table.url.removeprefix("file://"), SystemIds())
    writer = ChangeWriter(store, table.definition, epoch=table.epoch, process="5" * 32, ordinal=0)
    flags = pa.array(np.full(rows.num_rows, deletes))
    buffer = CheckpointBuffer()
    buffer.add(route([Admitted(rows, flags, rows.nbytes)], table.definition))
    codes = np.arange(len(buffer.groups))
    portion = buffer.take_portion(codes)
    form = table.settings.block_format
    flushed = flush(writer, table.definition, instant, portion, [1] * len(codes), ordinal=0, block_format=form)
    assert not flushed.rest
    return [
        (each.partition, each.name, each.log_version, each.rows, each.deletes, each.size, each.sha256)
        for each in flushed.statuses
    ]


@pytest.mark.slow
@pytest.mark.parametrize("ordering", ["ts", None], ids=["event time", "commit time"])
@pytest.mark.parametrize("deletes", [False, True], ids=["upserts", "deletes"])
@effort(15)
@given(entries=_entries)
def test_the_library_and_a_writer_make_the_same_files_of_the_same_rows(
    ordering: str | None, deletes: bool, entries: list[Entry]
) -> None:
    with new_folder() as folder, create(Path(folder) / "table", ordering) as table, table.transaction() as transaction:
        rows = data_of(entries)
        library = of_the_library(transaction, rows, deletes=deletes)
        assert len(library) == len({(part, name) for part, name, *_ in library})
        assert sum(written + deleted for _, _, _, written, deleted, _, _ in library) == len({entry[:2] for entry in entries})
        assert of_a_writer(table, transaction.instant, rows, deletes=deletes) == library
        transaction.rollback()
