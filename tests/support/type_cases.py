"""Every Arrow type that has a place in a table: what is given, what is stored, and values at the edges of both."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Case:
    """A column: the type given and the type stored, five values and, where they look different then, the stored ones."""

    given: pa.DataType
    stored: pa.DataType
    values: list[Any]
    kept: list[Any] | None = None


def same(kind: pa.DataType, *values: Any) -> Case:
    """A type that is stored as it is."""
    return Case(kind, kind, list(values))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
ZONED = [
    datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC),
    EPOCH,
    EPOCH - timedelta(microseconds=1),
    datetime(1900, 1, 1, tzinfo=UTC),  # the oldest that Spark 3.5 reads without a setting
    LATEST,
]
MILLIS = [at.replace(microsecond=at.microsecond // 1000 * 1000) for at in ZONED]
PLAIN = [at.replace(tzinfo=None) for at in ZONED]
ITEM = pa.struct([("a", pa.int32()), ("b", pa.string()), ("t", pa.timestamp("us", tz="UTC")), ("d", pa.decimal128(18, 4))])
DEEPEST = pa.struct([("x", pa.decimal128(38, 10)), ("s", pa.list_(pa.date32()))])
DEEP = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(DEEPEST)))]))
ONE = {"a": -1, "b": "", "t": ZONED[0], "d": Decimal("-99999999999999.9999")}
NAN, INF = float("nan"), float("inf")

CASES: dict[str, Case] = {
    "bool": same(pa.bool_(), True, False, None, False, True),
    "int8": Case(pa.int8(), pa.int32(), [127, -128, None, 0, -1]),
    "int16": Case(pa.int16(), pa.int32(), [32767, -32768, None, 0, -1]),
    "int32": same(pa.int32(), 2**31 - 1, -(2**31), None, 0, -1),
    "int64": same(pa.int64(), 2**63 - 1, -(2**63), None, 0, -1),
    "float32": same(pa.float32(), NAN, -INF, None, -0.0, 1.5),
    "float64": same(pa.float64(), 1e308, INF, None, NAN, -0.0),
    "decimal_1_0": same(pa.decimal128(1, 0), Decimal(9), Decimal(-9), None, Decimal(0), Decimal(1)),
    "decimal_5_2": same(pa.decimal128(5, 2), Decimal("999.99"), Decimal("-999.99"), None, Decimal("0.00"), Decimal("-0.01")),
    "decimal_9_9": same(
        pa.decimal128(9, 9), Decimal("0.999999999"), Decimal("-0.000000001"), None, Decimal("0E-9"), Decimal("0.5")
    ),
    "decimal_18_4": same(
        pa.decimal128(18, 4), Decimal("99999999999999.9999"), Decimal("-0.0001"), None, Decimal("0.0000"), Decimal("-1.5000")
    ),
    "decimal_19_0": same(pa.decimal128(19, 0), Decimal(10**19 - 1), Decimal(1 - 10**19), None, Decimal(0), Decimal(2**63)),
    "decimal_38_10": same(
        pa.decimal128(38, 10),
        Decimal("9" * 28 + "." + "9" * 10),
        Decimal("-" + "9" * 28 + "." + "9" * 10),
        None,
        Decimal("0E-10"),
        Decimal("1E-10"),
    ),
    "string": same(pa.string(), "", "ä€😀\x00\n", None, "x" * 70_000, "__null__"),
    "large_string": Case(pa.large_string(), pa.string(), ["", "a", None, "b", "ü"]),
    "binary": same(pa.binary(), b"", b"\x00\xff", None, bytes(range(256)), b"#HUDI#"),
    "fixed_binary": same(pa.binary(3), b"\x00\x00\x00", b"abc", None, b"\xff\xff\xff", b"xyz"),
    "date": same(pa.date32(), date(2026, 2, 28), date(1969, 12, 31), None, date(1582, 10, 15), date(9999, 12, 31)),
    "time_ms": Case(
        pa.time32("ms"),
        pa.int32(),
        [time(23, 59, 59, 999_000), time(0), None, time(0, 0, 0, 1000), time(12)],
        [86_399_999, 0, None, 1, 43_200_000],
    ),
    "time_us": Case(
        pa.time64("us"),
        pa.int64(),
        [time(23, 59, 59, 999_999), time(0), None, time(0, 0, 0, 1), time(12)],
        [86_399_999_999, 0, None, 1, 43_200_000_000],
    ),
    "stamp_us_utc": same(pa.timestamp("us", tz="UTC"), ZONED[0], ZONED[1], None, ZONED[2], ZONED[4]),
    "stamp_ms_utc": same(pa.timestamp("ms", tz="UTC"), MILLIS[0], MILLIS[1], None, MILLIS[2], MILLIS[4]),
    "stamp_us_zone": Case(
        pa.timestamp("us", tz="America/New_York"), pa.timestamp("us", tz="UTC"), [ZONED[0], ZONED[1], None, ZONED[2], ZONED[3]]
    ),
    "stamp_us": Case(
        pa.timestamp("us"),
        pa.timestamp("us", tz="UTC"),
        [PLAIN[0], PLAIN[1], None, PLAIN[2], PLAIN[4]],
        [ZONED[0], ZONED[1], None, ZONED[2], ZONED[4]],
    ),
    "stamp_ms": Case(
        pa.timestamp("ms"),
        pa.timestamp("ms", tz="UTC"),
        [PLAIN[1], PLAIN[1], None, PLAIN[1], PLAIN[3]],
        [ZONED[1], ZONED[1], None, ZONED[1], ZONED[3]],
    ),
    "dictionary": Case(pa.dictionary(pa.int32(), pa.string()), pa.string(), ["red", "green", None, "red", ""]),
    "list": same(pa.list_(pa.int64()), [1, None, -1], [], None, [None], [2**63 - 1]),
    "large_list": Case(pa.large_list(pa.string()), pa.list_(pa.string()), [["a"], [], None, [""], [None, "b"]]),
    "fixed_list": Case(
        pa.list_(pa.float32(), 2), pa.list_(pa.float32()), [[NAN, 0.5], [-0.0, None], None, [INF, 1.0], [0.0, 0.0]]
    ),
    "map": same(pa.map_(pa.string(), pa.float64()), [("a", NAN), ("", None)], [], None, [("z", 1.0), ("a", -0.0)], [("k", INF)]),
    "struct": same(ITEM, ONE, dict.fromkeys(ONE), None, ONE | {"d": None}, ONE | {"a": None, "b": None}),
    "list_of_struct": same(pa.list_(ITEM), [ONE, None], [], None, [dict.fromkeys(ONE)], [ONE, ONE]),
    "map_of_struct": same(
        pa.map_(pa.string(), ITEM), [("a", ONE), ("b", None)], [], None, [("", dict.fromkeys(ONE))], [("k", ONE)]
    ),
    "list_of_list": same(pa.list_(pa.list_(pa.binary())), [[b""], None, []], [], None, [[None, b"\x00"]], [[b"a", b"b"], [b"c"]]),
    "deep": same(
        DEEP,
        [{"m": [("k", [{"x": Decimal("1.5000000000"), "s": [date(2000, 1, 1), None]}, None])]}, {"m": None}, None],
        [],
        None,
        [{"m": [("e", [])]}],
        [{"m": [("n", None)]}],
    ),
}


def column(name: str, kind: pa.DataType, numbers: list[int]) -> Any:
    """An array: the values of these numbers in a case's given or stored type."""
    case = CASES[name]
    values = case.values if kind == case.given or case.kept is None else case.kept
    chosen = [values[number] for number in numbers]
    if isinstance(kind, pa.DictionaryType):
        return pa.array(chosen, kind.value_type).dictionary_encode()
    return pa.array(chosen, kind)
