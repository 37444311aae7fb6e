"""Every Arrow type that has a place in a table, in base files and in log files, through three readers."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.errors import UnsupportedTypeError
from support.readers import assert_all_agree, read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows, frozen_rows
from support.spark_hudi import SparkTable, read_by_spark

LOCAL = datetime(2026, 2, 28, 23, 59, 59, 999_999)
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Case:
    """A column: the type given and the type stored, values and, where they look different then, the stored ones.

    The first values are of the base file, the last three replace them in a log file.
    """

    given: pa.DataType
    stored: pa.DataType
    values: list[Any]
    kept: list[Any] | None = None


def same(kind: pa.DataType, *values: Any) -> Case:
    return Case(kind, kind, list(values))


ITEM = pa.struct([("a", pa.int32()), ("b", pa.string()), ("t", pa.timestamp("us", tz="UTC")), ("d", pa.decimal128(18, 4))])
DEEP = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.decimal128(38, 10)), ("s", pa.list_(pa.date32()))]))))]))
ZONED = [at.replace(tzinfo=UTC) for at in (LOCAL, EPOCH, EPOCH - timedelta(microseconds=1), datetime(1900, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999))]
MILLIS = [at.replace(microsecond=at.microsecond // 1000 * 1000) for at in ZONED]
PLAIN = [at.replace(tzinfo=None) for at in ZONED]
ONE = {"a": -1, "b": "", "t": ZONED[0], "d": Decimal("-99999999999999.9999")}
NAN, INF = float("nan"), float("inf")

CASES = {
    "bool": same(pa.bool_(), True, False, None, False, True),
    "int8": Case(pa.int8(), pa.int32(), [127, -128, None, 0, -1]),
    "int16": Case(pa.int16(), pa.int32(), [32767, -32768, None, 0, -1]),
    "int32": same(pa.int32(), 2**31 - 1, -(2**31), None, 0, -1),
    "int64": same(pa.int64(), 2**63 - 1, -(2**63), None, 0, -1),
    "float32": same(pa.float32(), NAN, -INF, None, -0.0, 1.5),
    "float64": same(pa.float64(), 1e308, INF, None, NAN, -0.0),
    "decimal_1_0": same(pa.decimal128(1, 0), Decimal(9), Decimal(-9), None, Decimal(0), Decimal(1)),
    "decimal_5_2": same(pa.decimal128(5, 2), Decimal("999.99"), Decimal("-999.99"), None, Decimal("0.00"), Decimal("-0.01")),
    "decimal_9_9": same(pa.decimal128(9, 9), Decimal("0.999999999"), Decimal("-0.000000001"), None, Decimal("0E-9"), Decimal("0.5")),
    "decimal_18_4": same(pa.decimal128(18, 4), Decimal("99999999999999.9999"), Decimal("-0.0001"), None, Decimal("0.0000"), Decimal("-1.5000")),
    "decimal_19_0": same(pa.decimal128(19, 0), Decimal(10**19 - 1), Decimal(1 - 10**19), None, Decimal(0), Decimal(2**63)),
    "decimal_38_10": same(pa.decimal128(38, 10), Decimal("9" * 28 + "." + "9" * 10), Decimal("-" + "9" * 28 + "." + "9" * 10), None, Decimal("0E-10"), Decimal("1E-10")),
    "string": same(pa.string(), "", "ä€😀\x00\n", None, "x" * 70_000, "__null__"),
    "large_string": Case(pa.large_string(), pa.string(), ["", "a", None, "b", "ü"]),
    "binary": same(pa.binary(), b"", b"\x00\xff", None, bytes(range(256)), b"#HUDI#"),
    "fixed_binary": same(pa.binary(3), b"\x00\x00\x00", b"abc", None, b"\xff\xff\xff", b"xyz"),
    "date": same(pa.date32(), date(2026, 2, 28), date(1969, 12, 31), None, date(1582, 10, 15), date(9999, 12, 31)),
    "time_ms": Case(pa.time32("ms"), pa.int32(), [time(23, 59, 59, 999_000), time(0), None, time(0, 0, 0, 1000), time(12)], [86_399_999, 0, None, 1, 43_200_000]),
    "time_us": Case(pa.time64("us"), pa.int64(), [time(23, 59, 59, 999_999), time(0), None, time(0, 0, 0, 1), time(12)], [86_399_999_999, 0, None, 1, 43_200_000_000]),
    "stamp_us_utc": same(pa.timestamp("us", tz="UTC"), ZONED[0], ZONED[1], None, ZONED[2], ZONED[4]),
    "stamp_ms_utc": same(pa.timestamp("ms", tz="UTC"), MILLIS[0], MILLIS[1], None, MILLIS[2], MILLIS[4]),
    "stamp_us_zone": Case(pa.timestamp("us", tz="America/New_York"), pa.timestamp("us", tz="UTC"), [ZONED[0], ZONED[1], None, ZONED[2], ZONED[3]]),
    "stamp_us": Case(pa.timestamp("us"), pa.timestamp("us", tz="UTC"), [PLAIN[0], PLAIN[1], None, PLAIN[2], PLAIN[4]], [ZONED[0], ZONED[1], None, ZONED[2], ZONED[4]]),
    "stamp_ms": Case(pa.timestamp("ms"), pa.timestamp("ms", tz="UTC"), [PLAIN[1], PLAIN[1], None, PLAIN[1], PLAIN[3]], [ZONED[1], ZONED[1], None, ZONED[1], ZONED[3]]),
    "dictionary": Case(pa.dictionary(pa.int32(), pa.string()), pa.string(), ["red", "green", None, "red", ""]),
    "list": same(pa.list_(pa.int64()), [1, None, -1], [], None, [None], [2**63 - 1]),
    "large_list": Case(pa.large_list(pa.string()), pa.list_(pa.string()), [["a"], [], None, [""], [None, "b"]]),
    "fixed_list": Case(pa.list_(pa.float32(), 2), pa.list_(pa.float32()), [[NAN, 0.5], [-0.0, None], None, [INF, 1.0], [0.0, 0.0]]),
    "map": same(pa.map_(pa.string(), pa.float64()), [("a", NAN), ("", None)], [], None, [("z", 1.0), ("a", -0.0)], [("k", INF)]),
    "struct": same(ITEM, ONE, dict.fromkeys(ONE), None, ONE | {"d": None}, ONE | {"a": None, "b": None}),
    "list_of_struct": same(pa.list_(ITEM), [ONE, None], [], None, [dict.fromkeys(ONE)], [ONE, ONE]),
    "map_of_struct": same(pa.map_(pa.string(), ITEM), [("a", ONE), ("b", None)], [], None, [("", dict.fromkeys(ONE))], [("k", ONE)]),
    "list_of_list": same(pa.list_(pa.list_(pa.binary())), [[b""], None, []], [], None, [[None, b"\x00"]], [[b"a", b"b"], [b"c"]]),
    "deep": same(DEEP, [{"m": [("k", [{"x": Decimal("1.5000000000"), "s": [date(2000, 1, 1), None]}, None])]}, {"m": None}, None], [], None, [{"m": [("e", [])]}], [{"m": [("n", None)]}]),
}


def test_every_type_in_base_and_log_files(spark: Any, tmp_path: Path) -> None:
    """``k0`` to ``k4`` are written once, then three of them anew, one deleted; ``k9`` comes in a log file only."""
    given = pa.schema([("id", pa.string()), *((name, case.given) for name, case in CASES.items())])
    stored = pa.schema([("id", pa.string()), *((name, case.stored) for name, case in CASES.items())])
    table = hudi.create_table(str(tmp_path / "t"), given, record_key="id", buckets=1)
    table.upsert(rows(given, {f"k{i}": i for i in range(5)}))
    newer = {"k0": 2, "k1": 3, "k2": 4, "k9": 0}
    table.upsert(rows(given, newer))
    table.delete(pa.table({"id": ["k3"]}))

    assert [kind(file) for file in data_files(tmp_path / "t")] == ["base", "log", "log"]
    assert_all_agree(spark, tmp_path / "t", rows(stored, {"k0": 2, "k1": 3, "k2": 4, "k4": 4, "k9": 0}))


def test_every_type_in_file_groups_that_have_log_files_only(spark: Any, tmp_path: Path) -> None:
    """A first operation that deletes leaves no base file behind; hudi-rs takes the schema from the commit then."""
    given = pa.schema([("id", pa.string()), *((name, case.given) for name, case in CASES.items())])
    stored = pa.schema([("id", pa.string()), *((name, case.stored) for name, case in CASES.items())])
    table = hudi.create_table(str(tmp_path / "t"), given, record_key="id", buckets=1)
    table.delete(pa.table({"id": ["k3"]}))
    table.upsert(rows(given, {f"k{i}": i for i in range(5)}))

    assert [kind(file) for file in data_files(tmp_path / "t")] == ["log", "log"]
    assert_all_agree(spark, tmp_path / "t", rows(stored, {f"k{i}": i for i in range(5)}))


@pytest.mark.parametrize("name", ["int32", "int64", "float32", "float64", "decimal_18_4", "date", "stamp_us_utc"])
def test_every_type_that_can_order_rows(spark: Any, tmp_path: Path, name: str) -> None:
    """Upserts and deletes with larger and smaller values of that type, over base and over log rows."""
    case = CASES[name]
    known = [value for value in case.values if value is not None and value == value]
    low, high = min(known), max(known)
    schema = pa.schema([("id", pa.string()), ("o", case.stored), ("v", pa.int32())])
    table = hudi.create_table(str(tmp_path / "t"), schema, record_key="id", ordering="o", buckets=1)

    def write(**values: tuple[Any, int]) -> pa.Table:
        return pa.table([list(values), [o for o, _ in values.values()], [v for _, v in values.values()]], schema=schema)

    table.upsert(write(late=(high, 1), newer=(low, 1), tie=(high, 1), kept=(high, 1), gone=(low, 1), gone_by_tie=(high, 1), again=(low, 1)))
    table.upsert(write(late=(low, 2), newer=(high, 2), tie=(high, 2), logged=(high, 2), logged_gone=(low, 2)))
    table.delete(write(kept=(low, 0), gone=(high, 0), gone_by_tie=(high, 0), again=(high, 0), logged=(low, 0), logged_gone=(high, 0)))
    table.upsert(write(again=(high, 4), gone=(low, 4), logged_gone=(low, 4)))
    assert low < high
    assert_all_agree(spark, tmp_path / "t", write(late=(high, 1), newer=(high, 2), tie=(high, 2), kept=(high, 1), logged=(high, 2), again=(high, 4)))


def test_spark_compares_strings_of_parquet_log_blocks_wrongly(spark: Any, tmp_path: Path) -> None:
    """The reason why we refuse them as ordering: Spark keeps pointing at a buffer that the next row overwrites.

    Seen with tables of Spark's own too. When this fails, Hudi has been mended.
    """
    schema = pa.schema([("id", pa.string()), ("o", pa.string()), ("v", pa.int32())])
    with pytest.raises(UnsupportedTypeError, match="Ordering column 'o' is string"):
        hudi.create_table(str(tmp_path / "ours"), schema, record_key="id", ordering="o")
    table = SparkTable(spark, tmp_path, "t", ordering="o", options={"hoodie.logfile.data.block.format": "parquet"})
    numbers = list(range(20))
    ids = [f"k{number}" for number in numbers]
    table.upsert(pa.table([ids, [f"{number:02d}" for number in numbers], [1] * 20], schema=schema))
    table.upsert(pa.table([ids, [f"{19 - number:02d}" for number in numbers], [2] * 20], schema=schema))
    expected = pa.table({"id": ids, "v": pa.array([2] * 10 + [1] * 10, pa.int32())})
    assert_same_rows(read_by_us(table.path).select(["id", "v"]), expected, "our reader")
    assert_same_rows(read_by_hudi_rs(table.path).select(["id", "v"]), expected, "hudi-rs")
    assert frozen_rows(table.rows().select(["id", "v"])) != frozen_rows(expected)


def test_a_delete_at_an_int_of_zero_counts_against_everything(spark: Any, tmp_path: Path) -> None:
    """Hudi's mark for a delete without an ordering value is that very number; a long of zero is a value like any other."""
    for kind, left in ((pa.int32(), ["b"]), (pa.int64(), ["a", "b"])):
        schema = pa.schema([("id", pa.string()), ("o", kind)])
        table = hudi.create_table(str(tmp_path / str(kind)), schema, record_key="id", ordering="o", buckets=1)
        table.upsert(pa.table([["a", "b"], [5, 5]], schema=schema))
        table.delete(pa.table([["a", "b"], [0, -1]], schema=schema))
        assert_all_agree(spark, tmp_path / str(kind), pa.table([left, [5] * len(left)], schema=schema))


@pytest.mark.parametrize("name", ["string", "int32", "int64", "bool", "date", "int16"])
def test_every_type_that_can_be_a_key(spark: Any, tmp_path: Path, name: str) -> None:
    """Spark must find the same rows, and hash them to the same bucket when it writes; see test_spark_takes_over."""
    case = CASES[name]
    schema = pa.schema([("k", case.given), ("v", pa.int32())])
    values = [value for value in dict.fromkeys(case.values) if value is not None and value != ""]
    table = hudi.create_table(str(tmp_path / "t"), schema, record_key="k", buckets=4)
    table.upsert(pa.table([values, [1] * len(values)], schema=schema))
    table.upsert(pa.table([values[:2], [2, 2]], schema=schema))
    stored = pa.schema([("k", case.stored), ("v", pa.int32())])
    assert_all_agree(spark, tmp_path / "t", pa.table([values, [2, 2, *[1] * (len(values) - 2)]], schema=stored))


def test_spark_3_5_cannot_open_parquet_with_times_of_day(spark: Any, tmp_path: Path) -> None:
    """The reason why we store them as integers. When this fails, Spark has learnt it."""
    pq.write_table(pa.table({"t": pa.array([time(1)], pa.time64("us"))}), tmp_path / "t.parquet")
    with pytest.raises(Exception, match="Illegal Parquet type: INT64"):
        spark.read.parquet(str(tmp_path / "t.parquet")).collect()


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us", tz="UTC")], ids=str)
def test_spark_wants_a_setting_for_days_before_1582(spark: Any, tmp_path: Path, kind: pa.DataType) -> None:
    """Files of ours carry no Spark version, so Spark 3.5 asks which calendar was meant; everybody else reads them."""
    old = date(1500, 1, 1) if pa.types.is_date(kind) else datetime(1500, 1, 1, tzinfo=UTC)
    rows = pa.table({"id": ["k"], "at": pa.array([old], kind)})
    hudi.create_table(str(tmp_path / "t"), rows.schema, record_key="id", buckets=1).upsert(rows)
    with pytest.raises(Exception, match="1582"):
        read_by_spark(spark, tmp_path / "t")
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    try:
        assert_same_rows(without_meta(read_by_spark(spark, tmp_path / "t")), rows, "Spark")
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInRead")
    assert_same_rows(read_by_us(tmp_path / "t"), rows, "our reader")


def rows(schema: pa.Schema, which: dict[str, int]) -> pa.Table:
    """Key to number of the value that each of its columns takes; ``schema`` is of given or of stored types."""
    columns = [pa.array(list(which))]
    for name, case in CASES.items():
        kind = schema.field(name).type
        values = case.values if kind == case.given or case.kept is None else case.kept
        columns.append(array([values[number] for number in which.values()], kind))
    return pa.table(columns, schema=schema)


def array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    return pa.array(values, kind)


def data_files(path: Path) -> list[Path]:
    return sorted((file for file in path.iterdir() if file.is_file() and not file.name.startswith(".hoodie")), key=kind)


def kind(file: Path) -> str:
    return "log" if file.name.startswith(".") else "base"
