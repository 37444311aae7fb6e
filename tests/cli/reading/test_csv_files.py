"""CSVs as people have them: each ends in the right rows, or in an error that names the option that helps."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from headgate_cli.failures import CommandError
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import Source
from headgate_cli.reading.sources import open_source
from support.read_files import Read, Refused

UTC = dt.UTC
LOCAL_MORNING = dt.datetime.fromisoformat("2024-01-02 03:04")
LOCAL_TIME = pa.timestamp("us")


READ = {
    "semicolons": Read("a;b\n1;x\n2;y,z\n", {}, "int64 string", [(1, "x"), (2, "y,z")]),
    "tabs": Read("a\tb\n1\tx\n", {}, "int64 string", [(1, "x")]),
    "bars": Read("a|b\n1|2\n", {}, "int64 int64", [(1, 2)]),
    "a delimiter that is given": Read("a:b\n1:2\n", {"delimiter": ":"}, "int64 int64", [(1, 2)]),
    "one column with commas in its texts": Read("said\nhello, world\nfoo\n", {}, "string", [("hello, world",), ("foo",)]),
    "quotes": Read('a,b\n1,"x, ""y""\nz"\n', {}, "int64 string", [(1, 'x, "y"\nz')]),
    "other quotes": Read("a,b\n1,'x,y'\n", {"quote": "'"}, "int64 string", [(1, "x,y")]),
    "escaped quotes": Read('a,b\n1,"x\\"y"\n', {"escape": "\\"}, "int64 string", [(1, 'x"y')]),
    "Windows lines": Read("a,b\r\n1,2\r\n", {}, "int64 int64", [(1, 2)]),
    "Macintosh lines": Read("a,b\r1,2\r", {}, "int64 int64", [(1, 2)]),
    "no header": Read("1,Alice\n2,Bob\n", {"columns": ("id", "name")}, "int64 string", [(1, "Alice"), (2, "Bob")]),
    "years as names": Read("in,2019\nDE,1\n", {"header": True}, "string int64", [("DE", 1)]),
    "lines before the header": Read("made by x\na,b\n1,2\n", {"skip_lines": 1}, "int64 int64", [(1, 2)]),
    "UTF-8 with a mark": Read("\ufeffa,b\n1,Köln\n", {}, "int64 string", [(1, "Köln")]),
    "UTF-16": Read("a,b\n1,Köln\n".encode("utf-16"), {}, "int64 string", [(1, "Köln")]),
    "windows-1252": Read("a,b\n1,10 €\n".encode("cp1252"), {"encoding": "cp1252"}, "int64 string", [(1, "10 €")]),
    "leading zeros": Read("zip\n01234\n99999\n", {}, "string", [("01234",), ("99999",)]),
    "whole numbers beyond int64": Read("n\n12345678901234567890\n", {}, "string", [("12345678901234567890",)]),
    "the largest int64": Read("n\n9223372036854775807\n", {}, "int64", [(2**63 - 1,)]),
    "more digits than a float has": Read("x\n0.12345678901234567890\n", {}, "string", [("0.12345678901234567890",)]),
    "more than a float can be": Read("x\n1e400\n", {}, "string", [("1e400",)]),
    "floats": Read("x\n1.5\n-2e3\n+.5\n3\n", {}, "double", [(1.5,), (-2000.0,), (0.5,), (3.0,)]),
    "null words": Read("n\nNA\n3\n", {"nulls": ("", "NA")}, "int64", [(None,), (3,)]),
    "nothing and an empty text": Read('a,b\n1,""\n2,\n3,x\n', {}, "int64 string", [(1, ""), (2, None), (3, "x")]),
    "an empty text among numbers": Read('a,b\n1,""\n2,"3"\n', {}, "int64 int64", [(1, None), (2, 3)]),
    "decimal commas": Read("x;y\n1.234,5;1\n", {"decimal": ",", "thousands": "."}, "double int64", [(1234.5, 1)]),
    "thousands": Read('x\n"1,234"\n"1,234,567.5"\n', {"thousands": ","}, "double", [(1234.0,), (1234567.5,)]),
    "thousands and an exponent": Read('x\n"1,234e3"\n', {"thousands": ","}, "double", [(1234000.0,)]),
    "thousands, hard spaces": Read("x\n1\u00a0234\n12\u00a0345.5\n", {"thousands": "\u00a0"}, "double", [(1234.0,), (12345.5,)]),
    "a short group, hard spaces": Read("x\n1\u00a0234\u00a056\n", {"thousands": "\u00a0"}, "string", [("1\u00a0234\u00a056",)]),
    "a short group behind others": Read('x\n"1,234,56"\n', {"thousands": ","}, "string", [("1,234,56",)]),
    "a short group of decimal commas": Read("x\n1.234.5\n", {"decimal": ",", "thousands": "."}, "string", [("1.234.5",)]),
    "truth": Read("b\ntrue\nFalse\nTRUE\n", {}, "bool", [(True,), (False,), (True,)]),
    "words for truth": Read("b\nja\nNein\n", {"true_words": ("ja",), "false_words": ("nein",)}, "bool", [(True,), (False,)]),
    "numbers stay numbers": Read("b\n1\n0\n", {}, "int64", [(1,), (0,)]),
    "dates": Read("d\n2024-01-02\n2024/1/3\n", {}, "date32[day]", [(dt.date(2024, 1, 2),), (dt.date(2024, 1, 3),)]),
    "dates with dots": Read("d\n31.12.2024\n1.2.2024\n", {}, "date32[day]", [(dt.date(2024, 12, 31),), (dt.date(2024, 2, 1),)]),
    "dates that are described": Read("d\n03/04/2024\n", {"date_format": "%d/%m/%Y"}, "date32[day]", [(dt.date(2024, 4, 3),)]),
    "times with zones": Read(
        "t\n2024-01-02T03:04:05Z\n2024-01-02 03:04:05.25 +0100\n2024-01-02 03:04 UTC\n",
        {},
        "timestamp[us, tz=UTC]",
        [
            (dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),),
            (dt.datetime(2024, 1, 2, 2, 4, 5, 250_000, tzinfo=UTC),),
            (dt.datetime(2024, 1, 2, 3, 4, tzinfo=UTC),),
        ],
    ),
    "nanoseconds that are whole microseconds": Read(
        "t\n2024-01-02T03:04:05.123456000Z\n", {}, "timestamp[us, tz=UTC]",
        [(dt.datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=UTC),)],
    ),
    "nanoseconds": Read("t\n2024-01-02T03:04:05.123456789Z\n", {}, "string", [("2024-01-02T03:04:05.123456789Z",)]),
    "a zone that is given": Read(
        "t\n2024-01-02 03:00:00\n2024-06-02 03:00Z\n",
        {"timezone": "Europe/Berlin"},
        "timestamp[us, tz=UTC]",
        [(dt.datetime(2024, 1, 2, 2, tzinfo=UTC),), (dt.datetime(2024, 6, 2, 3, tzinfo=UTC),)],
    ),
    "clock times that are kept": Read(
        "t\n2024-01-02 03:04\n", {"casts": (("t", LOCAL_TIME),)}, "timestamp[us]", [(LOCAL_MORNING,)]
    ),
    "times that are described": Read(
        "t\n1/2/2024 10:00 PM\n",
        {"timestamp_format": "%m/%d/%Y %I:%M %p", "timezone": "UTC"},
        "timestamp[us, tz=UTC]",
        [(dt.datetime(2024, 1, 2, 22, tzinfo=UTC),)],
    ),
    "decimals that are asked for": Read(
        "x\n1.10\n", {"casts": (("x", pa.decimal128(9, 2)),)}, "decimal128(9, 2)", [(Decimal("1.10"),)]
    ),
    "a date that is none": Read("d\n2024-02-30\n", {}, "string", [("2024-02-30",)]),
    "a column without values": Read("a,b\n1,\n", {}, "int64 null", [(1, None)]),
    "a header alone": Read("a,b\n", {}, "null null", []),
}  # fmt: skip

REFUSED = {
    "Latin-1": Refused("a\n1\nZürich\n".encode("latin-1"), {}, "byte 5 in line 3 (0xFC) is not UTF-8", "--encoding"),
    "UTF-16 without a mark": Refused("a\nb\n".encode("utf-16-le"), {}, "byte 1 in line 1 is NUL", "--encoding"),
    "a cut letter": Refused("a\nü".encode()[:-1], {}, "byte 2 in line 2 (0xC3) is not UTF-8", "--encoding"),
    "ragged rows": Refused("a,b\n1,2\n1,2,3\n", {}, "Expected 2 columns, got 3", "correct the file"),
    "two delimiters": Refused("a;b,c\n1;2,3\n", {}, "comma or semicolon", "--delimiter"),
    "an open quote": Refused('a,b\n1,"x\n2,y\n', {}, "never closed", "--quote"),
    "nothing": Refused("", {}, "Empty", "correct"),
    "no header": Refused("1,Alice\n2,Bob\n", {}, "looks like values", "--columns"),
    "a name twice": Refused("a,a\n1,2\n", {}, "'a' more than once", "--columns"),
    "no name": Refused("a,\n1,2\n", {}, "without a name", "--columns"),
    "NA among numbers": Refused("n\n1\nNA\n", {}, "'n' is int64 but for 'NA'", "--null 'NA'"),
    "decimal commas": Refused("x;y\n1,5;1\n", {}, "decimal comma", "--decimal ,"),
    "a comma that may be both": Refused('x\n"1,234"\n', {}, "a comma", "--thousands ,"),
    "dots in a file of decimal commas": Refused("x;y\n1.500;1\n", {"decimal": ","}, "dots", "--thousands ."),
    "day or month": Refused("d\n03/04/2024\n", {}, "exchanged", "--date-format"),
    "day or month, and a time": Refused("d\n03/04/2024 10:00\n", {}, "exchanged", "--timestamp-format"),
    "times without a zone": Refused("t\n2024-01-02 03:04:05\n", {}, "without a time zone", "--timezone"),
    "an hour that is there twice": Refused(
        "t\n2024-10-27 02:30:00\n", {"timezone": "Europe/Berlin"}, "row 1, column 't': '2024-10-27 02:30:00'", "correct the value"
    ),
    "a zone that is none": Refused("t\n2024-10-27 02:30:00\n", {"timezone": "Mars"}, "'Mars'", "--timezone"),
    "a year of two digits": Refused(
        "d\n03/04/24\n", {"date_format": "%d/%m/%Y", "casts": (("d", pa.date32()),)}, "four digits", "--date-format"
    ),
    "a number that does not fit": Refused("n\n1\n300\n", {"casts": (("n", pa.int8()),)}, "row 2, column 'n': '300'", "--null"),
    "a short group": Refused(
        'n\n"1,234,56"\n', {"thousands": ",", "casts": (("n", pa.int64()),)}, "row 1, column 'n': '1,234,56'", "--null"
    ),
    "a short group of decimal commas": Refused(
        "x;y\n1.234.5;1\n", {"decimal": ",", "thousands": ".", "casts": (("x", pa.float64()),)}, "'1.234.5'", "--null"
    ),
    "more than a float32 can be": Refused("n\n1e300\n", {"casts": (("n", pa.float32()),)}, "too large", "--null"),
    "digits that a decimal lacks": Refused("n\n1.005\n", {"casts": (("n", pa.decimal128(9, 2)),)}, "data loss", "--decimal"),
    "a word that is no truth": Refused("b\nyes\n", {"casts": (("b", pa.bool_()),)}, "'yes' is no bool", "--true"),
}  # fmt: skip


def opened(folder: Path, content: str | bytes, options: dict[str, Any], types: pa.Schema | None = None) -> Source:
    path = folder / "file.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_source(path, "csv", types, ReadOptions(**options))


def rows_of(source: Source) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for piece in source.pieces(0) for row in piece.rows.to_pylist()]


@pytest.mark.parametrize("case", READ.values(), ids=READ)
def test_a_file_has_these_types_and_rows(case: Read, tmp_path: Path) -> None:
    source = opened(tmp_path, case.file, case.options)
    assert " ".join(str(kind) for kind in source.schema.types) == case.types
    assert rows_of(source) == case.rows


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_in_one_way_is_refused_with_the_option_that_helps(case: Refused, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        rows_of(opened(tmp_path, case.file, case.options))
    assert case.words in refused.value.message
    assert case.fix in refused.value.fix


_SHARED = {
    "semicolons": ";",
    "tabs": "\t",
    "bars": "|",
    "quotes": ",",
    "Windows lines": ",",
    "the largest int64": ",",
    "truth": ",",
}


@pytest.mark.parametrize("name", _SHARED)
def test_rows_are_those_that_duckdb_and_pandas_read(name: str, tmp_path: Path) -> None:
    source = opened(tmp_path, READ[name].file, READ[name].options)
    rows = rows_of(source)
    assert rows == duckdb.connect().read_csv(str(source.path)).fetchall()
    frame = pd.read_csv(source.path, sep=_SHARED[name])
    assert rows == [tuple(row) for row in frame.itertuples(index=False)]


@pytest.mark.slow
def test_types_come_from_the_whole_file_and_a_sample_is_only_as_good_as_its_rows(tmp_path: Path) -> None:
    content = "n\n" + "1\n" * 2_000_000 + "x\n"
    assert opened(tmp_path, content, {}).schema.types == [pa.string()]
    sampled = opened(tmp_path, content, {"sample_rows": 1000})
    assert sampled.schema.types == [pa.int64()]
    with pytest.raises(CommandError, match="row 2000001, column 'n': 'x'"):
        for _ in sampled.pieces(0):
            pass


@pytest.mark.slow
def test_a_wrong_byte_far_into_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    lines = b"name\n" + "Köln\n".encode() * 1_500_000
    with pytest.raises(CommandError) as refused:
        opened(tmp_path, lines + b"K\xf6ln\n", {})
    assert f"byte {len(lines) + 1} in line 1500002 (0xF6)" in refused.value.message


def test_the_types_of_a_table_hold_whatever_the_texts_look_like(tmp_path: Path) -> None:
    table = pa.schema([("id", pa.string()), ("on", pa.date32()), ("b", pa.bool_()), ("n", pa.int32())])
    rows = rows_of(opened(tmp_path, "id,on,b,n\n007,31.12.2024,1,3.0\n", {}, table))
    assert rows == [("007", dt.date(2024, 12, 31), True, 3)]


NESTED = {"list": pa.list_(pa.int64()), "struct": pa.struct([("a", pa.int64())]), "map": pa.map_(pa.string(), pa.int64())}


@pytest.mark.parametrize("kind", NESTED.values(), ids=NESTED)
def test_a_text_is_no_list_and_no_struct_and_none_at_all_is_null(kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.schema([("id", pa.int64()), ("n", kind)])
    assert rows_of(opened(tmp_path, 'id,n\n1,\n2,""\n', {}, table)) == [(1, None), (2, None)]
    content = "id,n\n1,\n2,[3]\n3,\n"
    with pytest.raises(CommandError) as refused:
        rows_of(opened(tmp_path, content, {}, table))
    assert refused.value.message == f"file.csv: row 2, column 'n': '[3]' is no {kind}"
    assert "--select" in refused.value.fix
    assert rows_of(opened(tmp_path, content, {"skip_bad": True}, table)) == [(1, None), (3, None)]
