"""Columns of tables of ours that another program added, widened or dropped."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headgate_tables import hudi
from headgate_tables.errors import ForeignWriterError, UnsupportedTableError
from support.other_program import other_program
from support.refusals import refused
from support.tables import SCHEMA, create, rows


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = create(tmp_path)
    made.upsert(rows(("a", 1, "x"), ("b", 1, "x")))
    made.upsert(rows(("a", 2, "y")))
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


def change_schema(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """In the metadata of the newest commit: readers go by that."""
    newest = max((path / ".hoodie/timeline").glob("*_*.deltacommit"))
    reader = fastavro.reader(io.BytesIO(newest.read_bytes()))
    kind: Any = reader.writer_schema
    [record] = list(reader)
    schema = json.loads(record["extraMetadata"]["schema"])
    change(schema)
    record["extraMetadata"]["schema"] = json.dumps(schema)
    out = io.BytesIO()
    fastavro.writer(out, kind, [record])
    newest.write_bytes(out.getvalue())


def test_a_column_that_the_other_program_added_is_shown_before_it_is_adopted(table: hudi.Table, path: Path) -> None:
    """Fact HF6."""
    before = hudi.open_table(table.url)
    assert before.scan().schema == SCHEMA
    with other_program(path) as other:
        other.upsert(rows(("c", 1, "theirs")))
    change_schema(path, lambda schema: schema["fields"].append({"name": "more", "type": ["null", "long"], "default": None}))
    shown = SCHEMA.append(pa.field("more", pa.int64()))
    for handle in (table, before, hudi.open_table(table.url)):
        found = handle.scan()
        assert found.schema == shown
        assert [row["more"] for row in found.to_table().to_pylist()] == [None] * 3
        assert handle.scan(filter=pc.field("more") == 1).to_table() == shown.empty_table()
        assert handle.schema == SCHEMA
    with refused(ForeignWriterError, "another program wrote", "adopt"):
        table.upsert(rows(("d", 1, "ours")))
    newest = max((path / ".hoodie/timeline").glob("*_*.deltacommit"))
    newest.rename(newest.with_suffix(".taken back"))
    for handle in (table, before):
        assert handle.scan().schema == SCHEMA


def test_a_column_that_the_other_program_made_wider_is_read_in_its_width(tmp_path: Path) -> None:
    """Its files have rows that the narrower type could not hold."""
    narrow = pa.schema([("id", pa.string()), ("n", pa.int32())])
    table = hudi.create_table(f"file://{tmp_path}/table", narrow, record_key="id", buckets=1)
    table.upsert(pa.table({"id": ["a"], "n": [1]}, schema=narrow))
    with other_program(tmp_path / "table", buckets=1) as other:
        other.upsert(pa.table({"id": ["b"], "n": [2]}, schema=narrow))

    def widen(schema: dict[str, Any]) -> None:
        next(field for field in schema["fields"] if field["name"] == "n")["type"] = ["null", "long"]

    change_schema(tmp_path / "table", widen)
    found = hudi.open_table(table.url).scan().to_table()
    assert found.schema.field("n").type == pa.int64()
    assert sorted(found["n"].to_pylist()) == [1, 2]


def test_a_column_that_the_other_program_added_is_one_of_ours(table: hudi.Table, path: Path) -> None:
    with other_program(path) as other:
        other.upsert(rows(("c", 1, "theirs")))
    change_schema(path, lambda schema: schema["fields"].append({"name": "more", "type": ["null", "long"], "default": None}))
    table.adopt()
    assert table.schema == SCHEMA.append(pa.field("more", pa.int64()))
    table.upsert(rows(("d", 1, "ours")).append_column("more", pa.array([7])))
    for handle in (table, hudi.open_table(table.url)):
        found = {row["id"]: row["more"] for row in handle.scan().to_table().to_pylist()}
        assert found == {"a": None, "b": None, "c": None, "d": 7}


def test_a_column_that_the_other_program_dropped_is_refused(table: hudi.Table, path: Path) -> None:
    with other_program(path) as other:
        other.upsert(rows(("c", 1, "theirs")))
    change_schema(path, lambda schema: schema["fields"].pop())
    with refused(UnsupportedTableError, "no longer has the column 'note'", "Change the schema back"):
        table.adopt()
