"""Tables written by real Hudi are read as real Hudi reads them."""

from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import UnsupportedTableError
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse, render
from support.golden import comparable, expected_flink_rows, expected_rows, names, unpack
from support.tables import by_hudi_rs

UNREADABLE = {"h120_v9_mor_multi_ordering": "several fields"}
READABLE = [name for name in names("*") if name not in UNREADABLE]
OF_HUDI_RS = [name for name in names("*", writer="hudi") if "lance" not in name]


@pytest.mark.parametrize("name", READABLE)
def test_a_table_of_spark_gives_the_rows_that_spark_gives(name: str, tmp_path: Path) -> None:
    table = hudi.open_table(unpack(name, tmp_path))
    rows = table.scan(meta_columns=True).to_table()
    wanted = expected_rows(name)
    assert comparable(rows.to_pylist()) == comparable(wanted.select(rows.column_names).to_pylist())
    assert set(rows.column_names) == set(wanted.column_names)


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_a_table_that_merges_in_another_way_is_refused(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    with pytest.raises(UnsupportedTableError, match=UNREADABLE[name]):
        hudi.open_table(path).scan().to_table()


@pytest.mark.parametrize("name", OF_HUDI_RS)
def test_a_table_without_expected_rows_gives_those_that_hudi_rs_gives(name: str, tmp_path: Path) -> None:
    """Spark shows the column of a timestamp key generator as text, hudi-rs as it is stored."""
    table = hudi.open_table(unpack(name, tmp_path, writer="hudi"))
    theirs = by_hudi_rs(table.url)
    rows = table.scan().to_table()
    assert [name for name in ("ts_millis", "ts_epoch") if name in rows.column_names and rows[name].type != pa.string()] == []
    as_text = [
        [{column: str(row[column]) for column in rows.column_names} for row in found] for found in (rows.to_pylist(), theirs)
    ]
    assert comparable(as_text[0]) == comparable(as_text[1])


def test_a_table_without_commits_has_the_columns_that_it_was_created_with(tmp_path: Path) -> None:
    table = hudi.open_table(unpack("sample_table__cow__v8_empty", tmp_path, writer="hudi"))
    columns = pa.schema([("id", pa.int32()), ("name", pa.string()), ("isActive", pa.bool_())])
    assert table.schema == columns
    assert table.scan().to_table() == columns.empty_table()
    assert table.scan(["name"]).schema.names == ["name"]


def test_a_column_that_orders_the_rows_stays_a_number_even_if_partition_paths_are_made_of_it(tmp_path: Path) -> None:
    path = Path(unpack("h120_v9_cow_timestamp_keygen", tmp_path))
    file = path / PROPERTIES_PATH
    file.write_bytes(render(parse(file.read_bytes(), "") | {"hoodie.table.ordering.fields": "order_no"}, "Edited"))
    assert hudi.open_table(str(path)).scan().to_table()["order_no"].type == pa.int64()


@pytest.mark.parametrize("name", names("*", writer="flink"))
def test_a_table_of_flink_gives_the_rows_that_flink_gives(name: str, tmp_path: Path) -> None:
    rows = hudi.open_table(unpack(name, tmp_path, writer="flink")).scan().to_table().to_pylist()
    wanted = expected_flink_rows(name)
    as_text = [{column: _flink_text(row[column], wanted[0][column]) for column in wanted[0]} for row in rows]
    assert comparable(as_text) == comparable(wanted)


def _flink_text(value: object, like: object) -> object:
    """Decimals and timestamps as Flink's file has them: text."""
    if value is not None and isinstance(like, str) and not isinstance(value, str):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f") if hasattr(value, "strftime") else str(value)
    return value
