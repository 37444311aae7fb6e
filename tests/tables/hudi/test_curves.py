"""Orders of rows along curves, against what the curves are known for and against Python's own sorting."""

import datetime
import itertools
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate_tables.face.row_order import CURVES, Curve
from headgate_tables.hudi.services.compaction.curves import interleaved, order_of

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [-(2**62), -1, 0, 3, 2**62]),
    "double": (pa.float64(), [float("-inf"), -1.5, 0.0, 2.25, float("inf")]),
    "string": (pa.string(), ["", "A", "a", "b", "é"]),
    "date": (pa.date32(), [datetime.date(1900, 1, day) for day in range(1, 6)]),
    "timestamp": (pa.timestamp("us", tz="UTC"), [datetime.datetime(2026, 1, d, tzinfo=datetime.UTC) for d in range(1, 6)]),
    "decimal": (pa.decimal128(18, 2), [Decimal(-5), Decimal("-1.25"), Decimal(0), Decimal("0.01"), Decimal(7)]),
    "bool": (pa.bool_(), [False, True]),
}
"""In their order."""


def walked(grid: list[tuple[int, ...]], curve: Curve) -> list[tuple[int, ...]]:
    table = pa.table([pa.array(column) for column in zip(*grid, strict=True)], names=[f"c{at}" for at in range(len(grid[0]))])
    return [grid[number] for number in order_of(table, curve).to_pylist()]


@pytest.mark.parametrize(("columns", "bits"), [(2, 1), (2, 5), (3, 3), (4, 2), (8, 1)])
def test_the_hilbert_curve_goes_through_every_cell_in_steps_to_a_neighbour(columns: int, bits: int) -> None:
    grid = list(itertools.product(range(1 << bits), repeat=columns))
    random.Random(7).shuffle(grid)
    cells = walked(grid, "HILBERT")
    assert sorted(cells) == sorted(grid)
    steps = [sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in itertools.pairwise(cells)]
    assert set(steps) == {1}


@pytest.mark.parametrize(("columns", "bits"), [(2, 5), (3, 3), (8, 1)])
def test_the_z_curve_goes_by_the_interleaved_bits(columns: int, bits: int) -> None:
    grid = list(itertools.product(range(1 << bits), repeat=columns))
    random.Random(7).shuffle(grid)

    def place(cell: tuple[int, ...]) -> str:
        texts = [f"{value:0{bits}b}" for value in cell]
        return "".join("".join(digits) for digits in zip(*texts, strict=True))

    assert walked(grid, "ZORDER") == sorted(grid, key=place)


@pytest.mark.parametrize("curve", ["ZORDER", "HILBERT"])
def test_a_column_of_few_values_counts_as_much_as_one_of_many(curve: Curve) -> None:
    """The first cut is between its halves: a reader who wants one of two values skips every other row group."""
    grid = list(itertools.product(range(2), range(256)))
    random.Random(7).shuffle(grid)
    assert [few for few, _ in walked(grid, curve)] == [0] * 256 + [1] * 256


def test_bits_are_interleaved_from_the_highest_of_the_first_column() -> None:
    assert interleaved([np.array([0b10], np.uint64), np.array([0b11], np.uint64)], 2).tolist() == [0b1101]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("curve", CURVES)
def test_values_of_each_type_are_ordered_and_null_comes_last(name: str, curve: Curve) -> None:
    kind, values = VALUES[name]
    known = [*values, None]
    numbers = random.Random(5).choices(range(len(known)), k=200)
    chosen = [known[number] for number in numbers]
    column = pa.chunked_array([pa.array(chosen[:77], kind), pa.array(chosen[77:], kind)])
    same = pa.chunked_array([pa.array([1] * 200)])
    for table in (pa.table({"v": column}), pa.table({"same": same, "v": column}), pa.table({"v": column, "same": same})):
        found = order_of(table, curve).to_pylist()
        assert found == sorted(range(200), key=numbers.__getitem__), "equal rows keep their order"


def test_a_line_goes_by_the_second_column_where_the_first_is_equal() -> None:
    rows = [(a, b) for a in "cab" for b in (3, None, 1)]
    table = pa.table({"a": [a for a, _ in rows], "b": pa.array([b for _, b in rows], pa.int64())})
    found = [rows[number] for number in order_of(table, "LINEAR").to_pylist()]
    assert found == [(a, b) for a in "abc" for b in (1, 3, None)]


@pytest.mark.parametrize("curve", CURVES)
def test_no_rows_and_rows_that_are_all_equal_have_an_order(curve: Curve) -> None:
    for rows in ([], [1, 1, 1]):
        column = pa.array(rows, pa.int64())
        assert order_of(pa.table({"a": column, "b": column}), curve).to_pylist() == list(range(len(rows)))
