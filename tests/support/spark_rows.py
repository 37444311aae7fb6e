"""Rows for tables that Spark writes, and whether all read them as Spark does."""

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from support.readers import read_by_hudi_rs, read_by_us
from support.same_rows import assert_same_rows
from support.spark_hudi import SparkTable

_KINDS = {"id": pa.string(), "part": pa.string(), "ts": pa.int64(), "v": pa.int32(), "note": pa.string()}
SCHEMA = pa.schema([pa.field(name, kind) for name, kind in _KINDS.items()])
ALL_DONE = ["deltacommit.inflight", "deltacommit.requested", "deltacommit"]
"""One delta commit in ``SparkTable.actions()``."""

MakeTable = Callable[..., SparkTable]
"""The fixture ``make``: a `SparkTable` in a folder of the test's own."""


def rows(ids: Iterable[int], ts: int, tag: str = "", parts: Sequence[str] = ("a", "b", "c")) -> pa.Table:
    """A row per id; a fifth of the notes null; the partition follows from the id."""
    numbers = list(ids)
    columns = {
        "id": [f"k{number:03d}" for number in numbers],
        "part": [parts[number % len(parts)] for number in numbers],
        "ts": [ts] * len(numbers),
        "v": [number * ts for number in numbers],
        "note": [f"{tag}{number}" if number % 5 else None for number in numbers],
    }
    return pa.table(columns, schema=SCHEMA)


def deletes_in_rows(ids: Iterable[int], ts: int) -> pa.Table:
    """Rows that Hudi takes as deletes."""
    found = rows(ids, ts)
    return found.append_column("_hoodie_is_deleted", pa.array([True] * found.num_rows))


def assert_readers_agree(table: SparkTable, *, live: int, hudi_rs: bool = True) -> None:
    """``live``: how many rows the story says there are, so that readers cannot agree on nothing."""
    expected = table.rows()
    assert expected.num_rows == live
    assert_same_rows(read_by_us(table.path, meta_columns=True), expected, "our reader")
    if hudi_rs:
        assert_same_rows(read_by_hudi_rs(table.path), expected, "hudi-rs")
