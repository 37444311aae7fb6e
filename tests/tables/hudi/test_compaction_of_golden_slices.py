"""Slices that real Hudi wrote are compacted to the rows that its own reader shows of them."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.services.compaction import pinned_slice
from headgate_tables.hudi.services.compaction.execution import compact_slice
from support.golden import comparable, expected_rows, names, unpack
from support.slices import LATER, STAGE, operation_of, place

READABLE = [name for name in names("h1*_v[89]_mor_*") if "multi_ordering" not in name]


def definition_of(table: hudi.Table) -> Definition:
    """Of a table that another program made."""
    layout = table._opened.layout
    return Definition(
        layout.name,
        table.schema,
        layout.record_key,
        layout.partition_by,
        layout.ordering,
        1,
        layout.hive_style,
        layout.url_encode,
        uuid.UUID(int=0),
    )


@pytest.mark.parametrize("small", [0, pinned_slice._SMALL_BYTES])
@pytest.mark.parametrize("name", READABLE)
def test_a_compacted_slice_of_spark_holds_the_rows_that_spark_shows(
    name: str, small: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every slice with logs is compacted, with its logs held or read piece by piece; the others are read as they are."""
    monkeypatch.setattr(pinned_slice, "_SMALL_BYTES", small)
    table = hudi.open_table(unpack(name, tmp_path))
    found: list[dict[str, Any]] = []
    for part in table.scan().slices():
        if not part.logs:
            found += rows_of(pq.read_table(place(table) / part.path(part.base or "")))
            continue
        operation = operation_of(table, part)
        done = compact_slice(
            table._store,
            definition_of(table),
            table._opened.layout,
            operation,
            LATER,
            stage=STAGE,
            settings=TableSettings(),
        )
        compacted = pq.read_table(place(table) / operation.path)
        assert done.rows == compacted.num_rows
        assert set(compacted["_hoodie_file_name"].to_pylist()) <= {operation.output}
        found += rows_of(compacted)
    wanted = expected_rows(name)
    columns = [column for column in table.schema.names if column in wanted.column_names]
    meta = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path"]
    kept = [*meta, *columns]
    assert comparable([{key: row[key] for key in kept} for row in found]) == comparable(wanted.select(kept).to_pylist())


def rows_of(rows: pa.Table) -> list[dict[str, Any]]:
    return rows.to_pylist()
