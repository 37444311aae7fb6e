"""JSON lines of every kind of column: read back by Python they are the rows; and the forms that programs rely on."""

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_cli.table.json_lines import json_lines
from support.kinds import kinds, maybe, texts
from support.strategies import effort
from support.type_cases import CASES

NAN, INF = math.nan, math.inf


def one_column(values: "pa.Array[Any]") -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([values], names=["x"])


def value_texts(values: "pa.Array[Any]") -> list[str]:
    """What the lines of a column hold behind its name."""
    lines = json_lines(one_column(values)).decode().split("\n")
    assert lines.pop() == ""
    assert all(line.startswith('{"x":') and line.endswith("}") for line in lines)
    return [line[5:-1] for line in lines]


def as_read(value: Any, kind: Any) -> Any:
    """What Python reads from the JSON of a value of the type."""
    if value is None:
        return None
    if isinstance(kind, pa.DictionaryType):
        return as_read(value, kind.value_type)
    if isinstance(kind, pa.StructType):
        return {field.name: as_read(value[field.name], field.type) for field in kind}
    if isinstance(kind, pa.MapType):
        return {key: as_read(item, kind.item_type) for key, item in value}
    if pa.types.is_nested(kind):
        return [as_read(item, kind.value_type) for item in value]
    return flat_as_read(value, kind)


def flat_as_read(value: Any, kind: Any) -> Any:
    match value:
        case float():
            short = float(str(np.float32(value))) if kind == pa.float32() else value
            return short if math.isfinite(value) else None
        case Decimal():
            return f"{value:.{kind.scale}f}"
        case bytes():
            return value.hex()
        case dt.datetime():
            zone = "+00:00" if isinstance(kind, pa.TimestampType) and kind.tz else ""
            date, time = str(value.date()), value.time().isoformat(digits(value))
            return f"{date}T{time}{zone}" if zone else f"{date} {time}"
        case dt.time():
            return value.isoformat(digits(value))
        case dt.date():
            return value.isoformat()
        case _:
            return value


def digits(value: dt.datetime | dt.time) -> str:
    if value.microsecond % 1000:
        return "microseconds"
    return "milliseconds" if value.microsecond else "seconds"


def assert_reads(batch: pa.RecordBatch, rows: list[dict[str, Any]]) -> None:
    """By repr: ``==`` tells neither 1 from 1.0 and True, nor 0.0 from -0.0, and takes members in any order."""
    expected = [{field.name: as_read(row[field.name], field.type) for field in batch.schema} for row in rows]
    lines = json_lines(batch)
    assert [repr(json.loads(line)) for line in lines.splitlines()] == [repr(row) for row in expected]
    assert lines.count(b"\n") == len(rows)


names = texts | st.text('a"\\\n\x1f', max_size=3)


@st.composite
def batches(draw: Any) -> tuple[pa.RecordBatch, list[dict[str, Any]]]:
    """A stretch of more rows of a table, and the values that it was made of."""
    columns = draw(st.dictionaries(names, st.tuples(kinds, st.booleans()), min_size=1, max_size=4))
    count = draw(st.integers(1, 6))
    values = {
        name: [kind.stored_value(draw(maybe(kind.values, nullable))) for _ in range(count)]
        for name, (kind, nullable) in columns.items()
    }
    arrays = [pa.array(values[name], kind.stored) for name, (kind, _) in columns.items()]
    first = draw(st.integers(0, count))
    length = draw(st.integers(0, count - first))
    rows = [{name: values[name][row] for name in columns} for row in range(first, first + length)]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns)).slice(first, length), rows


@pytest.mark.slow
@effort(300)
@given(made=batches())
def test_lines_of_any_columns_and_any_stretch_of_them_read_as_the_rows(
    made: tuple[pa.RecordBatch, list[dict[str, Any]]],
) -> None:
    assert_reads(*made)


@pytest.mark.parametrize("name", CASES)
def test_values_at_the_edges_of_each_type_and_any_stretch_of_them_read_as_the_rows(name: str) -> None:
    case = CASES[name]
    batch = one_column(pa.array(case.values, case.given))
    for first in range(6):
        for stop in range(first, 6):
            assert_reads(batch.slice(first, stop - first), [{"x": value} for value in case.values[first:stop]])


@pytest.mark.parametrize("name", CASES)
def test_a_column_of_nulls_alone_is_null_in_each_line(name: str) -> None:
    for kind in (CASES[name].given, pa.list_(CASES[name].given)):
        assert value_texts(pa.nulls(2, kind)) == ["null", "null"]
    assert value_texts(pa.array([[None, None]], pa.list_(CASES[name].given))) == ["[null,null]"]
    assert json_lines(one_column(pa.nulls(0, CASES[name].given))) == b""


FORMS: dict[str, tuple["pa.Array[Any]", list[str]]] = {
    "bool": (pa.array([True, False, None]), ["true", "false", "null"]),
    "double": (
        pa.array([0.1, 1.0, -0.0, 1e-7, 1e9, 123456.5, 1e300, 5e-324, NAN, INF, -INF, None]),
        ["0.1", "1.0", "-0.0", "1e-7", "1000000000.0", "123456.5", "1e+300", "5e-324", "null", "null", "null", "null"],
    ),
    "float": (pa.array([0.1, 16777216.0, 1 / 3, NAN], pa.float32()), ["0.1", "16777216.0", "0.33333334", "null"]),
    "decimal": (pa.array([Decimal("-1.50"), Decimal("0.00"), None]), ['"-1.50"', '"0.00"', "null"]),
    "small decimal": (
        pa.array([Decimal("-0.0000000001"), Decimal(0), Decimal("12.5"), None], pa.decimal128(38, 10)),
        ['"-0.0000000001"', '"0.0000000000"', '"12.5000000000"', "null"],
    ),
    "widest decimal": (pa.array([None, Decimal("-0.00000001")], pa.decimal256(76, 8)), ["null", '"-0.00000001"']),
    "text": (
        pa.array(['"\\\n\t\r\b\f\x00\x1f', "/\x7fä😀\u2028", None]),
        [r'"\"\\\n\t\r\b\f\u0000\u001f"', '"/\x7fä😀\u2028"', "null"],
    ),
    "binary": (pa.array([b"\x00\xff", b"", None]), ['"00ff"', '""', "null"]),
    "date": (pa.array([dt.date(1, 1, 1), None]), ['"0001-01-01"', "null"]),
    "date64": (pa.array([dt.date(2026, 1, 2), None], pa.date64()), ['"2026-01-02"', "null"]),
    "time": (pa.array([0, 1, 43_200_000, None], pa.time32("ms")), ['"00:00:00"', '"00:00:00.001"', '"12:00:00"', "null"]),
    "seconds": (pa.array([0, None], pa.timestamp("s", "UTC")), ['"1970-01-01T00:00:00+00:00"', "null"]),
    "microseconds": (
        pa.array([0, -1, 120_000, 10**7, None], pa.timestamp("us")),
        [
            '"1970-01-01 00:00:00"',
            '"1969-12-31 23:59:59.999999"',
            '"1970-01-01 00:00:00.120"',
            '"1970-01-01 00:00:10"',
            "null",
        ],
    ),
    "nanoseconds": (
        pa.array([1, 1000, 10**6, 10**9, None], pa.timestamp("ns", "Europe/Paris")),
        [
            '"1970-01-01T00:00:00.000000001+00:00"',
            '"1970-01-01T00:00:00.000001+00:00"',
            '"1970-01-01T00:00:00.001+00:00"',
            '"1970-01-01T00:00:01+00:00"',
            "null",
        ],
    ),
    "list": (pa.array([["a", None], [], None]), ['["a",null]', "[]", "null"]),
    "struct": (pa.array([{"a": 1, "b": None}, None]), ['{"a":1,"b":null}', "null"]),
    "struct of nothing": (pa.array([{}, None], pa.struct([])), ["{}", "null"]),
    "map": (
        pa.array([[('"', dt.date(1970, 1, 1)), ("b", None)], [], None], pa.map_(pa.string(), pa.date32())),
        [r'{"\"":"1970-01-01","b":null}', "{}", "null"],
    ),
    "map with a null list of a fixed size": (
        pa.array(
            [[("a", {"f": ["x", "y"]}), ("b", {"f": None})], None],
            pa.map_(pa.string(), pa.struct([("f", pa.list_(pa.field("item", pa.string(), nullable=False), 2))])),
        ),
        ['{"a":{"f":["x","y"]},"b":{"f":null}}', "null"],
    ),
    "dictionary": (pa.array(["a", None, "a"]).dictionary_encode(), ['"a"', "null", '"a"']),
    "dictionary of numbers": (pa.array([1.0, None]).dictionary_encode(), ["1.0", "null"]),
    "empty dictionary": (
        pa.StructArray.from_arrays(
            [pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array([], pa.string()), safe=False)],
            names=["d"],
            mask=pa.array([True, True]),
        ),
        ["null", "null"],
    ),
    "dictionary with a null": (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])), ['"a"', "null"]),
    "nothing": (pa.nulls(1), ["null"]),
}


@pytest.mark.parametrize("name", FORMS)
def test_each_kind_of_value_has_its_form(name: str) -> None:
    values, expected = FORMS[name]
    assert value_texts(values) == expected
    assert value_texts(values.slice(1)) == expected[1:]
    kept = values.filter(values.is_valid())
    assert value_texts(kept) == [text for text, valid in zip(expected, values.is_valid().to_pylist(), strict=True) if valid]


def test_a_line_has_the_columns_in_their_order_without_blanks() -> None:
    batch = pa.RecordBatch.from_pydict({"b": ["x", "y"], 'a"\n': [1, 2], "ä": [None, "z"]})
    assert json_lines(batch).decode() == '{"b":"x","a\\"\\n":1,"ä":null}\n{"b":"y","a\\"\\n":2,"ä":"z"}\n'


def test_every_character_below_128_reads_back_alone_and_beside_each_that_has_an_escape() -> None:
    all_texts = [chr(code) for code in range(128)]
    all_texts += [first + second for first in '"\\\n\x00nu' for second in all_texts]
    assert [json.loads(line)["x"] for line in json_lines(one_column(pa.array(all_texts))).split(b"\n")[:-1]] == all_texts
    for text in all_texts:
        assert value_texts(pa.array([text])) == [json.dumps(text, ensure_ascii=False)]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_texts_are_escaped_however_arrow_keeps_them(kind: pa.DataType) -> None:
    assert value_texts(pa.array(['a"', None], kind)) == [r'"a\""', "null"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)], ids=str)
def test_binary_values_are_hexadecimal_however_arrow_keeps_them(kind: pa.DataType) -> None:
    assert value_texts(pa.array([b"a\xff", None, b"b\x00"], kind)) == ['"61ff"', "null", '"6200"']


def test_what_arrow_keeps_below_a_null_is_not_written() -> None:
    """Arrow may keep any value there, and any items of a list."""
    bitmap = pa.py_buffer(bytes([0b101]))
    hidden = pa.array(["a", "hidden", "c"])
    raw = hidden.cast(pa.binary())
    items = pa.array([["a"], ["hidden", "hidden"], ["c"]])
    pairs = pa.array([[(text, text)] for text in hidden.to_pylist()], pa.map_(pa.string(), pa.string()))
    structs = pa.StructArray.from_arrays([hidden], names=["s"], mask=pa.array([False, True, False]))
    fixed = pa.FixedSizeListArray.from_arrays(hidden, 1, mask=pa.array([False, True, False]))
    columns: dict[str, tuple[Any, str, str]] = {
        "text": (pa.Array.from_buffers(pa.string(), 3, [bitmap, *hidden.buffers()[1:]]), '"a"', '"c"'),
        "binary": (pa.Array.from_buffers(pa.binary(), 3, [bitmap, *raw.buffers()[1:]]), '"61"', '"63"'),
        "list": (pa.Array.from_buffers(items.type, 3, [bitmap, items.buffers()[1]], children=[items.values]), '["a"]', '["c"]'),
        "map": (
            pa.Array.from_buffers(pairs.type, 3, [bitmap, pairs.buffers()[1]], children=[pairs.values]),
            '{"a":"a"}',
            '{"c":"c"}',
        ),
        "struct": (structs, '{"s":"a"}', '{"s":"c"}'),
        "fixed": (fixed, '["a"]', '["c"]'),
    }
    for values, first, last in columns.values():
        assert value_texts(values) == [first, "null", last]
        assert value_texts(values.slice(1)) == ["null", last]
