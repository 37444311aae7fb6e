"""Bytes of each row: they add up to what the column holds, and a slice says of its rows what the whole said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_writer.sizes import _PLAIN, buffered_bytes, row_bytes, value_bytes
from support.kinds import Kind, kinds

_TEXTS = ["", "a", "bb" * 50, None, "é"]


def each(array: pa.Array[Any]) -> list[int]:
    size = value_bytes(array)
    return [size] * len(array) if isinstance(size, int) else size.tolist()


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(_TEXTS), [4, 5, 104, 4, 6]),
        (pa.array(_TEXTS, pa.large_string()), [8, 9, 108, 8, 10]),
        (pa.array([1, None], pa.int32()), [4, 4]),
        (pa.array([True, None]), [1, 1]),
        (pa.array([b"abc", None], pa.binary(3)), [3, 3]),
        (pa.array([[1, 2], [], None], pa.list_(pa.int16())), [8, 4, 4]),
        (pa.array([["a", "bcd"], [], None]), [4 + 5 + 7, 4, 4]),
        (pa.array([["a", "bcd"], ["", "x"]], pa.list_(pa.string(), 2)), [5 + 7, 4 + 5]),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)), [16, 16]),
        (pa.array([{"a": "xyz", "b": 1}, None]), [4 + 3 + 8, 4 + 8]),
        (pa.array([[("k", "vv")], []], pa.map_(pa.string(), pa.string())), [4 + 5 + 6, 4]),
        (pa.nulls(2), [0, 0]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_bytes_of_values(array: pa.Array[Any], expected: list[int]) -> None:
    assert each(array) == expected
    assert each(pa.concat_arrays([array, array]).slice(1, len(array))) == (expected + expected)[1 : len(array) + 1]


def test_rows_add_up_their_columns() -> None:
    table = pa.table({"a": ["x", "yyy"], "b": [1, 2]})
    assert row_bytes(table).tolist() == [5 + 8, 7 + 8]
    assert row_bytes(table.slice(0, 0)).tolist() == []


def test_rows_in_memory_have_their_key_their_group_and_a_bit_for_each_column_and_for_deletes() -> None:
    table = pa.table({"a": ["x", "yyy"], **{f"b{n}": [1, 2] for n in range(6)}})
    keys = pa.array(["x", "yyy"])
    assert buffered_bytes(table, keys).tolist() == [5 + 48 + 5 + 4 + 1, 7 + 48 + 7 + 4 + 1]
    assert buffered_bytes(table.append_column("c", pa.nulls(2)), keys).tolist() == [5 + 48 + 5 + 4 + 2, 7 + 48 + 7 + 4 + 2]


@pytest.mark.parametrize("kind", [*_PLAIN, pa.bool_()], ids=str)
def test_columns_whose_type_says_their_bytes_take_what_their_arrays_say(kind: pa.DataType) -> None:
    assert row_bytes(pa.table({"a": pa.nulls(3, kind)})).tolist() == [value_bytes(pa.nulls(3, kind))] * 3


_SAFE = kinds.filter(lambda kind: "view" not in str(kind.stored))


@pytest.mark.slow
@settings(deadline=None)
@given(st.data(), _SAFE)
def test_any_slice_of_any_stored_column_says_what_the_whole_said(data: st.DataObject, kind: Kind) -> None:
    values = [kind.stored_value(value) for value in data.draw(st.lists(kind.values | st.none(), max_size=6))]
    array = pa.array(values, kind.stored)
    start = data.draw(st.integers(0, len(array)))
    length = data.draw(st.integers(0, len(array) - start))
    assert each(array.slice(start, length)) == each(array)[start : start + length]


def test_what_text_takes_is_what_arrow_says() -> None:
    values = [str(n) * (n % 17) for n in range(500)]
    array = pa.array(values)
    assert int(np.sum(value_bytes(array))) == array.nbytes
