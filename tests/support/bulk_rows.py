"""A table and rows for bulk loads by Spark, and what a load may not leave behind."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_tables import hudi
from support.oracle import Oracle, Row

_KINDS = {
    "id": pa.string(),
    "part": pa.string(),
    "ts": pa.int64(),
    "v": pa.int32(),
    "price": pa.float64(),
    "amount": pa.decimal128(12, 2),
    "at": pa.timestamp("us", "UTC"),
    "day": pa.date32(),
    "tags": pa.list_(pa.string()),
}
SCHEMA = pa.schema([pa.field(name, kind) for name, kind in _KINDS.items()])
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def row(number: int) -> Row:
    """Of 500 keys and three partitions."""
    return {
        "id": f"k{number * 7 % 500}é",
        "part": f"p {number % 3}",
        "ts": number,
        "v": None if number % 11 == 0 else number,
        "price": number / 8,
        "amount": decimal.Decimal(number) / 100,
        "at": NOON + datetime.timedelta(seconds=number),
        "day": datetime.date(2026, 1, 1 + number % 28),
        "tags": [f"t{number % 5}"] * (number % 3),
    }


ROWS = [row(number) for number in range(800)]


def write(path: Path, rows: list[Row]) -> str:
    """A Parquet file, and its path."""
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    return str(path)


def new_table(folder: Path) -> str:
    """An empty one of two buckets, and its URL."""
    hudi.create_table(str(folder), SCHEMA, record_key=["id"], partition_by=["part"], ordering="ts", buckets=2).close()
    return str(folder)


def upsert(url: str, rows: list[Row]) -> None:
    """As a program that is not Spark."""
    with hudi.open_table(url) as table:
        table.upsert(pa.Table.from_pylist(rows, schema=SCHEMA))
        assert not table.verify().findings


def filled_table(folder: Path, *, compacted: bool) -> str:
    """One of ``ROWS``, whose slices have base and log files, and its URL. ``compacted``: the base files are of a compaction."""
    url = new_table(folder)
    upsert(url, ROWS[:500])
    if compacted:
        with hudi.open_table(url) as table:
            table.compact()
    upsert(url, ROWS[500:])
    return url


LATER: list[Row] = [{**row(number), "ts": 10_000} for number in range(60)]
"""Of keys that are there."""


def expected(*steps: list[Row]) -> pa.Table:
    """What the oracle has after these upserts."""
    oracle = Oracle(["id"], ["part"], "ts")
    for rows in steps:
        oracle.upsert(rows)
    return pa.Table.from_pylist(oracle.rows(), schema=SCHEMA)


def leftovers(folder: Path, keep: str) -> list[str]:
    """Files of other instants than ``keep``, after a later owner has tidied up."""
    with hudi.open_table(str(folder)) as later:
        later.upsert(pa.Table.from_pylist([ROWS[-1]], schema=SCHEMA))
        last = later.commits()[-1].instant
    names = [path.name for path in folder.rglob("*") if path.is_file() and path.name[0].isdigit() and "2026" in path.name]
    return [name for name in names if keep not in name and last not in name]


def committed(folder: Path) -> set[str]:
    """Names of files that carry an instant which completed."""
    timeline = [path.name for path in (folder / ".hoodie" / "timeline").iterdir()]
    done = {name.partition("_")[0] for name in timeline if "_" in name}
    names = [path.name for path in folder.rglob("*") if path.is_file()]
    return {name for name in names if any(instant in name for instant in done)}
