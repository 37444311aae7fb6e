"""Random scans of random tables against what pyarrow selects from all of their rows."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headgate_tables import hudi
from headgate_tables.hudi import base_reader
from headgate_tables.hudi.log import parquet_rows
from support.filters import expressions
from support.kinds import Kind
from support.model import Row
from support.same_rows import assert_same_rows
from support.strategies import Column, Shape, calls_on, effort, new_folder, present, shapes

NAN = float("nan")
ORDER = pc.field("o")


@pytest.mark.slow
@effort(50)
@given(shape=shapes(max_others=3), rows_of_a_group=st.integers(1, 3), data=st.data())
def test_a_scan_gives_what_pyarrow_selects_from_the_whole_table(shape: Shape, rows_of_a_group: int, data: st.DataObject) -> None:
    with new_folder() as folder, small_pieces(rows_of_a_group):
        table = hudi.create_table(f"{folder}/table", **shape.definition())
        for _ in range(data.draw(st.integers(1, 4))):
            kind, rows, form = data.draw(calls_on(shape))
            getattr(table, kind)(present(shape, rows, shape.named(kind), form))
        everything = table.scan(meta_columns=True).to_table()
        assume(everything.num_rows)
        for _ in range(6):
            check_scan(table, shape, everything, data)


@effort(60)
@given(data=st.data(), rows_of_a_group=st.integers(1, 2))
@pytest.mark.slow
def test_a_filter_that_statistics_can_answer_shows_no_row_that_lost(data: st.DataObject, rows_of_a_group: int) -> None:
    few = Kind(pa.int64(), pa.int64(), st.integers(0, 4))
    columns = {"k": Column(few, False), "o": Column(few, False), "c": Column(few, True)}
    pools = [[{name: value} for value in range(5)] for name in ("k", "o")]
    shape = Shape(columns, ("k",), (), "o", 1, False, False, pools[0], [{}], pools[1])
    with new_folder() as folder, small_pieces(rows_of_a_group):
        table = hudi.create_table(f"{folder}/table", **shape.definition())
        for kind in ("upsert", "upsert", "delete", "upsert"):
            rows = data.draw(st.lists(shape.identities() if kind == "delete" else shape.rows(), min_size=2, max_size=4))
            getattr(table, kind)(present(shape, rows, shape.named(kind), "whole"))
        everything = table.scan(meta_columns=True).to_table()
        for _ in range(10):
            check_scan(table, shape, everything, data)


def check_scan(table: hudi.Table, shape: Shape, everything: pa.Table, data: st.DataObject) -> None:
    columns = data.draw(st.none() | st.lists(st.sampled_from(list(shape.columns)), min_size=1, unique=True), label="columns")
    expression = data.draw(st.none() | expressions(everything, shape.named("delete")), label="filter")
    chosen = st.lists(partition_of(shape, everything), max_size=2) if shape.partition_by else st.none()
    partitions = data.draw(st.none() | chosen, label="partitions")
    wanted = everything
    if expression is not None:
        wanted = wanted.filter(expression)
    if partitions is not None:
        selected = [any(selects(partition, row) for partition in partitions) for row in wanted.to_pylist()]
        wanted = wanted.filter(pa.array(selected, pa.bool_()))
    wanted = wanted.select(columns or list(shape.columns))
    scan = table.scan(columns, partitions, expression)
    found = scan.to_table()
    assert found.schema == wanted.schema == scan.schema
    assert_same_rows(found, wanted, "to_table")
    reader = scan.to_reader()
    assert reader.schema == wanted.schema
    assert_same_rows(reader.read_all(), wanted, "to_reader")


def partition_of(shape: Shape, everything: pa.Table) -> st.SearchStrategy[Any]:
    """A path, or values of some partition columns, that are or are not there."""
    paths = st.sampled_from([*everything["_hoodie_partition_path"].to_pylist(), "nowhere"])
    named = st.sampled_from(shape.partition_by).flatmap(
        lambda name: st.sampled_from(everything[name].to_pylist()).map(lambda value: {name: value})
    )
    whole = st.sampled_from(everything.select(list(shape.partition_by)).to_pylist())
    return paths | named | whole


def selects(partition: Any, row: Row) -> bool:
    if isinstance(partition, str):
        return bool(row["_hoodie_partition_path"] == partition)
    return all(row[name] == value for name, value in partition.items())


@contextlib.contextmanager
def small_pieces(rows_of_a_group: int) -> Iterator[None]:
    """Row groups and batches of so few rows that there are many of both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_rows, "_GROUP_ROWS", rows_of_a_group)
        patch.setattr(base_reader, "BATCH_ROWS", 2)
        yield


@pytest.mark.parametrize(
    "expression",
    [
        ~(ORDER > 5),
        ~(ORDER <= 7),
        ~((ORDER > 5) | (ORDER <= 5)),
        ORDER.isin([NAN]),
        pc.is_nan(ORDER),
        ~((ORDER >= 6) & (ORDER <= 7)),
    ],
    ids=str,
)
def test_nan_is_found_although_statistics_leave_it_out(expression: pc.Expression) -> None:
    with new_folder() as folder:
        schema = pa.schema([("k", pa.int64()), ("o", pa.float64())])
        table = hudi.create_table(f"{folder}/table", schema, record_key="k", ordering="o", buckets=1)
        table.upsert(pa.table({"k": [1, 2, 3], "o": [6.0, 7.0, NAN]}, schema=schema))
        assert table.scan(filter=expression).to_table()["k"].to_pylist() == [3]
