"""Every kind of value that programs have, in every kind of column: it arrives, as hudi-rs reads it, or is refused by name.

``ARRIVES`` and ``REFUSED`` are the table of the kinds that we know; test_no_value_changes.py draws others.
"""

import array
import dataclasses
import datetime as dt
import enum
import pathlib
import re
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import attrs
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pydantic
import pytest

from headgate.errors import RowError, SchemaError
from headgate.rows import RowFormat
from headgate_proto.api.v1 import ingest_pb2 as wire
from support.every_kind import INFO, SCHEMA, SpotAttrs, SpotData, SpotModel, SpotTuple, read_back, row

NOON = dt.datetime(2026, 1, 2, 12, 30, 15, 123456, tzinfo=dt.UTC)
MIDNIGHT = NOON.replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
BERLIN = ZoneInfo("Europe/Berlin")
ODD = dt.timezone(dt.timedelta(microseconds=250_123))
IDENTITY = uuid.UUID("12345678-1234-5678-1234-567812345678")


class Color(enum.Enum):
    RED = "red"
    NUMBER = 7


class Word(enum.StrEnum):
    YES = "yes"


class Number(enum.IntEnum):
    TWO = 2


class ExtraModel(pydantic.BaseModel, extra="allow"):
    x: float
    y: int


class OwnText(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


ARRIVES: list[tuple[str, Any, Any]] = [
    ("flag", True, True),
    ("flag", np.bool_(False), False),
    ("flag", pa.scalar(True), True),
    ("small", 2**31 - 1, 2**31 - 1),
    ("small", np.int8(-5), -5),
    ("small", np.uint16(5), 5),
    ("small", Number.TWO, 2),
    ("small", 3.0, 3),
    ("big", -(2**63), -(2**63)),
    ("big", np.int64(2**62), 2**62),
    ("big", np.float64(2.0), 2),
    ("big", Decimal("5.00"), 5),
    ("big", Color.NUMBER, 7),
    ("big", pa.scalar(5, pa.int32()), 5),
    ("big", pd.NA, None),
    ("big", pd.NaT, None),
    ("narrow", 0.5, 0.5),
    ("narrow", 0.1, 0.10000000149011612),
    ("narrow", np.float32(0.1), 0.10000000149011612),
    ("narrow", float("-inf"), float("-inf")),
    ("narrow", 0.0, 0.0),
    ("narrow", 2**24, 16777216.0),
    ("wide", 1e300, 1e300),
    ("wide", 3, 3.0),
    ("wide", np.float32(0.25), 0.25),
    ("wide", np.int16(4), 4.0),
    ("wide", float("inf"), float("inf")),
    ("wide", pd.NA, None),
    ("text", "a\x00é\U0001f600", "a\x00é\U0001f600"),
    ("text", np.str_("a"), "a"),
    ("text", OwnText("a"), "a"),
    ("text", Word.YES, "yes"),
    ("text", Color.RED, "red"),
    ("text", IDENTITY, "12345678-1234-5678-1234-567812345678"),
    ("text", pd.NA, None),
    ("raw", b"\xff\x00", b"\xff\x00"),
    ("raw", bytearray(b"ab"), b"ab"),
    ("raw", memoryview(b"abcd")[::2], b"ac"),
    ("raw", np.bytes_(b"ab"), b"ab"),
    ("raw", IDENTITY, IDENTITY.bytes),
    ("fixed", IDENTITY, IDENTITY.bytes),
    ("fixed", b"0123456789abcdef", b"0123456789abcdef"),
    ("day", dt.date(2026, 1, 2), dt.date(2026, 1, 2)),
    ("day", dt.date(1, 1, 1), dt.date(1, 1, 1)),
    ("day", MIDNIGHT, dt.date(2026, 1, 2)),
    ("day", pd.Timestamp("2026-01-02"), dt.date(2026, 1, 2)),
    ("day", np.datetime64("2026-01-02"), dt.date(2026, 1, 2)),
    ("day", pd.NaT, None),
    ("ms", NOON.replace(microsecond=123000), NOON.replace(microsecond=123000)),
    ("us", NOON, NOON),
    ("us", NOON.astimezone(BERLIN), NOON),
    ("us", NOON.astimezone(ODD), NOON),
    ("ms", NOON.replace(microsecond=7000).astimezone(ODD), NOON.replace(microsecond=7000)),
    ("moments", [NOON.astimezone(ODD), NOON.astimezone(BERLIN)], [NOON, NOON]),
    ("us", dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1), dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC)),
    ("us", dt.datetime(9999, 12, 31, 23, 59, 59, 999999, dt.UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, dt.UTC)),
    ("us", pd.Timestamp("2026-01-02T13:30:15.123456+01:00"), NOON),
    ("us", pa.scalar(NOON), NOON),
    ("us", pd.NaT, None),
    ("us", np.datetime64("NaT"), None),
    ("amount", Decimal("1.25"), Decimal("1.25")),
    ("amount", Decimal("1E+3"), Decimal(1000)),
    ("amount", 7, Decimal(7)),
    ("amount", np.int32(7), Decimal(7)),
    ("tags", ["a", None, ""], ["a", None, ""]),
    ("tags", ("a", "b"), ["a", "b"]),
    ("tags", deque(["a"]), ["a"]),
    ("tags", np.array(["a", "b"]), ["a", "b"]),
    ("tags", pd.Series(["a", None]), ["a", None]),
    ("tags", [IDENTITY, Word.YES], [str(IDENTITY), "yes"]),
    ("tags", [], []),
    ("tags", None, None),
    ("counts", range(3), [0, 1, 2]),
    ("counts", array.array("q", [1, 2]), [1, 2]),
    ("counts", np.array([1, 2], np.int32), [1, 2]),
    ("counts", pl.Series([1, 2]), [1, 2]),
    ("counts", pa.array([1, None]), [1, None]),
    ("counts", [np.int64(1), 2.0, pd.NA], [1, 2, None]),
    ("moments", [NOON, None], [NOON, None]),
    ("moments", pd.Series([NOON]), [NOON]),
    ("spot", {"x": 1.5, "y": None}, {"x": 1.5, "y": None}),
    ("spot", OrderedDict(y=1, x=2.5), {"x": 2.5, "y": 1}),
    ("spot", SpotTuple(1.5, 2), {"x": 1.5, "y": 2}),
    ("spot", SpotData(1.5, None), {"x": 1.5, "y": None}),
    ("spot", SpotAttrs(1.5, 2), {"x": 1.5, "y": 2}),
    ("spot", SpotModel(x=1.5, y=2), {"x": 1.5, "y": 2}),
    ("spot", {"x": np.float64(1.5), "y": np.int8(2)}, {"x": 1.5, "y": 2}),
    ("spots", [SpotData(1.5, 2), None, {"x": 1.0, "y": 3}], [{"x": 1.5, "y": 2}, None, {"x": 1.0, "y": 3}]),
    ("spots", (SpotTuple(1.5, 2),), [{"x": 1.5, "y": 2}]),
    ("props", {"a": 1, "b": None}, [("a", 1), ("b", None)]),
    ("props", [("a", np.int64(1))], [("a", 1)]),
    ("props", {}, []),
]

REFUSED: list[tuple[str, Any, str]] = [
    ("flag", 1, "of type int"),
    ("flag", "true", "of type str"),
    ("small", True, "of type bool"),
    ("small", 2**31, "does not fit int32"),
    ("small", "5", "of type str"),
    ("big", 2**63, "does not fit int64"),
    ("big", 1.5, r"no whole number.*int\(value\)"),
    ("big", 1e19, "does not fit int64"),
    ("big", float("nan"), "NaN.*Give None"),
    ("big", float("inf"), "no whole number"),
    ("big", np.float32(1.5), "no whole number"),
    ("big", Decimal("1.5"), "no whole number"),
    ("big", Fraction(4, 2), "of type Fraction"),
    ("big", dt.time(1, 2), "time of day.*microseconds since midnight"),
    ("big", dt.timedelta(seconds=1), "of type timedelta"),
    ("big", NOON, "of type datetime"),
    ("big", np.timedelta64(1, "s"), "of type timedelta64"),
    ("narrow", 1e300, "beyond the range of float32.*float64"),
    ("narrow", -1e300, "beyond the range"),
    ("narrow", 1e-300, "beyond the range"),
    ("narrow", np.float64(1e300), "beyond the range"),
    ("narrow", 2**24 + 1, "of type int"),
    ("wide", 2**53 + 1, "does not fit double"),
    ("wide", True, "of type bool"),
    ("wide", Decimal("0.1"), r"rounded.*float\(value\)"),
    ("wide", "1.5", "of type str"),
    ("wide", 1 + 0j, "of type complex"),
    ("wide", np.longdouble(1), "of type longdouble"),
    ("text", b"a", "Decode it"),
    ("text", bytearray(b"a"), "Decode it"),
    ("text", 7, "of type int"),
    ("text", float("nan"), "NaN.*Give None"),
    ("text", NOON, r"value.isoformat\(\)"),
    ("text", pathlib.PurePosixPath("a"), "of type PurePosixPath"),
    ("text", ["a"], "of type list"),
    ("text", "a\udc80", "surrogates not allowed"),
    ("raw", "a", "Encode it"),
    ("raw", 7, "of type int"),
    ("fixed", b"short", "does not fit fixed_size_binary"),
    ("day", 5, "of type int"),
    ("day", NOON, r"time of day.*value.date\(\)"),
    ("day", np.datetime64("2026-01-02T12"), "time of day"),
    ("day", pd.Timestamp(1), "time of day"),
    ("day", "2026-01-02", "fromisoformat"),
    ("ms", NOON, "digits below the column's unit.*floor"),
    ("ms", NOON.replace(microsecond=7000, tzinfo=ODD), "digits below the column's unit"),
    ("us", dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(microseconds=-1))), "in UTC it is not within the years"),
    ("ms", np.datetime64("2026-01-02T12", "ms"), "no time zone"),
    ("us", 5, "number, and its unit.*fromtimestamp"),
    ("us", 5.0, "number, and its unit"),
    ("us", Decimal(5), "number, and its unit"),
    ("us", Number.TWO, "number, and its unit"),
    ("us", "2026-01-02T12:00:00Z", "fromisoformat"),
    ("us", MIDNIGHT, r"no time zone.*replace\(tzinfo=datetime.UTC\)"),
    ("us", pd.Timestamp("2026-01-02"), "no time zone"),
    ("us", pd.Timestamp(1_001, tz="UTC"), "digits below the column's unit.*floor"),
    ("us", np.datetime64("2026-01-02T12:00:00.000000001"), "digits below a microsecond"),
    ("us", np.datetime64("2026-01-02T12"), "no time zone"),
    ("us", dt.date(2026, 1, 2), "date without a time"),
    ("us", dt.time(1, 2), "of type time"),
    ("amount", 1.25, r"Decimal\(str\(value\)\)"),
    ("amount", Decimal("1.255"), r"more than 2 digits after the point.*round\(value, 2\)"),
    ("amount", Decimal("123456789.00"), "more than 8 digits before the point"),
    ("amount", Decimal("NaN"), "not a number.*Give None"),
    ("amount", "1.25", "of type str"),
    ("amount", True, "of type bool"),
    ("tags", "abc", r"of type str.*Give a list: \[value\]"),
    ("tags", {"a"}, "no order.*sorted"),
    ("tags", {"a": 1}, "of type dict"),
    ("tags", (tag for tag in ["a"]), "of type generator"),
    ("tags", ["a", 7], r"\[1\]: it is of type int"),
    ("tags", [["a"]], r"\[0\]: it is of type list"),
    ("counts", b"abc", "of type bytes"),
    ("counts", np.array([1.5]), r"\[0\]: it is no whole number"),
    ("counts", SpotTuple(1, 2), "of type SpotTuple"),
    ("moments", [NOON, 5], r"\[1\]: it is a number"),
    ("moments", pd.Series([MIDNIGHT]), r"\[0\]: it has no time zone"),
    ("spot", {"x": 1.5}, "it has no 'y'.*None means null"),
    ("spot", {"x": 1.5, "y": 1, "z": 2}, "it has 'z', which is not a field"),
    ("spot", {"x": 1.5, "y": 1.5}, r"\.y: it is no whole number"),
    ("spot", (1.5, 2), "of type tuple.*Give a dict with x, y"),
    ("spot", [("x", 1.5), ("y", 2)], "of type list"),
    ("spot", ExtraModel(x=1.5, y=2, z=3), "it has 'z'"),  # type: ignore[call-arg]
    ("spots", [{"x": 1.5, "y": "a"}], r"\[0\]\.y: it is of type str"),
    ("props", {1: 2}, "key: it is of type int"),
    ("props", {"a": "b"}, r"\['a'\]: it is of type str"),
    ("props", [("a", 1), ("a", 2)], "there twice"),
    ("props", ["ab"], "Give a dict"),
    ("props", 5, "Give a dict"),
]


@pytest.fixture(scope="module")
def arrived(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    rows = [row(number, column, value) for number, (column, value, _) in enumerate(ARRIVES)]
    return read_back(tmp_path_factory.mktemp("kinds") / "t", SCHEMA, rows)


def test_the_table_of_kinds_is_long_enough_and_has_every_column() -> None:
    assert len(ARRIVES) >= 80
    for cases in (ARRIVES, REFUSED):
        assert {column for column, _, _ in cases} == set(SCHEMA.names) - {"id"}


def named(value: object) -> str:
    """A name that is the same in every process: without addresses in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:40]


@pytest.mark.parametrize("number", range(len(ARRIVES)), ids=lambda number: f"{ARRIVES[number][0]}-{named(ARRIVES[number][1])}")
def test_a_value_of_this_kind_arrives_as_it_was_meant(arrived: dict[int, dict[str, Any]], number: int) -> None:
    column, _, becomes = ARRIVES[number]
    found = arrived[number][column]
    assert found == becomes
    assert type(found) is type(becomes)
    assert [name for name in SCHEMA.names if arrived[number][name] is not None] == [
        "id",
        *([column] if becomes is not None else []),
    ]


@pytest.mark.parametrize(("column", "value", "says"), REFUSED, ids=named)
def test_a_value_that_would_change_is_refused_by_name(column: str, value: object, says: str) -> None:
    rows = [row(0, column, None), row(1, column, value)]
    with pytest.raises(RowError, match=f"(?s)^row 1, column '{column}'.*{says}") as refused:
        list(RowFormat(INFO, wire.OPERATION_UPSERT).convert(rows))
    assert (refused.value.row, refused.value.column) == (1, column)


ARROW: "list[tuple[str, pa.Array[Any], Any]]" = [
    ("small", pa.array([1], pa.time32("s")), 1_000),
    ("big", pa.array([1_000_000_000], pa.time64("ns")), 1_000_000),
    ("day", pa.array([86_400_000], pa.date64()), dt.date(1970, 1, 2)),
    ("spot", pa.array([{"y": 1, "x": 1.5}], pa.struct([("y", pa.int32()), ("x", pa.float32())])), {"x": 1.5, "y": 1}),
    ("tags", pa.array([["a"]], pa.large_list(pa.large_string())), ["a"]),
]
ARROW_REFUSED: "list[tuple[str, pa.Array[Any]]]" = [
    ("spot", pa.array([{"x": 1.5, "y": 1, "z": 2}])),
    ("spot", pa.array([{"x": 1.5}])),
    ("spot", pa.array([{"x": 1.5, "y": NOON}])),
    ("moments", pa.array([[5]])),
    ("tags", pa.array([[5]])),
    ("props", pa.array([[("a", NOON)]], pa.map_(pa.string(), pa.timestamp("us", tz="UTC")))),
    ("counts", pa.array([1])),
    ("us", pa.array([5])),
    ("small", pa.array([5], pa.time64("us"))),
    ("big", pa.array([5], pa.time32("ms"))),
    ("narrow", pa.array([1e300])),
]


def converted_arrow(column: str, values: "pa.Array[Any]") -> list[dict[str, Any]]:
    columns = {name: pa.nulls(1, SCHEMA.field(name).type) for name in SCHEMA.names}
    given = pa.table({**columns, "id": pa.array([1], pa.int64()), column: values})
    return [found for batch in RowFormat(INFO, wire.OPERATION_UPSERT).convert(given) for found in batch.to_pylist()]


@pytest.mark.parametrize(("column", "values", "becomes"), ARROW, ids=lambda part: str(getattr(part, "type", part)))
def test_arrow_data_of_a_kin_is_converted(column: str, values: "pa.Array[Any]", becomes: object) -> None:
    assert converted_arrow(column, values)[0][column] == becomes


def test_times_without_a_zone_are_utcs_in_frames_until_they_get_theirs() -> None:
    """docs/stream.md says so, and how they get it."""
    pandas, polars = pd.Series([MIDNIGHT]), pl.Series([MIDNIGHT])
    for local, berlin in (
        (pandas, pandas.dt.tz_localize("Europe/Berlin")),
        (polars, polars.dt.replace_time_zone("Europe/Berlin")),
    ):
        assert converted_arrow("us", pa.array(local))[0]["us"] == MIDNIGHT.replace(tzinfo=dt.UTC)
        assert converted_arrow("us", pa.array(berlin))[0]["us"] == MIDNIGHT.replace(tzinfo=BERLIN)


@pytest.mark.parametrize("column", ["day", "us", "ms"])
def test_a_date_of_milliseconds_with_a_time_of_day_is_refused_in_its_row(column: str) -> None:
    time = pa.py_buffer((86_400_000 + 5).to_bytes(8, "little"))
    with pytest.raises(RowError, match=f"row 0, column '{column}'.*would lose data"):
        converted_arrow(column, pa.Array.from_buffers(pa.date64(), 1, [None, time]))


@pytest.mark.parametrize(("column", "values"), ARROW_REFUSED, ids=lambda part: str(getattr(part, "type", part)))
def test_arrow_data_that_would_change_is_refused_by_column(column: str, values: "pa.Array[Any]") -> None:
    with pytest.raises(SchemaError, match=f"column '{column}' is .*, but the table has"):
        converted_arrow(column, values)


def test_nan_stays_nan_in_columns_of_floats(tmp_path: pathlib.Path) -> None:
    rows = [row(0, "wide", float("nan")), row(1, "narrow", float("nan"))]
    found = read_back(tmp_path / "t", SCHEMA, rows)
    assert str(found[0]["wide"]) == str(found[1]["narrow"]) == "nan"


@dataclasses.dataclass(slots=True)
class Data:
    id: int
    text: str
    spot: SpotData


class Tuple(NamedTuple):
    id: int
    text: str
    spot: SpotTuple


@attrs.frozen
class Attrs:
    id: int
    text: str
    spot: SpotAttrs


class Model(pydantic.BaseModel):
    id: int
    text: str = pydantic.Field(alias="TEXT")
    spot: SpotModel


MAKES: list[Callable[[int], object]] = [
    lambda number: Data(number, "a", SpotData(1.5, 2)),
    lambda number: Tuple(number, "a", SpotTuple(1.5, 2)),
    lambda number: Attrs(number, "a", SpotAttrs(1.5, 2)),
    lambda number: Model(id=number, TEXT="a", spot=SpotModel(x=1.5, y=2)),
    lambda number: OrderedDict(id=number, text="a", spot=OrderedDict(x=1.5, y=2)),
    lambda number: {"text": "a", "spot": SpotData(1.5, 2), "id": np.int64(number)},
]
SMALL = pa.schema([SCHEMA.field(name) for name in ("id", "text", "spot")])


@pytest.mark.parametrize("make", MAKES, ids=lambda make: type(make(0)).__name__)
def test_objects_of_every_kind_are_rows(tmp_path: pathlib.Path, make: Callable[[int], object]) -> None:
    found = read_back(tmp_path / "t", SMALL, [make(0), make(1)])
    wanted = {"text": "a", "spot": {"x": 1.5, "y": 2}}
    assert {number: {name: each[name] for name in wanted} for number, each in found.items()} == {0: wanted, 1: wanted}
    small = RowFormat(dataclasses.replace(INFO, schema=SMALL), wire.OPERATION_UPSERT)
    assert [batch.to_pylist() for batch in small.convert(make(3))] == [[{"id": 3, **wanted}]]


def test_columns_that_rows_leave_out_are_null_for_other_readers(tmp_path: pathlib.Path) -> None:
    found = read_back(tmp_path / "t", SMALL, [{"id": 1, "text": "a"}, {"id": 2, "spot": {"x": 1.5, "y": 2}}])
    assert [(found[at]["text"], found[at]["spot"]) for at in (1, 2)] == [("a", None), (None, {"x": 1.5, "y": 2})]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([(1, "a")], "row 0 is no tuple of 3 values"),
        ([[1, "a", None]], "row 0 is a list"),
        ([{"id": 1, "text": "a", "spots": None}], "row 0 has 'spots'.*Did you mean 'spot'"),
        ([{"id": 1, "text": "a", "spot": None, "more": 1}], "row 0 has 'more'"),
        ([ExtraModel(x=1, y=2)], "row 0 has no 'id'"),
        ([object()], "row 0 is a object"),
    ],
)
def test_objects_that_are_no_rows_of_the_table_are_refused_by_name(rows: list[object], says: str) -> None:
    with pytest.raises(RowError, match=says):
        list(RowFormat(dataclasses.replace(INFO, schema=SMALL), wire.OPERATION_UPSERT).convert(rows))
