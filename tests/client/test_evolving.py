"""What rows bring that their table does not hold: the least that makes them fit, and only if they fit then."""

import datetime
import decimal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import headgate
from headgate.definition import Evolve, TableInfo
from headgate.errors import RowError, SchemaError
from headgate.evolving import brought, rereadable
from headgate.row_formats import RowFormats
from headgate.rows import detect_operation_type
from headgate_proto.api.v1 import errors_pb2 as err
from headgate_proto.api.v1 import tables_pb2
from support.scripted_knobs import Row
from support.scripted_service import Cluster
from support.scripted_table import ids, rows, table_of

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("day", pa.string()),
        ("count", pa.int32()),
        ("seats", pa.int32()),
        ("half", pa.float32()),
        ("price", pa.decimal128(6, 2)),
        ("place", pa.struct([("zip", pa.int32())])),
        ("tags", pa.list_(pa.field("element", pa.struct([("name", pa.string())])))),
    ]
)
TABLE = TableInfo("orders", SCHEMA, ("id",), ("day",), None, 8, hive_style=False, url="", uuid="", table_version=8)
ROW = {"id": "a", "day": "2026-01-01"}
MORE_THAN_INT32 = 1 << 40


def needs(rows: Any, evolve: Evolve = "add-and-widen", operation: str = "upsert") -> dict[str, pa.DataType]:
    table = replace(TABLE, evolve=evolve)
    formats = RowFormats(table)
    row_format = formats.mixed("op", pa.string()) if operation == "mixed" else getattr(formats, operation)
    found = brought(table, rereadable(rows), row_format)
    return {} if found is None else dict(zip(found.names, found.types, strict=True))


@dataclass
class Order:
    id: str
    day: str
    gate: str


def some_dicts() -> Iterator[dict[str, object]]:
    yield {**ROW, "gate": "A1"}
    yield {**ROW, "lounge": True}


@pytest.mark.parametrize(
    "rows",
    [
        [{**ROW, "gate": "A1"}],
        [ROW, {**ROW, "gate": None}, {**ROW, "gate": "A1"}],
        [Order("a", "2026-01-01", "A1")],
        pa.table({"id": ["a"], "day": ["d"], "gate": ["A1"]}),
        pa.table({"id": ["a"], "day": ["d"], "gate": pa.array(["A1"]).dictionary_encode()}).to_batches()[0],
        pa.table({"id": ["a"], "day": ["d"], "gate": ["A1"]}).to_reader(),
        pd.DataFrame({"id": ["a"], "day": ["d"], "gate": ["A1"]}),
        pl.DataFrame({"id": ["a"], "day": ["d"], "gate": ["A1"]}),
    ],
    ids=["dicts", "a null before", "objects", "table", "batch", "reader", "pandas", "polars"],
)
def test_a_new_column_comes_in_every_kind_of_rows(rows: Any) -> None:
    assert needs(rows, "add") == {"gate": pa.string()}


def test_rows_of_an_iterator_can_be_read_again_and_bring_all_of_their_columns() -> None:
    rows = rereadable(some_dicts())
    assert needs(rows) == needs(rows) == {"gate": pa.string(), "lounge": pa.bool_()}


def test_values_say_the_type_of_a_new_column_as_tables_store_it() -> None:
    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    row = {**ROW, "n": 1, "x": 1.5, "b": b"x", "t": noon, "d": noon.date(), "l": [1], "s": {"y": ["a"]}}
    assert needs([row]) == {
        "n": pa.int64(),
        "x": pa.float64(),
        "b": pa.binary(),
        "t": pa.timestamp("us", tz="UTC"),
        "d": pa.date32(),
        "l": pa.list_(pa.field("element", pa.int64())),
        "s": pa.struct([("y", pa.list_(pa.field("element", pa.string())))]),
    }


def test_a_column_is_widened_only_when_a_value_does_not_fit_and_only_where_that_is_allowed() -> None:
    fits = pa.table({"id": ["a"], "day": ["d"], "count": [3], "seats": [4]})
    assert needs(fits) == {}
    larger = pa.table({"id": ["a"], "day": ["d"], "count": [MORE_THAN_INT32], "seats": [4]})
    assert needs(larger) == {"count": pa.int64()}
    assert needs([{**ROW, "count": MORE_THAN_INT32, "seats": 4}]) == {"count": pa.int64()}
    assert needs([{**ROW, "count": 1.5}]) == {"count": pa.float64()}
    assert needs(pa.table({"id": ["a"], "day": ["d"], "half": [0.1]})) == {"half": pa.float64()}
    assert needs(pa.table({"id": ["a"], "day": ["d"], "price": pa.array([10**6], pa.decimal128(12, 2))})) == {
        "price": pa.decimal128(12, 2)
    }
    assert needs(larger, "add") == {}
    assert needs(larger, "refuse") == {}


def test_fields_inside_structs_and_lists_are_added_and_their_other_types_stay() -> None:
    row = {**ROW, "place": {"zip": 1, "street": "Main"}, "tags": [{"name": "x", "rank": 1}]}
    wanted = {
        "place": pa.struct([("zip", pa.int32()), ("street", pa.string())]),
        "tags": pa.list_(pa.field("element", pa.struct([("name", pa.string()), ("rank", pa.int64())]))),
    }
    assert needs([row], "add") == needs([row], "add-and-widen") == wanted
    assert needs([{**ROW, "place": {"zip": MORE_THAN_INT32}}]) == {"place": pa.struct([("zip", pa.int64())])}
    assert needs([{**ROW, "place": {"zip": MORE_THAN_INT32}}], "add") == {}


def test_deletes_bring_nothing_and_mixed_rows_no_column_of_their_operation() -> None:
    assert needs([{**ROW, "gate": "A1"}], operation="delete") == {}
    assert needs([{"op": "upsert", **ROW, "gate": "A1"}, {"op": "delete", **ROW}], operation="mixed") == {"gate": pa.string()}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_upserts_and_deletes_widens_by_its_values(frame: Any) -> None:
    rows, _ = detect_operation_type(frame({"op": ["upsert"], "id": ["a"], "day": ["d"], "count": [MORE_THAN_INT32]}), "op")
    assert needs(rows, operation="mixed") == {"count": pa.int64()}


def test_rows_that_would_not_fit_afterwards_change_nothing_and_the_error_is_theirs() -> None:
    with pytest.raises(RowError, match="'count'"):
        needs([{**ROW, "gate": "A1", "count": "many"}])
    with pytest.raises(RowError, match="no 'id'"):
        needs([{"day": "2026-01-01", "gate": "A1"}])
    with pytest.raises(SchemaError, match="missing: id"):
        needs(pa.table({"day": ["d"], "gate": ["A1"]}))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([None, None], "it has no values"),
        ([[], []], "it has no values"),
        ([1, "one"], "no common type"),
        ([decimal.Decimal("1.5"), None], "how many digits"),
    ],
)
def test_a_new_column_whose_type_nothing_says_is_refused_by_name(values: list[object], why: str) -> None:
    with pytest.raises(SchemaError, match=rf"'gate' is new, and nothing says its type: .*{why}") as refused:
        needs([{**ROW, "gate": value} for value in values])
    assert "table.alter(add={'gate': …})" in refused.value.fix


async def test_rows_of_new_columns_outlive_a_writer_that_has_not_heard_of_them(cluster: Cluster) -> None:
    cluster.knobs.evolution = tables_pb2.EVOLUTION_ADD

    def refuse(row: Row) -> "err.Code.ValueType | None":
        return err.CODE_SCHEMA if "gate" in row and len(cluster.opens) < 2 else None

    cluster.knobs.refuse = refuse
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert(rows(0, 2))
        await channel.upsert({"id": 2, "note": "n", "gate": "A1"})
        await channel.upsert(rows(3, 5))
    assert ids(cluster) == [0, 1, 2, 3, 4]
    assert len(cluster.opens) == 2


async def test_a_batch_that_does_not_fit_the_table_is_refused_also_after_its_columns_have_changed(cluster: Cluster) -> None:
    """As after a restore to before the change: the channel must not be opened again for ever."""
    cluster.knobs.evolution = tables_pb2.EVOLUTION_ADD
    cluster.knobs.refuse = lambda row: err.CODE_SCHEMA if "gate" in row else None
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert({"id": 2, "note": "n", "gate": "A1"})
        with pytest.raises(headgate.BatchRefusedError, match="is refused"):
            await channel.flush()
        await channel.skip()
    assert len(cluster.opens) == 2


async def test_a_call_that_began_before_another_one_changed_the_table_goes_on_with_its_columns(cluster: Cluster) -> None:
    """Threads may share a channel; only one of them asks for the column."""
    cluster.knobs.evolution = tables_pb2.EVOLUTION_ADD
    async with table_of(cluster) as table, table.channel("c") as channel:
        before, row = channel.formats.upsert, {"id": 2, "note": "n", "gate": "A1"}
        await channel.upsert(row)
        assert await channel.evolved(before, [row], SchemaError("unknown", fix="")) is channel.formats.upsert
