"""Tables written by real Hudi are read as real Hudi reads them."""

from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import UnsupportedTableError
from support.golden import comparable, expected_flink_rows, expected_rows, names, unpack

UNREADABLE = {"h120_v9_mor_multi_ordering": "several fields"}
READABLE = [name for name in names("*_mor_*") if name not in UNREADABLE]


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
