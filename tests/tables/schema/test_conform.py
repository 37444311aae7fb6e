"""Rows of older files, and rows of callers, in the table's schema."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables.errors import SchemaError, UnsupportedTableError
from headgate_tables.hudi.schema.canonical import table_schema
from headgate_tables.hudi.schema.conform import conform, stored_rows
from support.golden_logs import golden_files

DATA = pa.table({"id": ["a", "b"], "n": pa.array([1, None], pa.int32())})


def one(array: pa.Array, target: pa.DataType) -> list[object]:
    """The array as a one-column older file, conformed."""
    result = conform(pa.table({"c": array}), pa.schema([("c", target)]), "f")
    result.validate(full=True)
    assert result.schema == pa.schema([("c", target)])
    return result["c"].to_pylist()


def test_columns_are_ordered_by_name_added_as_null_and_dropped() -> None:
    target = pa.schema([("new", pa.float64()), ("n", pa.int32())])
    assert conform(DATA, target, "f") == pa.table({"new": pa.nulls(2, pa.float64()), "n": pa.array([1, None], pa.int32())})


def test_a_date_of_milliseconds_with_a_time_of_day_is_refused() -> None:
    late = pa.Array.from_buffers(pa.date64(), 1, [None, pa.py_buffer((86_400_000 + 5).to_bytes(8, "little"))])
    for given, stored in ((late, pa.date32()), (pa.StructArray.from_arrays([late], ["d"]), pa.struct([("d", pa.date32())]))):
        with pytest.raises(SchemaError, match="would lose data"):
            stored_rows(pa.table({"c": given}), pa.schema([("c", stored)]))


def test_rows_that_fit_are_not_touched() -> None:
    assert conform(DATA, DATA.schema, "f") is DATA


@pytest.mark.parametrize(
    ("array", "target", "expected"),
    [
        (pa.array([1, None], pa.int32()), pa.int64(), [1, None]),
        (pa.array([2**62 + 1]), pa.float32(), [2.0**62]),
        (pa.array([7]), pa.float64(), [7.0]),
        (pa.array([0.5], pa.float32()), pa.float64(), [0.5]),
        (pa.array(["ä", None]), pa.binary(), ["ä".encode(), None]),
        (pa.array([b"x"]), pa.string(), ["x"]),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), pa.decimal128(18, 4), [Decimal("1.5000")]),
        (
            pa.array([1500], pa.timestamp("ms", tz="UTC")),
            pa.timestamp("us", tz="UTC"),
            [dt.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=dt.UTC)],
        ),
        (
            pa.array([1500], pa.timestamp("ms")),
            pa.timestamp("ms", tz="UTC"),
            [dt.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=dt.UTC)],
        ),
        (pa.array(["x", None, "x"]).dictionary_encode(), pa.string(), ["x", None, "x"]),
    ],
)
def test_promotions_of_hudi(array: pa.Array, target: pa.DataType, expected: list[object]) -> None:
    assert one(array, target) == expected


NESTED = [
    ([[1, None], None, [], [3]], pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int64()))),
    ([[1], None, [], [3]], pa.list_(pa.field("array", pa.int32(), nullable=False)), pa.list_(pa.field("element", pa.int64()))),
    ([[("k", 1)], None, [], [("l", None)]], pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())),
    ([{"a": 1}, None, {"a": None}, {"a": 3}], pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64())])),
    ([[{"a": 1}], None, [], [None]], pa.list_(pa.struct([("a", pa.int32())])), pa.list_(pa.struct([("a", pa.int64())]))),
    (
        [{"l": [1]}, None, {"l": None}, {"l": [3]}],
        pa.struct([("l", pa.list_(pa.int32()))]),
        pa.struct([("l", pa.list_(pa.int64()))]),
    ),
]


@pytest.mark.parametrize(("values", "source", "target"), NESTED)
def test_nested_values_are_promoted_inside_whatever_part_of_a_file_is_read(
    values: list[object], source: pa.DataType, target: pa.DataType
) -> None:
    array = pa.array(values, source)
    for start, stop in ((0, 4), (1, 4), (1, 3), (3, 4), (2, 2)):
        assert one(array.slice(start, stop - start), target) == values[start:stop]


def test_struct_fields_go_by_name() -> None:
    old = pa.array([{"a": 1, "gone": 0, "b": "x"}, None, {"a": 2, "gone": 0, "b": None}])
    target = pa.struct([("b", pa.string()), ("new", pa.int32()), ("a", pa.int64())])
    assert one(old, target) == [{"b": "x", "new": None, "a": 1}, None, {"b": None, "new": None, "a": 2}]


def test_two_level_lists_of_spark_are_read() -> None:
    base = next(content for path, content in golden_files("spark/h120_v8_mor_types_avro") if path.endswith(".parquet"))
    rows = pq.read_table(pa.BufferReader(base), columns=["c_arr", "c_arrs", "c_mapn"])
    assert rows.schema.field("c_arr").type.value_field.name == "array"
    target = table_schema(rows.schema)
    conformed = conform(rows, target, "f")
    conformed.validate(full=True)
    assert conformed.schema == target
    assert conformed.to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), pa.int32()),
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.int64()),
        (pa.string(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.decimal128(18, 4), pa.decimal128(18, 2)),
        (pa.decimal128(18, 4), pa.decimal128(18, 5)),
        (pa.list_(pa.int64()), pa.list_(pa.int32())),
        (pa.int32(), pa.struct([("a", pa.int32())])),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.bool_(), pa.int32()),
    ],
)
def test_any_other_change_of_type_names_file_and_column(source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(UnsupportedTableError, match=r"old\.parquet: column 'c(\.element)?' is .* cannot become"):
        conform(pa.table({"c": pa.nulls(1, source)}), pa.schema([("c", target)]), "old.parquet")


def test_a_required_column_cannot_be_made_up() -> None:
    with pytest.raises(UnsupportedTableError, match="column 'c' is missing"):
        conform(DATA, pa.schema([pa.field("c", pa.int32(), nullable=False)]), "f")


def test_bytes_that_are_not_text_are_refused() -> None:
    with pytest.raises(UnsupportedTableError, match=r"f: .*UTF8"):
        one(pa.array([b"\xff"]), pa.string())


# --- rows of callers ---


def test_other_arrow_forms_of_the_same_values_are_stored() -> None:
    given = pa.table(
        {
            "i": pa.array([1, None], pa.int8()),
            "s": pa.array(["x", None], pa.large_string()),
            "v": pa.array(["x", None], pa.string_view()),
            "d": pa.array(["x", None]).dictionary_encode(),
            "l": pa.array([[1], None], pa.large_list(pa.int16())),
            "f": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
            "t": pa.array([dt.time(0, 0, 1), None], pa.time64("us")),
            "m": pa.array([dt.time(0, 0, 1), None], pa.time32("ms")),
            "z": pa.array([dt.datetime(2026, 1, 1), None], pa.timestamp("us")),  # noqa: DTZ001 - a time without zone is the point
            "n": pa.nulls(2),
            "u": pa.array([b"0123456789abcdef", None], pa.binary(16)).cast(pa.uuid()),
        }
    )
    schema = table_schema(given.drop_columns(["n"]).schema.append(pa.field("n", pa.int64())))
    stored = stored_rows(given, schema)
    stored.validate(full=True)
    assert stored.schema == schema
    assert stored.slice(0, 1).to_pylist() == [
        {
            "i": 1,
            "s": "x",
            "v": "x",
            "d": "x",
            "l": [1],
            "f": [1, 2],
            "t": 1_000_000,
            "m": 1000,
            "z": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
            "u": b"0123456789abcdef",
            "n": None,
        }
    ]
    assert set(stored.slice(1).to_pylist()[0].values()) == {None}


def test_the_columns_must_be_the_tables() -> None:
    with pytest.raises(SchemaError, match=r"missing: n; unknown: m\b.*exactly these: id, n"):
        stored_rows(DATA.rename_columns(["id", "m"]), DATA.schema)
    with pytest.raises(SchemaError, match="missing: n"):
        stored_rows(DATA.select(["id"]), DATA.schema)


def test_a_column_given_twice_is_refused() -> None:
    with pytest.raises(SchemaError, match="more than once: n"):
        stored_rows(pa.table([DATA["id"], DATA["n"], DATA["n"]], names=["id", "n", "n"]), DATA.schema)


@pytest.mark.parametrize("given", [pa.int64(), pa.float32(), pa.string(), pa.uint8(), pa.bool_()])
def test_a_type_that_could_lose_values_is_refused(given: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=f"Column 'n' is {given} and cannot become int32"):
        stored_rows(DATA.set_column(1, "n", pa.nulls(2, given)), DATA.schema)


SHORT: list[tuple[str, pa.DataType]] = [("at", pa.timestamp("ms", "UTC")), ("code", pa.binary(4))]


def as_spark_has_them(at: dt.datetime, code: bytes) -> pa.Table:
    """Spark knows microseconds alone, and no bytes of a fixed size."""
    return pa.table({"at": pa.array([at, None], pa.timestamp("us", "UTC")), "code": pa.array([code, None], pa.binary())})


def test_values_of_a_wider_type_are_taken_where_they_fit_and_refused_where_they_do_not() -> None:
    at = dt.datetime(2026, 1, 1, 0, 0, 0, 5000, dt.UTC)
    stored = stored_rows(as_spark_has_them(at, b"abcd"), pa.schema(SHORT))
    assert stored.schema == pa.schema(SHORT)
    assert stored.to_pylist() == [{"at": at, "code": b"abcd"}, {"at": None, "code": None}]
    for wrong in (as_spark_has_them(at.replace(microsecond=5001), b"abcd"), as_spark_has_them(at, b"abcde")):
        with pytest.raises(SchemaError, match="A value does not fit its column"):
            stored_rows(wrong, pa.schema(SHORT))


@pytest.mark.parametrize("wrap", [lambda kind: kind, pa.list_, lambda kind: pa.map_(pa.string(), kind)], ids=["", "list", "map"])
def test_a_field_that_the_table_lacks_is_refused_at_any_depth_and_one_that_is_missing_is_null(
    wrap: Callable[[pa.DataType], pa.DataType],
) -> None:
    def stored(*names: str) -> pa.Table:
        given = wrap(pa.struct([(name, pa.int64()) for name in names]))
        return stored_rows(pa.table([pa.nulls(2, given)], names=["s"]), pa.schema([("s", wrap(pa.struct(fields)))]))

    fields: list[tuple[str, pa.DataType]] = [("a", pa.int64()), ("b", pa.int64())]
    assert stored("b").num_rows == 2
    for unknown in ("A", "c"):
        with pytest.raises(SchemaError, match=rf"The fields of s(\.element|\.value)? are not .*unknown: {unknown}\b.*has a, b"):
            stored("a", "b", unknown)


def test_text_is_not_taken_from_bytes() -> None:
    with pytest.raises(SchemaError, match="Column 'id' is binary"):
        stored_rows(DATA.set_column(0, "id", pa.array([b"a", b"b"])), DATA.schema)


def test_null_in_a_required_column_is_refused() -> None:
    required = pa.schema([("id", pa.string()), pa.field("n", pa.int32(), nullable=False)])
    with pytest.raises(SchemaError, match="Column 'n' holds null"):
        stored_rows(DATA, required)
