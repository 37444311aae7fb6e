"""JSON as people have it: lines, arrays, nested objects, with types from the whole file."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from headgate_cli.failures import CommandError
from headgate_cli.reading import json_files, json_text
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import Source
from headgate_cli.reading.sources import open_source
from support.read_files import Read, Refused

UTC = dt.UTC
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=UTC)
BIG = 2**53 + 1


def cast(name: str, kind: pa.DataType) -> dict[str, Any]:
    return {"casts": ((name, kind),)}


READ = {
    "lines": Read('{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n', {}, "int64 string", [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]),
    "lines without an end": Read('{"a": 1}\n\n{"a": 2}', {}, "int64", [{"a": 1}, {"a": 2}]),
    "an array": Read('[{"a": 1}, {"a": 2}]', {}, "int64", [{"a": 1}, {"a": 2}]),
    "an array over lines": Read('[\n {\n  "a": "x\\ny]}"\n },\n{"a":null}\n]\n', {}, "string", [{"a": "x\ny]}"}, {"a": None}]),
    "an array without rows": Read("[ ]", {}, "", []),
    "objects over lines": Read('{\n "a": 1\n}\n{\n "a": 2\n}\n', {}, "int64", [{"a": 1}, {"a": 2}]),
    "objects behind each other": Read('{"a": 1} {"a": 2}', {}, "int64", [{"a": 1}, {"a": 2}]),
    "UTF-16": Read('[{"a": "Köln"}]'.encode("utf-16"), {}, "string", [{"a": "Köln"}]),
    "a mark": Read('\ufeff{"a": "Köln"}\n', {}, "string", [{"a": "Köln"}]),
    "whole numbers, then a float": Read('{"a": 1}\n{"a": 1.5}\n', {}, "double", [{"a": 1.0}, {"a": 1.5}]),
    "a later field": Read('{"a": 1}\n{"b": true}\n', {}, "int64 bool", [{"a": 1, "b": None}, {"a": None, "b": True}]),
    "nulls, then values": Read(
        '{"a": null}\n{"a": [{"b": 1}]}\n', {}, "list<item: struct<b: int64>>", [{"a": None}, {"a": [{"b": 1}]}]
    ),
    "nested objects": Read(
        '{"a": {"b": 1}}\n{"a": {"c": ["2024-01-02"]}}\n',
        {},
        "struct<b: int64, c: list<item: string>>",
        [{"a": {"b": 1, "c": None}}, {"a": {"b": None, "c": ["2024-01-02"]}}],
    ),
    "a large number among whole ones": Read(f'{{"a": {BIG}}}\n{{"a": 1}}\n', {}, "int64", [{"a": BIG}, {"a": 1}]),
    "floats beyond whole ones": Read('{"a": 1e300}\n{"a": 9007199254740994}\n', {}, "double", [{"a": 1e300}, {"a": 2.0**53 + 2}]),
    "digits that are asked for": Read(
        '{"a": 12345678901234567890}\n{"a": 1.25}\n', cast("a", pa.decimal128(22, 2)), "decimal128(22, 2)",
        [{"a": Decimal("12345678901234567890.00")}, {"a": Decimal("1.25")}],
    ),
    "numbers and texts as texts": Read(
        '{"a": 1, "n": 7}\n{"a": "x"}\n{"a": 1.50}\n{"a": {"b": [1]}}\n{"a": null}\n', cast("a", pa.string()), "string int64",
        [{"a": "1", "n": 7}, *({"a": a, "n": None} for a in ("x", "1.50", '{"b": [1]}', None))],
    ),
    "dates": Read('{"a": "2024-01-02"}\n{"a": null}\n', {}, "date32[day]", [{"a": dt.date(2024, 1, 2)}, {"a": None}]),
    "an empty text among dates": Read('{"a": "2024-01-02"}\n{"a": ""}\n', {}, "string", [{"a": "2024-01-02"}, {"a": ""}]),
    "times with zones": Read(
        '{"a": "2024-01-02T12:00:00Z"}\n{"a": "2024-01-02 13:00+01:00"}', {}, "timestamp[us, tz=UTC]", [{"a": NOON}] * 2
    ),
    "a zone that is given": Read(
        '{"a": "2024-01-02 13:00:00"}\n', {"timezone": "Europe/Berlin"}, "timestamp[us, tz=UTC]", [{"a": NOON}]
    ),
    "a date, then words": Read('{"a": "2024-01-02"}\n{"a": "soon"}\n', {}, "string", [{"a": "2024-01-02"}, {"a": "soon"}]),
    "times that stay texts": Read('{"a": "2024-01-02 13:00"}\n', cast("a", pa.string()), "string", [{"a": "2024-01-02 13:00"}]),
    "null words among dates": Read(
        '{"a": "2024-01-02"}\n{"a": "NA"}\n', {"nulls": ("", "NA")}, "date32[day]", [{"a": dt.date(2024, 1, 2)}, {"a": None}]
    ),
    "numbers in texts": Read('{"a": "01"}\n', {}, "string", [{"a": "01"}]),
    "blank lines from a block's end on": Read('{"a":1}\n\n', {}, "int64", [{"a": 1}]),
    "blocks of blank lines": Read('{"a":1}\n' + "\n" * 40, {}, "int64", [{"a": 1}]),
}  # fmt: skip

REFUSED = {
    "numbers and texts": Refused('{"a": 1}\n{"a": "x"}\n', {}, "column 'a' has number and string values", "--cast 'a=string'"),
    "a large number among floats": Refused(f'{{"a": 1.5}}\n{{"a": {BIG}}}\n', {}, f"row 2, column 'a': {BIG}", "=string'"),
    "a large number in a list": Refused(f'{{"a": [1.5, {BIG}]}}\n', {}, f"row 1, column 'a': {BIG}", "--cast 'a=string'"),
    "more than an int64": Refused('{"a": 12345678901234567890123}\n', {}, "row 1, column 'a'", "--cast 'a=decimal(38,0)'"),
    "more than a float32": Refused('{"a": 1e300}\n', cast("a", pa.float32()), "too large", "--null"),
    "times without a zone": Refused('{"a": "2024-01-02 13:00:00"}\n', {}, "without a time zone", "--timezone"),
    "NA among dates": Refused('{"a": "2024-01-02"}\n{"a": "NA"}\n', {}, "but for 'NA'", "--null 'NA'"),
    "a line that is none": Refused('{"a": 1}\n{"a": \n{"a": 3}\n', {}, "row 2", "Correct the"),
    "a field twice": Refused('{"a": 1}\n{"a": 1, "a": 2}\n', {}, "row 2: Column(/a) was specified twice", "Correct the row"),
    "an array that is cut off": Refused('[{"a": 1}, {"a"', {}, "row 2", "Correct the file"),
    "an array that is not closed": Refused('[{"a": 1}', {}, "not closed", "Correct the file"),
    "no comma": Refused('[{"a": 1} {"a": 2}]', {}, "row 2: no comma", "Correct the file"),
    "numbers alone": Refused("[1, 2]", {}, "row 1: 1 is not an object", "Correct the file"),
    "Latin-1": Refused('{"a": "ü"}\n'.encode("latin-1"), {}, "byte 7 in line 1 (0xFC) is not UTF-8", "--encoding"),
}  # fmt: skip


def opened(folder: Path, content: str | bytes, options: dict[str, Any], types: pa.Schema | None = None) -> Source:
    path = folder / "file.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_source(path, "jsonl", types, ReadOptions(**options))


def rows_of(source: Source) -> list[dict[str, Any]]:
    return [row for piece in source.pieces(0) for row in piece.rows.to_pylist()]


@pytest.fixture(params=[None, 8], ids=["whole", "in blocks of eight bytes"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a few lines has many blocks, too: types and rows do not depend on where a block ends."""
    if request.param:
        monkeypatch.setattr(json_text, "BLOCK_BYTES", request.param)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("case", READ.values(), ids=READ)
def test_a_file_has_these_types_and_rows(case: Read, tmp_path: Path) -> None:
    source = opened(tmp_path, case.file, case.options)
    assert " ".join(str(kind) for kind in source.schema.types) == case.types
    assert rows_of(source) == case.rows


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_would_change_or_has_no_place_is_refused_with_what_helps(case: Refused, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        rows_of(opened(tmp_path, case.file, case.options))
    assert case.words in refused.value.message
    assert case.fix in refused.value.fix


def test_two_objects_in_a_line_are_refused_also_beside_a_large_float(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="more than one object in a line") as refused:
        rows_of(opened(tmp_path, '{"a": 1}\n{"a": 1e16}{"a": 2.5}\n', {}))
    assert "Correct the row" in refused.value.fix


_SHARED = ("lines", "an array", "objects over lines", "whole numbers, then a float", "a later field", "nested objects", "dates")


@pytest.mark.parametrize("name", _SHARED)
def test_rows_are_those_that_duckdb_reads(name: str, tmp_path: Path) -> None:
    source = opened(tmp_path, READ[name].file, READ[name].options)
    read = f"SELECT * FROM read_json('{source.path}', sample_size=-1)"
    theirs = duckdb.connect().sql(read).fetchall()
    if name == "nested objects":  # DuckDB takes the texts in the list for dates
        theirs = json.loads(json.dumps(theirs, default=str))
        assert [list(row.values()) for row in rows_of(source)] == theirs
    else:
        assert [tuple(row.values()) for row in rows_of(source)] == theirs


@pytest.mark.parametrize("lines", [True, False])
def test_what_pandas_writes_comes_back(lines: bool, tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2**60], "x": [0.1, None], "s": ["a", "ü\n"]})
    frame.to_json(tmp_path / "frame.json", orient="records", lines=lines)
    assert rows_of(open_source(tmp_path / "frame.json", "jsonl", None)) == [
        {"n": 1, "x": 0.1, "s": "a"},
        {"n": 2**60, "x": None, "s": "ü\n"},
    ]


TABLE = pa.schema(
    [
        ("n", pa.int32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("in", pa.struct([("on", pa.date32()), ("times", pa.list_(pa.timestamp("us", tz="UTC")))])),
        ("price", pa.decimal128(9, 2)),
    ]
)


def test_the_types_of_a_table_hold_inside_objects_too(tmp_path: Path) -> None:
    text = (
        '{"n": 1, "at": "2024-01-02T12:00Z", "in": {"on": "2024-01-02", "times": [null, "2024-01-02T12:00:00Z"]}, "price": 1.1}'
    )
    rows = rows_of(opened(tmp_path, text + '\n{"n": 2, "in": {"times": null}}\n{"in": null}\n', {}, TABLE))
    assert rows == [
        {"n": 1, "at": NOON, "in": {"on": dt.date(2024, 1, 2), "times": [None, NOON]}, "price": Decimal("1.10")},
        {"n": 2, "at": None, "in": {"on": None, "times": None}, "price": None},
        {"n": None, "at": None, "in": None, "price": None},
    ]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('{"n": 1.5}', "row 3, column 'n': 1.5"),
        ('{"at": "2024-01-02 12:00"}', "row 3, column 'at': '2024-01-02 12:00' is no timestamp"),
        ('{"in": {"times": ["2024-01-02T12:00Z", "x"]}}', "row 3, column 'in': 'x'"),
        ('{"price": 1.105}', "row 3, column 'price': 1.105"),
        ('{"other": 1}', "row 3, column 'other': 1: neither the table"),
    ],
)
def test_a_row_that_does_not_fit_the_table_is_named(
    row: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_text, "BLOCK_BYTES", 8)  # columns beside the table's are those of the first block
    with pytest.raises(CommandError) as refused:
        rows_of(opened(tmp_path, '{"n": 1}\n{"n": 2}\n' + row + "\n", {}, TABLE))
    assert words in refused.value.message


@pytest.mark.slow
def test_a_late_row_of_a_large_file_widens_the_types_of_all(tmp_path: Path) -> None:
    lines = '{"n": 1}\n' * 600_000
    source = opened(tmp_path, lines + '{"n": 2.5, "more": "x"}\n', {})
    assert source.schema == pa.schema([("n", pa.float64()), ("more", pa.string())])
    assert json_files.open_json(source.path, source.schema, ReadOptions()).schema == source.schema
    last = [piece.rows.slice(piece.rows.num_rows - 1).to_pylist() for piece in source.pieces(0)]
    assert (len(last) > 1, last[-1]) == (True, [{"n": 2.5, "more": "x"}])


MAPS = pa.schema(
    [("id", pa.int64()), ("m", pa.map_(pa.string(), pa.int64())), ("in", pa.struct([("m", pa.map_(pa.string(), pa.int64()))]))]
)


def test_a_file_without_a_value_in_the_maps_of_a_table_is_read(tmp_path: Path) -> None:
    rows = rows_of(opened(tmp_path, '{"id": 1}\n{"id": 2, "m": null, "in": {"m": null}}\n', {}, MAPS))
    assert rows == [{"id": 1, "m": None, "in": None}, {"id": 2, "m": None, "in": {"m": None}}]


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(("row", "name"), [('{"id": 2, "m": {"a": 1}}', "m"), ('{"id": 2, "in": {"m": {"a": 1}}}', "in")])
def test_an_object_is_no_map_and_the_column_is_named(row: str, name: str, tmp_path: Path) -> None:
    content = f'{{"id": 1}}\n{row}\n{{"id": 3}}\n'
    with pytest.raises(CommandError) as refused:
        rows_of(opened(tmp_path, content, {}, MAPS))
    assert f"file.json: row 2, column {name!r}: {{" in refused.value.message
    assert refused.value.message.endswith(": the table has a map there, and an object of JSON is none")
    assert "Parquet" in refused.value.fix
    assert [row["id"] for row in rows_of(opened(tmp_path, content, {"skip_bad": True}, MAPS))] == [1, 3]
    assert [row["id"] for row in rows_of(opened(tmp_path, content, {"select": ("id",)}, MAPS))] == [1, 2, 3]
