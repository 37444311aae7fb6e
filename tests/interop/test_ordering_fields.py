"""Tables that Spark orders by several fields: refused whole, with what to do, and that is then done."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headgate_tables import hudi
from headgate_tables.errors import UnsupportedTableError
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse
from support.readers import assert_all_agree
from support.spark_rows import MakeTable

FIELDS = "hoodie.table.ordering.fields"
"""Where Hudi 1.2.0 names them, in a new table of version 8 too."""


COLUMNS = ("id", "ts", "rank", "note")


def rows(*entries: tuple[str, int, int, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS, entry, strict=True)) for entry in entries])


def bytes_of(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("version", [8, 9])
def test_a_table_that_spark_orders_by_several_fields_is_refused_and_its_rows_move_as_the_error_says(
    spark: Any, make: MakeTable, version: int, tmp_path: Path
) -> None:
    made = make(ordering="ts,rank", upgrades=version == 9)
    made.upsert(rows(("a", 1, 1, "older"), ("b", 1, 2, "newer by rank")))
    made.upsert(rows(("a", 2, 0, "newer by ts"), ("b", 1, 1, "late by rank")))
    properties = parse((made.path / PROPERTIES_PATH).read_bytes(), "")
    assert (properties["hoodie.table.version"], properties[FIELDS]) == (str(version), "ts,rank")
    before = bytes_of(made.path)
    with pytest.raises(UnsupportedTableError, match=r"orders rows by several fields \(ts,rank\)") as refused:
        hudi.open_table(str(made.path)).adopt(buckets=2)
    assert "with one ordering column" in refused.value.fix
    assert bytes_of(made.path) == before

    found = made.rows().select(COLUMNS)
    assert {row["id"]: row["note"] for row in found.to_pylist()} == {"a": "newer by ts", "b": "newer by rank"}
    moved = found.append_column("order", pc.add(pc.multiply(found["ts"], 1000), found["rank"]))
    path = tmp_path / "moved"
    table = hudi.create_table(str(path), moved.schema, record_key="id", ordering="order", buckets=2)
    table.upsert(moved)
    assert_all_agree(spark, path, moved)
