"""Hudi's own columns in front of a file's rows."""

import pyarrow as pa
import pytest

from headgate_tables.hudi.schema.meta_columns import META_COLUMNS, attach_meta, sequence_numbers

INSTANT = "20261121001053580"


def test_rows_get_the_five_columns_in_front() -> None:
    rows = attach_meta(
        pa.table({"id": ["a", "b"], "n": [1, 2]}),
        pa.array(["a", "b"]),
        sequence_numbers(INSTANT, 2, 9),
        instant=INSTANT,
        partition="dt=1",
        file_name="fid-0",
    )
    assert rows.column_names == [*META_COLUMNS, "id", "n"]
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        (INSTANT, f"{INSTANT}_0_9", "a", "dt=1", "fid-0", "a", 1),
        (INSTANT, f"{INSTANT}_0_10", "b", "dt=1", "fid-0", "b", 2),
    ]


def test_a_table_without_rows_gets_five_empty_columns() -> None:
    none = pa.array([], pa.string())
    rows = attach_meta(pa.table({"id": none}), none, sequence_numbers(INSTANT, 0), instant=INSTANT, partition="", file_name="f")
    assert rows.num_rows == 0
    assert rows.num_columns == 6


@pytest.mark.parametrize(("first", "n"), [(1, 12_345), (0, 3), (99_999, 2), (10**12 - 1, 3), (123_456_789, 20)])
def test_sequence_numbers_count_in_decimal_without_padding(first: int, n: int) -> None:
    assert sequence_numbers("p", n, first).to_pylist() == [f"p_0_{number}" for number in range(first, first + n)]
