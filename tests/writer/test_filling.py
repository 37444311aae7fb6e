"""Nulls that a batch gets in what it leaves out: counted before they are made, and bounded."""

import dataclasses
import uuid
from collections.abc import Mapping

import pyarrow as pa
import pytest

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.limits import FILLED_BYTES
from headgate_runtime.errors import from_tables
from headgate_tables.hudi.definition import Definition
from headgate_writer.admission import Admitted
from headgate_writer.filling import Filling
from headgate_writer.routing import TooLargeError, route
from support.measured import measure

MIB = 1 << 20

_DELETES = """
import resource
resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))  # without the rule it would take all that the machine has
from headgate_writer.admission import Admitted
from headgate_writer.filling import Filling
from headgate_writer.routing import TooLargeError, route
from headgate_tables.hudi.definition import Definition
import uuid
import numpy as np

ROWS = int(sys.argv[1])
names = {"id": pa.string(), "part": pa.string(), "ts": pa.int64(), **{f"c{n}": pa.int64() for n in range(1_997)}}
table = Definition("t", pa.schema(names), ("id",), ("part",), "ts", 4, False, True, uuid.UUID(int=1))
rows = pa.table({"id": pa.array(np.arange(ROWS).astype(str)), "part": pa.array(["p"] * ROWS), "ts": pa.array(np.arange(ROWS))})
batch = Admitted(rows, pa.array(np.ones(ROWS, bool)), rows.nbytes)
before, held = rss(), pool.bytes_allocated()
try:
    counted = Filling(table).counted(batch, rows.schema)
    placed = route([counted], table)
    assert 0.95 * placed.nbytes < counted.nbytes < 1.05 * placed.nbytes, (placed.nbytes, counted.nbytes)
    taken = placed.rows.num_rows
except TooLargeError:
    taken = 0
print(json.dumps([taken, pool.max_memory() - held, rss() - before]))
"""


def table_of(columns: Mapping[str, pa.DataType]) -> Definition:
    schema = pa.schema({"id": pa.string(), "part": pa.string(), "ts": pa.int64(), **columns})
    return Definition("t", schema, ("id",), ("part",), "ts", 4, False, True, uuid.UUID(int=1))


def batch(rows: int, more: Mapping[str, pa.DataType], *, deletes: bool = False) -> Admitted:
    """Of nulls in the columns ``more``."""
    keys = {
        "id": pa.array([f"{n}" for n in range(rows)]),
        "part": pa.array(["p"] * rows),
        "ts": pa.array(range(rows), pa.int64()),
    }
    table = pa.table({**keys, **{name: pa.nulls(rows, kind) for name, kind in more.items()}})
    return Admitted(table, pa.array([True] * rows) if deletes else None, table.nbytes)


def counted(given: Admitted, table: Definition) -> int:
    """Bytes of nulls."""
    return Filling(table).counted(given, given.rows.schema).nbytes - given.nbytes


@pytest.mark.slow
def test_a_million_deletes_of_a_table_of_2_000_columns_are_refused_before_they_take_16_gb() -> None:
    peak = measure(_DELETES, 1_000_000)
    assert peak.rows == 0
    assert peak.arrow < MIB
    assert peak.process < 64 * MIB


@pytest.mark.slow
def test_deletes_up_to_the_limit_take_what_was_counted() -> None:
    peak = measure(_DELETES, 4_000)
    assert peak.rows == 4_000
    assert peak.arrow < 2 * FILLED_BYTES
    assert peak.process < 4 * FILLED_BYTES


def test_the_refusal_says_how_many_rows_may_come_at_once() -> None:
    table = table_of({f"c{n}": pa.decimal128(38, 2) for n in range(400)})
    with pytest.raises(TooLargeError) as caught:
        counted(batch(20_000, {}, deletes=True), table)
    error = from_tables(caught.value)
    assert (error.code, error.action) == (errors_pb2.CODE_TOO_LARGE, errors_pb2.ACTION_FIX_CALL)
    most = int(error.fix.split()[3].replace(",", ""))
    assert FILLED_BYTES - 8_000 < counted(batch(most, {}, deletes=True), table) <= FILLED_BYTES


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        (pa.struct({f"f{n}": pa.int64() for n in range(20)}), pa.struct({"f1": pa.int64()})),
        (pa.struct({"in": pa.struct({"a": pa.int64(), "b": pa.float64()})}), pa.struct({"in": pa.struct({"a": pa.int64()})})),
        (pa.struct({f"f{n}": pa.string() for n in range(20)}), pa.null()),
        (pa.binary(1_000), pa.null()),
        (pa.list_(pa.int64()), pa.null()),
        (pa.bool_(), pa.null()),
        (pa.int64(), pa.int64()),
    ],
    ids=str,
)
def test_what_is_counted_is_what_conversion_adds(stored: pa.DataType, given: pa.DataType) -> None:
    table, rows = table_of({"c": stored}), batch(1_000, {"c": given})
    stored_bytes = route([rows], table).rows.nbytes
    assert counted(rows, table) == pytest.approx(stored_bytes - rows.rows.nbytes, rel=0.05, abs=1_000)


def test_values_that_a_batch_brings_are_not_counted_again_and_a_new_schema_is_looked_at() -> None:
    table = table_of({"c": pa.int64()})
    filling, full, empty = Filling(table), batch(100, {"c": pa.int64()}), batch(100, {"c": pa.null()})
    assert filling.counted(full, full.rows.schema).nbytes == full.nbytes
    assert filling.counted(empty, empty.rows.schema).nbytes > empty.nbytes
    mixed = dataclasses.replace(full, deletes=pa.array([True] + [False] * 99))
    assert filling.counted(mixed, full.rows.schema).nbytes == full.nbytes


def test_rows_that_are_all_deletes_lose_what_they_bring() -> None:
    table = table_of({"c": pa.int64()})
    assert counted(batch(100, {"c": pa.null()}, deletes=True), table) == counted(batch(100, {}, deletes=True), table) > 800


def test_columns_that_a_batch_lacks_and_that_can_be_null_are_null_and_the_others_stay_missing() -> None:
    schema = pa.schema([*table_of({"a": pa.int64()}).schema, pa.field("b", pa.string(), nullable=False)])
    table = dataclasses.replace(table_of({}), schema=schema)
    lacking = batch(3, {"b": pa.string()})
    counted = Filling(table).counted(lacking, lacking.rows.schema)
    assert counted.rows.schema == pa.schema([*lacking.rows.schema, schema.field("a")])
    assert counted.rows["a"].null_count == 3
    assert counted.nbytes > lacking.nbytes
    bare = batch(3, {})
    assert Filling(table).counted(bare, bare.rows.schema).rows.column_names == ["id", "part", "ts", "a"]
    deletes = batch(3, {}, deletes=True)
    assert Filling(table).counted(deletes, deletes.rows.schema).rows is deletes.rows


def test_a_single_row_that_lacks_a_boolean_is_filled_though_its_null_counts_as_no_byte() -> None:
    counted = Filling(table_of({"a": pa.bool_()})).counted(lacking := batch(1, {}), lacking.rows.schema)
    assert counted.rows["a"].to_pylist() == [None]


def test_no_row_lacks_its_key_partition_or_ordering() -> None:
    rows = batch(3, {"a": pa.int64()}).rows
    for column in ("id", "part", "ts"):
        lacking = rows.drop_columns(column)
        counted = Filling(table_of({"a": pa.int64()})).counted(Admitted(lacking, None, lacking.nbytes), lacking.schema)
        assert counted.rows.column_names == lacking.column_names
