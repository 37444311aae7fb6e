"""Builders and independent readers for table tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pyarrow as pa

from headgate_tables import hudi

_COLUMNS: dict[str, pa.DataType] = {"id": pa.string(), "part": pa.string(), "ts": pa.int64(), "note": pa.string()}
SCHEMA = pa.schema(_COLUMNS)
SHORT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "headgate.clean.min.age": "0",
}
"""Settings with which a few commits are cleaned and archived."""

Row = dict[str, Any]


def create(
    tmp_path: Path, *, ordering: str | None = "ts", partitioned: bool = True, buckets: int = 2, **options: Any
) -> hudi.Table:
    """An empty table in ``tmp_path``."""
    partition_by = ["part"] if partitioned else []
    return hudi.create_table(
        f"file://{tmp_path}/table",
        SCHEMA,
        record_key="id",
        partition_by=partition_by,
        ordering=ordering,
        buckets=buckets,
        **options,
    )


def rows(*entries: tuple[str, int, str], part: str = "p") -> pa.Table:
    """Rows of (id, ts, note) in one partition."""
    return pa.Table.from_pylist([{"id": i, "part": part, "ts": ts, "note": note} for i, ts, note in entries], SCHEMA)


def keys(*entries: tuple[str, int], part: str = "p") -> pa.Table:
    """Deletes of (id, ts) in one partition."""
    return pa.Table.from_pylist([{"id": i, "part": part, "ts": ts} for i, ts in entries], SCHEMA.remove(3))


def notes(table: hudi.Table) -> dict[str, str]:
    """id to note, by our reader and by hudi-rs, which must agree."""
    ours = table.scan().to_table().to_pylist()
    theirs = by_hudi_rs(table.url)
    assert as_text(ours) == as_text([{name: row[name] for name in SCHEMA.names} for row in theirs])
    found = {row["id"]: row["note"] for row in ours}
    assert len(found) == len(ours), "a key is there twice"
    return found


def by_hudi_rs(url: str, options: Mapping[str, str] | None = None) -> list[Row]:
    """The snapshot as hudi-rs reads it, meta columns included."""
    batches = hudi_rs.HudiTableBuilder.from_base_uri(url).with_storage_options(dict(options or {})).build().read()
    return [row for batch in batches for row in pa.record_batch(batch).to_pylist()]


def as_text(found: Sequence[Row]) -> list[str]:
    """Rows in an order of their own."""
    return sorted(repr(sorted(row.items())) for row in found)
