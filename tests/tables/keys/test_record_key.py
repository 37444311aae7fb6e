import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_tables.errors import FixCall, NullKeyError, OptionError, SchemaError, UnsupportedTypeError
from headgate_tables.hudi.keys.record_key import KeySpec, read_keys
from support.key_texts import record_buckets


def keys(spec: KeySpec, **columns: pa.Array) -> list[str]:
    return read_keys(pa.table(columns), spec).keys.to_pylist()


# Each as Spark with Hudi 1.2.0 wrote it, by upsert and by bulk insert alike.
ONE_FIELD = [
    (pa.string(), ["plain", "a:b,c"], ["plain", "a:b,c"]),
    (pa.large_string(), ["é😀"], ["é😀"]),
    (pa.int8(), [-128, 127], ["-128", "127"]),
    (pa.int16(), [-32768], ["-32768"]),
    (pa.int32(), [-2147483648, 0], ["-2147483648", "0"]),
    (pa.int64(), [-(2**63), 2**63 - 1], ["-9223372036854775808", "9223372036854775807"]),
    (pa.bool_(), [True, False], ["true", "false"]),
    (
        pa.date32(),
        [dt.date(2026, 11, 20), dt.date(1969, 1, 5), dt.date(9999, 12, 31)],
        ["2026-11-20", "1969-01-05", "9999-12-31"],
    ),
    (
        pa.decimal128(18, 4),
        [Decimal("1.5"), Decimal("-0.0001"), Decimal("12345678901234.1234"), Decimal(0)],
        ["1.5000", "-0.0001", "12345678901234.1234", "0.0000"],
    ),
    (pa.decimal128(38, 10), [Decimal("1.5"), Decimal("-1E-10"), Decimal(0)], ["1.5000000000", "-1E-10", "0E-10"]),
]


@pytest.mark.parametrize(
    ("of", "values", "expected"), ONE_FIELD, ids=lambda each: str(each) if isinstance(each, pa.DataType) else ""
)
def test_one_field_is_the_text_of_its_value(of: pa.DataType, values: list, expected: list[str]) -> None:
    array = pa.array(values, of)
    assert keys(KeySpec(("k",)), k=array) == expected
    assert keys(KeySpec(("k",)), k=array.dictionary_encode()) == expected
    assert keys(KeySpec(("k",)), k=pa.chunked_array([array[:1].dictionary_encode(), array[1:].dictionary_encode()])) == expected


# Rows that Spark with Hudi 1.2.0 upserted into 64 buckets, and the key and bucket that it gave them.
SPARK_ROWS = [
    (("plain", dt.date(2026, 11, 20), 1, True, Decimal("1.5"), "u1"), "s:plain,d:2026-11-20,i:1,b:true,m:1.5000,u:u1", 24),
    ((None, dt.date(1969, 1, 5), -1, False, Decimal("-0.0001"), "u2"), "s:__null__,d:1969-01-05,i:-1,b:false,m:-0.0001,u:u2", 32),
    (("", None, None, None, None, "é😀"), "s:__empty__,d:__null__,i:__null__,b:__null__,m:__null__,u:é😀", 13),
    (("a,b", dt.date(2026, 11, 20), 7, None, Decimal(0), "x"), "s:a,b,d:2026-11-20,i:7,b:__null__,m:0.0000,u:x", 45),
    (
        ("10:30", dt.date(2026, 11, 20), 7, True, Decimal("12345678901234.1234"), "11:45:00"),
        "s:10:30,d:2026-11-20,i:7,b:true,m:12345678901234.1234,u:11:45:00",
        12,
    ),
    (("a:b,c", dt.date(2026, 1, 1), 0, True, None, ""), "s:a:b,c,d:2026-01-01,i:0,b:true,m:__null__,u:__empty__", 33),
    (
        ("a,b:c", dt.date(2026, 1, 1), 2147483647, False, Decimal(2), None),
        "s:a,b:c,d:2026-01-01,i:2147483647,b:false,m:2.0000,u:__null__",
        58,
    ),
    (("日本", None, -2147483648, None, None, "y,z"), "s:日本,d:__null__,i:-2147483648,b:__null__,m:__null__,u:y,z", 39),
    (("x,i:5", dt.date(2026, 1, 1), 5, False, Decimal(2), "q"), "s:x,i:5,d:2026-01-01,i:5,b:false,m:2.0000,u:q", 7),
]


def test_several_fields_give_the_key_and_bucket_that_spark_gave() -> None:
    schema = pa.schema(
        {"s": pa.string(), "d": pa.date32(), "i": pa.int32(), "b": pa.bool_(), "m": pa.decimal128(18, 4), "u": pa.string()}
    )
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row, _, _ in SPARK_ROWS], schema)
    spec = KeySpec(tuple(schema.names))
    records = read_keys(table, spec)
    assert records.keys.to_pylist() == [key for _, key, _ in SPARK_ROWS]
    assert record_buckets(records, spec, 64) == [bucket for _, _, bucket in SPARK_ROWS]


def test_the_fields_stand_in_the_order_of_the_table() -> None:
    columns = {"a": pa.array([1]), "b": pa.array(["x"])}
    assert keys(KeySpec(("b", "a")), **columns) == ["b:x,a:1"]


def test_a_field_may_be_missing_in_every_row_if_another_is_there() -> None:
    columns = {"a": pa.array([None, ""], pa.string()), "b": pa.array([1, 2])}
    assert keys(KeySpec(("a", "b")), **columns) == ["a:__null__,b:1", "a:__empty__,b:2"]
    assert keys(KeySpec(("b", "a")), **columns) == ["b:1,a:__null__", "b:2,a:__empty__"]


def test_a_single_field_carries_its_name_where_the_table_says_so() -> None:
    assert keys(KeySpec(("order_no",), prefixed=True), order_no=pa.array([9000000074])) == ["order_no:9000000074"]


def test_no_rows_give_no_keys() -> None:
    for fields in (("a",), ("a", "b")):
        assert keys(KeySpec(fields), a=pa.array([], pa.int32()), b=pa.array([], pa.string())) == []


def test_a_null_or_empty_key_is_refused_with_its_column_first_row_and_count() -> None:
    expected = r"column 'id' is null or empty in 3 of 6 rows, first in row 2\. Give these rows a key"
    for values in (pa.array(["a", "b", None, "", "c", None]), pa.array(["a", "b", None, "", "c", None]).dictionary_encode()):
        with pytest.raises(NullKeyError, match=expected):
            keys(KeySpec(("id",)), id=values)
    with pytest.raises(NullKeyError, match="'id' is null or empty in 1 of 2 rows, first in row 1"):
        keys(KeySpec(("id",), prefixed=True), id=pa.array([1, None]))


def test_several_fields_that_are_all_missing_are_refused() -> None:
    with pytest.raises(NullKeyError, match="columns 'a', 'b' are all null or empty in 1 of 3 rows, first in row 2"):
        keys(KeySpec(("a", "b")), a=pa.array(["x", None, ""]), b=pa.array([None, 1, None]))


@pytest.mark.parametrize("a", ["__null__", "__empty__", "x,b:y"])
def test_a_value_that_makes_another_keys_text_is_refused(a: str) -> None:
    with pytest.raises(FixCall, match=f"column 'a' holds '{a}' in row 1, which Hudi's key text cannot tell"):
        keys(KeySpec(("a", "b")), a=pa.array(["fine", a]), b=pa.array(["x", "y"]))
    assert keys(KeySpec(("a",)), a=pa.array([a])) == [a]


awkward = st.none() | st.text(st.sampled_from("ab,:_"), max_size=8) | st.sampled_from(["__null__", "__empty__", "x,b:", ",c:y"])


@pytest.mark.slow
@settings(deadline=None, max_examples=500)
@given(st.lists(st.tuples(awkward, awkward, awkward), min_size=2, max_size=2))
def test_two_different_keys_never_have_one_text(rows: list[tuple[str | None, ...]]) -> None:
    table = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate("abc")}
    try:
        first, second = keys(KeySpec(("a", "b", "c")), **table)
    except FixCall:
        return
    assert (first == second) == (rows[0] == rows[1])


@settings(deadline=None)
@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_a_decimal_has_the_text_of_javas_bigdecimal(unscaled: int, scale: int) -> None:
    value = Decimal(f"{unscaled}E-{scale}")
    assert keys(KeySpec(("k",)), k=pa.array([value], pa.decimal128(38, scale))) == [str(value)]


@pytest.mark.parametrize(
    "of",
    [pa.float64(), pa.float32(), pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.binary(), pa.time64("us"), pa.uint32()],
    ids=str,
)
def test_a_type_without_a_certain_text_is_refused(of: pa.DataType) -> None:
    for values in (pa.nulls(1, of), pa.nulls(1, pa.dictionary(pa.int8(), of))):
        with pytest.raises(UnsupportedTypeError, match=r"cannot be the type of record key column 'k'.*Cast the column to string"):
            keys(KeySpec(("k",)), k=values)


def test_a_date_that_java_prints_otherwise_is_refused() -> None:
    for day in (-719163, 2932897):
        with pytest.raises(FixCall, match="record key column 'k' holds a date outside the years 1 to 9999"):
            keys(KeySpec(("k",)), k=pa.array([0, day], pa.int32()).cast(pa.date32()))
    assert keys(KeySpec(("k",)), k=pa.array([-719162], pa.int32()).cast(pa.date32())) == ["0001-01-01"]


def test_a_missing_and_a_doubled_column_are_refused() -> None:
    with pytest.raises(SchemaError, match="'id' is not in the data, which has a, b"):
        keys(KeySpec(("id",)), a=pa.array([1]), b=pa.array([1]))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["id", "id"])
    with pytest.raises(SchemaError, match="'id' is in the data 2 times"):
        read_keys(twice, KeySpec(("id",)))


@pytest.mark.parametrize("fields", [(), ("a", "a"), ("a:b",), ("a,b",), ("",)])
def test_fields_that_a_key_cannot_name_are_refused(fields: tuple[str, ...]) -> None:
    with pytest.raises(OptionError, match="record key field"):
        KeySpec(fields)
