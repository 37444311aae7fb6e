"""Rows of every kind become the table's columns and types, or an error that names row, column and what to do."""

import datetime
import decimal
import enum
import gc
import types
import uuid
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, NamedTuple

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from headgate.definition import TableInfo
from headgate.errors import FixCall, InvalidArgumentError, RowError, SchemaError
from headgate.records import MOST_CLASSES, is_record
from headgate.rows import RowFormat, detect_operation_type
from headgate.schemas import schema_of
from headgate.unknown_columns import how_to_add
from headgate_proto.api.v1 import ingest_pb2 as wire

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("day", pa.string()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("price", pa.float64()),
        pa.field("count", pa.int32()),
    ]
)
INFO = TableInfo("orders", SCHEMA, ("id",), ("day",), "at", 8, hive_style=False, url="", uuid="", table_version=8)
UPSERT = RowFormat(INFO, wire.OPERATION_UPSERT)
DELETE = RowFormat(INFO, wire.OPERATION_DELETE)
ROW = {"id": "a", "day": "2026-01-01", "at": NOON, "price": 1.5, "count": 3}


def converted(data: Any, row_format: RowFormat = UPSERT) -> list[dict[str, Any]]:
    batches = list(row_format.convert(data))
    assert all(batch.schema.equals(row_format.schema, check_metadata=True) for batch in batches)
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


@dataclass
class Order:
    id: str
    day: str
    at: datetime.datetime
    price: float | None
    count: int


@dataclass(slots=True)
class Key:
    id: str


class Lazy(Mapping[str, Any]):
    """A mapping that is not a dict."""

    def __getitem__(self, key: str) -> Any:
        return ROW[key]

    def __iter__(self) -> Iterator[str]:
        return iter(ROW)

    def __len__(self) -> int:
        return len(ROW)


ARROW = pa.table({name: [value] for name, value in ROW.items()}, schema=SCHEMA)


@pytest.mark.parametrize(
    "data",
    [
        [ROW],
        ROW,
        (row for row in [ROW]),
        [Order(**ROW)],
        Order(**ROW),
        [Lazy()],
        ARROW,
        ARROW.to_batches()[0],
        ARROW.to_reader(),
        ARROW.select(["count", "price", "at", "day", "id"]),
        ARROW.replace_schema_metadata({"pandas": "{}"}),
        ARROW.set_column(1, "day", ARROW["day"].dictionary_encode()),
        ARROW.set_column(4, "count", ARROW["count"].cast(pa.float64())),
        ARROW.set_column(0, "id", ARROW["id"].cast(pa.large_string())),
        ARROW.set_column(2, "at", ARROW["at"].cast(pa.timestamp("ns", tz="Europe/Berlin"))),
        ARROW.set_column(2, "at", ARROW["at"].cast(pa.timestamp("s"))),
        pl.DataFrame([ROW]),
        pl.DataFrame([ROW]).with_columns(pl.col("day").cast(pl.Categorical)),
        pd.DataFrame([ROW]),
        pd.DataFrame([ROW]).astype({"day": "category"}),
    ],
    ids=lambda data: type(data).__name__,
)
def test_every_kind_of_rows_becomes_the_tables_columns(data: Any) -> None:
    assert converted(data) == [ROW]


def test_no_rows_are_no_batches() -> None:
    assert converted([]) == []
    assert converted(ARROW.slice(0, 0)) == []


FEW = {"id": "b", "day": "2026-01-01", "at": NOON}


@pytest.mark.parametrize(
    "data",
    [
        [FEW],
        [types.MappingProxyType(FEW)],
        [{**FEW, "count": None}],
        pa.Table.from_pylist([FEW]),
        pl.DataFrame([FEW]),
        pd.DataFrame([FEW]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_rows_may_lack_columns_that_can_be_null(data: Any) -> None:
    assert converted(data) == [{**FEW, "price": None, "count": None}]


def test_each_row_may_lack_other_columns_and_values_are_fitted_as_in_whole_rows() -> None:
    rows = [ROW, {**FEW, "count": decimal.Decimal(7)}, {**FEW, "price": 2.5}]
    assert [(row["price"], row["count"]) for row in converted(rows)] == [(1.5, 3), (None, 7), (2.5, None)]
    with pytest.raises(RowError, match="row 1, column 'count'") as refused:
        converted([ROW, {**FEW, "count": 1.5}])
    assert (refused.value.row, refused.value.column) == (1, "count")
    with pytest.raises(RowError, match="row 2, column 'price': 'dear' does not fit"):
        converted([ROW, FEW, {**FEW, "price": "dear"}])


def test_a_column_that_is_never_null_cannot_be_left_out() -> None:
    schema = pa.schema(
        [pa.field("id", pa.string()), pa.field("price", pa.float64(), nullable=False), pa.field("note", pa.string())]
    )
    info = TableInfo("t", schema, ("id",), (), None, 8, hive_style=False, url="", uuid="", table_version=8)
    strict = RowFormat(info, wire.OPERATION_UPSERT)
    assert converted([{"id": "a", "price": 1.0}], strict) == [{"id": "a", "price": 1.0, "note": None}]
    with pytest.raises(RowError, match="row 0 has no 'price'"):
        converted([{"id": "a", "note": "b"}], strict)
    with pytest.raises(SchemaError, match="missing: price"):
        converted(pa.table({"id": ["a"], "note": ["b"]}), strict)


def test_a_long_list_comes_in_chunks_and_rows_are_counted_through() -> None:
    rows = [ROW] * 70_000
    assert sum(batch.num_rows for batch in UPSERT.convert(rows)) == 70_000
    with pytest.raises(RowError) as refused:
        converted([*rows, {**ROW, "price": "dear"}])
    assert refused.value.row == 70_000


def test_a_reader_is_converted_batch_by_batch() -> None:
    given: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            given.append(number)
            yield ARROW.to_batches()[0]

    stream = UPSERT.convert(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    next(stream)
    assert given == [0]


def test_pandas_gaps_are_nulls_again() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "day": ["d", "d"], "at": [NOON, NOON], "price": [1.0, None], "count": [1, None]})
    assert [(row["price"], row["count"]) for row in converted(frame)] == [(1.0, 1), (None, None)]


@pytest.mark.parametrize(
    ("row", "column", "says"),
    [
        ({**ROW, "price": "dear"}, "price", "'dear' does not fit double"),
        ({**ROW, "count": 2**40}, "count", "does not fit int32"),
        ({**ROW, "count": 1.5}, "count", "does not fit int32"),
        ({**ROW, "at": "noon"}, "at", "'noon' does not fit timestamp"),
        ({**ROW, "id": 7}, "id", "7 does not fit string"),
        ({**ROW, "id": None}, "id", "no value in 'id'"),
        ({**ROW, "at": None}, "at", "no value in 'at'"),
        ({name: value for name, value in ROW.items() if name != "day"}, "day", "has no 'day'.* may lack only .*: price, count"),
        ({**ROW, "size": 1}, "size", "'size', which is not a column"),
        ({name.replace("price", "Prise"): value for name, value in ROW.items()}, "Prise", "Did you mean 'price'"),
    ],
)
def test_a_bad_row_is_named_with_its_column(row: dict[str, Any], column: str, says: str) -> None:
    with pytest.raises(RowError, match=says) as refused:
        converted([ROW, ROW, row, ROW])
    assert (refused.value.row, refused.value.column) == (2, column)
    assert "row 2" in str(refused.value)


def test_a_bad_value_in_arrow_is_named_with_its_row_across_chunks() -> None:
    bad = ARROW.set_column(2, "at", pa.chunked_array([pa.array([1_500], pa.timestamp("ns"))]))
    good = ARROW.set_column(2, "at", ARROW["at"].cast(pa.timestamp("ns")))
    with pytest.raises(RowError, match="would lose data") as refused:
        converted(pa.concat_tables([good, good, bad]))
    assert (refused.value.row, refused.value.column) == (2, "at")
    present = ARROW.cast(pa.schema([field.with_nullable(True) for field in SCHEMA]))
    with pytest.raises(RowError) as refused:
        converted(pa.concat_tables([present, present.set_column(0, "id", pa.array([None], pa.string()))]))
    assert (refused.value.row, refused.value.column) == (1, "id")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (ARROW.drop_columns(["count", "day", "at"]), r"missing: day, at\).* may lack only .*: price, count"),
        (ARROW.append_column("size", pa.array([1])), r"unknown: size\)"),
        (ARROW.rename_columns(["id", "day", "at", "prices", "count"]), r"unknown: prices\).*Did you mean 'price'"),
        (ARROW.append_column("id", ARROW["id"]), r"more than once: id"),
        (ARROW.set_column(0, "id", pa.array([1])), r"'id' is int64, but the table has string"),
        (ARROW.set_column(3, "price", pa.array(["1.5"])), r"'price' is string, but the table has double"),
        (pd.DataFrame([ROW], index=[7]), r"reset_index"),
        (pd.DataFrame([[1, 2, 3, 4]], columns=["id", "at", "at", "id"]), r"more than once: at, id"),
        (pd.DataFrame([[1, 2]], columns=[7, 7]), r"more than once: 7"),
        (pd.DataFrame({"id": ["a", "b"], "note": ["x", 1]}), r"'note' have no common Arrow type.*'int'.*astype"),
        (pd.DataFrame({"count": [1, "x"]}), r"'count' have no common Arrow type: Could not convert 'x'"),
    ],
)
def test_columns_that_do_not_fit_are_named(data: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        converted(data)


def test_a_float_is_not_rounded_without_a_word() -> None:
    narrow = RowFormat(
        TableInfo("t", pa.schema([("x", pa.float32())]), (), (), None, 8, hive_style=False, url="", uuid="", table_version=8),
        wire.OPERATION_UPSERT,
    )
    with pytest.raises(SchemaError, match="Cast the column"):
        converted(pa.table({"x": pa.array([0.1], pa.float64())}), narrow)


@pytest.mark.parametrize("data", ["rows", 7, None, b"rows", pa.array([1])])
def test_what_holds_no_rows_is_refused(data: Any) -> None:
    with pytest.raises(FixCall):
        converted(data)


@pytest.mark.parametrize(
    ("kind", "value", "exact"),
    [
        (pa.int64(), 1.5, 2.0),
        (pa.int64(), decimal.Decimal("1.5"), decimal.Decimal(2)),
        (pa.int64(), decimal.Decimal("sNaN"), decimal.Decimal("2e18")),
        (pa.int64(), decimal.Decimal("-Infinity"), decimal.Decimal("-2.00")),
        (pa.int64(), decimal.Decimal("1e999999999"), decimal.Decimal("1e18")),
        (pa.int64(), decimal.Decimal("1e19"), decimal.Decimal(2**63 - 1)),
        (pa.int64(), float("inf"), 2.0**60),
        (pa.date32(), NOON, NOON.replace(hour=0)),
        (pa.timestamp("ms", "UTC"), NOON.replace(microsecond=1), NOON.replace(microsecond=1000)),
        (pa.timestamp("us", "UTC"), 1.5, NOON),
    ],
)
def test_nothing_is_left_out_of_a_value_without_a_word(kind: pa.DataType, value: Any, exact: Any) -> None:
    table = TableInfo("t", pa.schema([("x", kind)]), (), (), None, 8, hive_style=False, url="", uuid="", table_version=8)
    row_format = RowFormat(table, wire.OPERATION_UPSERT)
    assert len(converted([{"x": exact}, {"x": None}], row_format)) == 2
    with pytest.raises(RowError, match="row 1, column 'x'"):
        converted([{"x": exact}, {"x": value}], row_format)


def test_of_a_program_that_makes_a_class_for_each_query_few_classes_are_kept() -> None:
    kept: weakref.WeakSet[type] = weakref.WeakSet()
    for _ in range(2 * MOST_CLASSES):
        kept.add(kind := make_dataclass("Found", ["id"]))
        assert is_record(kind(1))
    gc.collect()
    assert len(kept) <= MOST_CLASSES


def test_rows_of_mixed_kinds_are_refused() -> None:
    with pytest.raises(RowError, match="row 1 is a Order"):
        converted([ROW, Order(**ROW)])
    with pytest.raises(RowError, match="row 0 is a int"):
        converted([1, 2])


def test_a_delete_takes_key_partition_and_ordering_and_leaves_the_rest() -> None:
    wanted = {"id": "a", "day": "2026-01-01", "at": NOON}
    assert converted([ROW], DELETE) == [wanted]
    assert converted([wanted], DELETE) == [wanted]
    assert converted(ARROW, DELETE) == [wanted]
    with pytest.raises(RowError, match="has no 'at'"):
        converted([{"id": "a", "day": "d"}], DELETE)
    with pytest.raises(SchemaError, match="missing: at"):
        converted(ARROW.drop_columns(["at"]), DELETE)


def test_mixed_rows_say_their_operation_and_deletes_need_no_more_than_a_delete() -> None:
    rows = [{"op": "upsert", **ROW}, {"op": "delete", "id": "b", "day": "d", "at": NOON}]
    given, says = detect_operation_type(iter(rows), "op")
    mixed = RowFormat(INFO, wire.OPERATION_MIXED, "op", says)
    assert converted(given, mixed) == [{**ROW, "op": "upsert"}, {**rows[1], "price": None, "count": None}]
    with pytest.raises(RowError, match="operation 'replace'"):
        converted([{"op": "replace", **ROW}], mixed)
    with pytest.raises(RowError, match="no value in 'op'"):
        converted([{"op": None, **ROW}], mixed)
    with pytest.raises(RowError, match="has no 'op'"):
        converted([ROW], mixed)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([{"op": 1}], pa.int8()),
        ([{"op": "upsert"}], pa.string()),
        (pa.table({"op": pa.array([2], pa.int64())}), pa.int8()),
        (pa.table({"op": pa.array(["delete"]).dictionary_encode()}), pa.string()),
        (pl.DataFrame({"op": [1, 2]}), pa.int8()),
        (pd.DataFrame({"op": ["upsert"]}), pa.string()),
        ([Key("a")], pa.string()),
        ([], pa.string()),
    ],
)
def test_operations_are_words_or_numbers(data: Any, kind: pa.DataType) -> None:
    assert detect_operation_type(data, "op")[1] == kind


def test_mixed_arrow_rows_with_numbers_are_converted() -> None:
    table = ARROW.append_column("op", pa.array([2], pa.int64()))
    data, says = detect_operation_type(table, "op")
    assert converted(data, RowFormat(INFO, wire.OPERATION_MIXED, "op", says)) == [{**ROW, "op": 2}]


def test_nested_columns_and_decimals_arrive() -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("tags", pa.list_(pa.field("element", pa.string()))),
            ("where", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
            ("amount", pa.decimal128(10, 2)),
        ]
    )
    info = TableInfo("t", schema, ("id",), (), None, 8, hive_style=False, url="", uuid="", table_version=8)
    row = {"id": 1, "tags": ["a", None], "where": {"x": 1.0, "y": None}, "amount": decimal.Decimal("1.25")}
    nested = RowFormat(info, wire.OPERATION_UPSERT)
    assert converted([row], nested) == [row]
    assert converted(pl.DataFrame([row], schema_overrides={"amount": pl.Decimal(10, 2)}), nested) == [row]
    with pytest.raises(RowError, match="column 'amount'"):
        converted([{**row, "amount": decimal.Decimal("1.255")}], nested)


def test_a_schema_can_be_said_in_three_ways() -> None:
    wanted = pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("day", pa.string(), nullable=False),
            pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("price", pa.float64()),
            pa.field("count", pa.int64(), nullable=False),
        ]
    )
    assert schema_of(wanted) is wanted
    assert schema_of(Order) == wanted
    pairs = [("id", str), ("day", "string"), ("at", pa.timestamp("us", tz="UTC")), ("price", float), ("count", "int64")]
    assert schema_of(pairs) == pa.schema([pa.field(field.name, field.type) for field in wanted])


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Item(NamedTuple):
    sku: str
    count: int | None


@dataclass
class Basket:
    id: uuid.UUID
    color: Color
    tags: list[str]
    items: list[Item | None] | None
    first: Item
    props: dict[str, int | None]
    amount: Annotated[decimal.Decimal, pa.decimal128(10, 2)]


def test_a_class_of_rows_is_a_schema_with_nested_columns() -> None:
    item = pa.struct([pa.field("sku", pa.string(), nullable=False), pa.field("count", pa.int64())])
    wanted: list[tuple[str, pa.DataType, bool]] = [
        ("id", pa.string(), False),
        ("color", pa.string(), False),
        ("tags", pa.list_(pa.field("element", pa.string(), nullable=False)), False),
        ("items", pa.list_(pa.field("element", item)), True),
        ("first", item, False),
        ("props", pa.map_(pa.string(), pa.field("value", pa.int64())), False),  # type: ignore[call-overload]
        ("amount", pa.decimal128(10, 2), False),
    ]
    assert schema_of(Basket) == pa.schema([pa.field(name, kind, nullable=nullable) for name, kind, nullable in wanted])
    basket = Basket(uuid.UUID(int=1), Color.RED, ["a"], [Item("b", 1), None], Item("c", None), {"d": 1}, decimal.Decimal("1.25"))
    info = TableInfo("t", schema_of(Basket), ("id",), (), None, 8, hive_style=False, url="", uuid="", table_version=8)
    (row,) = converted([basket], RowFormat(info, wire.OPERATION_UPSERT))
    assert (row["id"], row["color"], row["items"]) == (str(uuid.UUID(int=1)), "red", [{"sku": "b", "count": 1}, None])


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (decimal.Decimal, "Say how many digits: pa.decimal128"),
        (list[complex], r"'a\[\]' has no Arrow type"),
        (list[int | str], r"'a\[\]' has several types"),
        (list, "a list or dict of one"),
        (datetime.timedelta, "has no Arrow type"),
    ],
)
def test_a_type_that_a_column_cannot_have_is_refused_with_what_can_be_done(kind: object, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{says}"):
        schema_of([("a", kind)])


@pytest.mark.parametrize("schema", [int, [("a", "no type")], [("a", complex)], [("a", int | str)]])
def test_a_schema_that_is_none_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        schema_of(schema)


@pytest.mark.parametrize(("name", "legal"), [("size", True), ("a b", False), ("0", False), ("_hoodie_x", False), ("", False)])
def test_only_a_name_that_a_column_may_have_is_advised_to_be_added(name: str, legal: bool) -> None:
    assert ("--add" in how_to_add("t", name)) == legal
