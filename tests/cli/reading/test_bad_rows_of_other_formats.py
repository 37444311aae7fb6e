"""Bad rows of JSON, Parquet, Avro, ORC and Arrow: the first ends a load, or they are left out, and come back after mending."""

import contextlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from headgate.definition import TableInfo
from headgate.row_formats import RowFormats
from headgate_cli.failures import CommandError
from headgate_cli.load.sending import fitting
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import Source
from headgate_cli.reading.sources import format_of, open_source
from headgate_tables import hudi
from headgate_tables.errors import PartitionValueError

TABLE = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.date32()), pa.field("net", pa.float64())])
LINES = [
    '{"id": 1, "day": "2026-01-01", "net": 1.5}',
    '{"id": "x", "day": "2026-01-02"}',
    '{"id": 3, "day": "never"}',
    "no json",
    '{"id": 5, "day": null, "net": 5}',
    '{"id": 6, "other": 1}',
    "[7]",
    '{"id": 8, "net": 9007199254740993}',
    '{"id": 9, "net": 9.5}',
]
GOOD = [1, 5, 9]


def read(path: Path, types: pa.Schema | None = TABLE, **options: Any) -> tuple[list[dict[str, Any]], BadRows, Source]:
    reading = ReadOptions(**{"skip_bad": True, **options})
    bad = BadRows(reading)
    source = open_source(path, format_of(path), types, reading, bad)
    return [row for piece in source.pieces(0) for row in piece.rows.to_pylist()], bad, source


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_lines_that_are_left_are_those_that_duckdb_keeps(lines: Path) -> None:
    rows, bad, _ = read(lines)
    kinds = "{id: 'BIGINT', day: 'DATE', net: 'DOUBLE'}"
    theirs = duckdb.sql(f"SELECT id FROM read_json('{lines}', columns={kinds}, format='nd', ignore_errors=true)").fetchall()
    assert [row["id"] for row in rows] == GOOD
    assert set(GOOD) <= {key for (key,) in theirs}
    messages = [error.message for error in bad.errors]
    for number, what in ((2, "'id'"), (3, "'never' is no date"), (4, ""), (6, "this column"), (7, ""), (8, "float64")):
        assert any(message.startswith(f"bad.jsonl: row {number}") and what in message for message in messages), messages
    assert len(messages) == 6
    with pytest.raises(CommandError, match="row 2"):
        read(lines, skip_bad=False)
    with pytest.raises(CommandError, match="; 5 bad rows were left out before it"):
        read(lines, max_errors=5)


def test_rejected_lines_are_as_they_were_and_are_loaded_after_mending(lines: Path) -> None:
    rows, bad, source = read(lines)
    rejected = lines.with_name("rejected.jsonl")
    bad.write(rejected, source.header)
    assert sorted(rejected.read_text().splitlines()) == sorted(set(LINES) - {LINES[at - 1] for at in GOOD})
    mended = {'"x"': "2", "never": "2026-01-03", "no json": '{"id": 4}', ', "other": 1': "", "[7]": '{"id": 7}', "0993": "0992"}
    text = rejected.read_text()
    for wrong, right in mended.items():
        text = text.replace(wrong, right)
    rejected.write_text(text)
    more, none, _ = read(rejected)
    assert not none.errors
    assert sorted(row["id"] for row in rows + more) == list(range(1, 10))


def test_a_new_table_gets_its_types_from_the_lines_that_can_be_read_and_the_casts(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": 1, "n": 1}\nbroken\n{"id": 2, "n": "two"}\n{"id": 3, "n": 3}\n')
    with pytest.raises(CommandError, match="'n' has"):
        read(path, None)
    rows, bad, source = read(path, None, casts=(("n", pa.int64()),))
    assert rows == [{"id": 1, "n": 1}, {"id": 3, "n": 3}]
    assert source.schema == pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int64())])
    assert [error.message.partition(",")[0].partition(":")[2] for error in bad.errors] == [" row 2: Invalid value.", " row 3"]
    texts, bad, _ = read(path, None, casts=(("n", pa.string()),))
    assert texts == [{"id": 1, "n": "1"}, {"id": 2, "n": "two"}, {"id": 3, "n": "3"}]
    assert len(bad.errors) == 1


def test_objects_of_an_array_are_left_out_and_broken_text_ends_the_load(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('[{"id": 1},\n {"id": "x"},\n {"id": 3}]')
    rows, bad, source = read(path)
    assert [row["id"] for row in rows] == [1, 3]
    bad.write(tmp_path / "rejected.json", source.header)
    assert json.loads((tmp_path / "rejected.json").read_text()) == {"id": "x"}
    path.write_text('[{"id": 1}, {"id": 2')
    with pytest.raises(CommandError, match="row 2"):
        read(path)


@pytest.mark.slow
@pytest.mark.parametrize("skip", [0, 1, 2, 60_000, 149_998])
def test_a_load_of_lines_goes_on_behind_the_rows_that_were_sent(skip: int, tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    bad = {1, 70_000, 149_999}
    path.write_text("".join(f'{{"id": {repr("x") if n in bad else n}, "net": 0.5}}\n' for n in range(150_000)))
    source = open_source(path, "jsonl", TABLE, ReadOptions(skip_bad=True))
    pieces = list(source.pieces(0))
    sent = [(p.last_row - len(p.rows) + at + 1, n) for p in pieces for at, n in enumerate(p.rows["id"].to_pylist())]
    assert [n for _, n in sent] == [n for n in range(150_000) if n not in bad]
    assert [number for number, _ in sent] == sorted({number for number, _ in sent})
    again = [n for piece in source.pieces(skip) for n in piece.rows["id"].to_pylist()]
    assert again == [n for number, n in sent if number > skip]


def write(path: Path, table: pa.Table) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=1_000)
    elif path.suffix == ".orc":
        orc.write_table(table, path)
    else:
        feather.write_feather(table, str(path))
    return path


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_values_that_do_not_fit_are_left_out_by_row_and_come_back_as_parquet(suffix: str, tmp_path: Path) -> None:
    numbers = [5] * 3_000
    numbers[7] = numbers[2_500] = 2**63
    times = [1_000] * 3_000
    times[2_500] = times[2_999] = 1_001
    table = pa.table(
        {
            "id": pa.array(range(3_000), pa.int64()),
            "n": pa.array(numbers, pa.uint64()),
            "t": pa.array(times, pa.timestamp("ns", "UTC")),
        }
    )
    path = write(tmp_path / f"bad.{suffix}", table)
    rows, bad, source = read(path, None)
    assert [row["id"] for row in rows] == [n for n in range(3_000) if n not in (7, 2_500, 2_999)]
    messages = [error.message.partition(" is no ")[0] for error in bad.errors]
    assert [message.partition(",")[0] for message in messages] == [f"bad.{suffix}: row {n + 1}" for n in (7, 2_500, 2_999)]
    assert "'n'" in messages[0]
    assert "'t'" in messages[2]
    with pytest.raises(CommandError, match="row 8, column 'n'"):
        read(path, None, skip_bad=False)
    with pytest.raises(CommandError, match="--max-errors allows no more"):
        read(path, None, max_errors=2)
    rejected = tmp_path / "rejected.parquet"
    bad.write(rejected, source.header)
    assert pq.read_table(rejected).equals(table.take([7, 2_500, 2_999]))
    more, none, _ = read(rejected, None, casts=(("n", pa.decimal128(20, 0)), ("t", pa.timestamp("us", "UTC"))))
    assert (len(more), more[0]["n"], none.errors) == (3, Decimal(2**63), [])


def fitted(path: Path, form: Any, skip: int = 0, **options: Any) -> tuple[list[dict[str, Any]], BadRows, Source]:
    reading = ReadOptions(**{"skip_bad": True, **options})
    bad = BadRows(reading)
    source = open_source(path, format_of(path), form.schema, reading, bad)
    rows = fitting(source, form, bad).pieces(skip)
    return [row for piece in rows for row in piece.rows.to_pylist()], bad, source


@pytest.fixture
def form(tmp_path: Path) -> Any:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int32())])
    return RowFormats(TableInfo("t", schema, ("id",), (), None, 1, hive_style=False, url="", uuid="", table_version=8)).upsert


ROWS = [(1, 1), (None, 2), (3, 2**31), (4, None), (None, None), (6, 6)]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_rows_that_do_not_fit_the_table_are_left_out_too_by_their_number(suffix: str, form: Any, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.table({"id": [key for key, _ in ROWS], "n": pa.array([n for _, n in ROWS], pa.int64())}), path)
    elif suffix == "csv":
        path.write_text("id,n\n" + "".join(f"{'' if key is None else key},{'' if n is None else n}\n" for key, n in ROWS))
    else:
        path.write_text("".join(json.dumps({"id": key, "n": n}) + "\n" for key, n in ROWS))
    rows, bad, source = fitted(path, form)
    assert [row["id"] for row in rows] == [1, 4, 6]
    assert sorted(error.message.split()[2].strip(",") for error in bad.errors) == ["2", "3", "5"]
    assert all(error.message.startswith(f"rows.{suffix}: row ") for error in bad.errors)
    rejected = tmp_path / f"rejected.{suffix}"
    bad.write(rejected, source.header)
    more, none, _ = read(rejected, pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int64())]))
    assert sorted(str(row["n"]) for row in more) == ["2", str(2**31), "None"]
    assert not none.errors
    with pytest.raises(CommandError, match=rf"rows\.{suffix}: row [23]"):
        fitted(path, form, skip_bad=False)


def test_a_load_that_goes_on_still_rejects_the_rows_before(form: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    keys = [None if n in (5, 2_500) else n for n in range(3_000)]
    pq.write_table(pa.table({"id": keys, "n": pa.array(range(3_000), pa.int32())}), path, row_group_size=1_000)
    rows, bad, _ = fitted(path, form, skip=1_999)
    assert [error.message for error in bad.errors] == [f"rows.parquet: row {row} has no value in 'id'" for row in (6, 2_501)]
    assert [row["id"] for row in rows][-500:] == [key for key in keys[-501:] if key is not None][-500:]
    assert rows[0]["id"] in (1_999, 2_000)


def test_a_row_of_sql_that_does_not_fit_the_table_ends_the_load(form: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,n\n1,1\n2,2\n")
    with pytest.raises(CommandError, match=r"rows\.csv: row 2 has no value in 'id'"):
        fitted(path, form, sql="select nullif(id, 2) as id, n from input")


PARTED = pa.schema([("id", pa.int64()), ("day", pa.string()), ("hour", pa.int32())])
DAYS = ["x", "..", "", ".", None, "__HIVE_DEFAULT_PARTITION__", "a\0b", "ü" * 128, "ü" * 127, "..."]
FOLDERS = (0, 8, 9)


def parted(operation: str) -> Any:
    formats = RowFormats(TableInfo("t", PARTED, ("id",), ("day", "hour"), None, 1, False, "", "", table_version=8))
    return getattr(formats, operation)


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_a_row_whose_partition_no_folder_can_be_named_is_left_out(operation: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    rows = {"id": range(11), "day": [*DAYS, "x"], "hour": pa.array([1] * 10 + [None], pa.int32())}
    pq.write_table(pa.table(rows), path)
    kept, bad, _ = fitted(path, parted(operation))
    assert [row["id"] for row in kept] == list(FOLDERS)
    numbers = [int(error.message.split()[2]) for error in bad.errors]
    assert numbers == [row + 1 for row in range(11) if row not in FOLDERS]
    assert bad.errors[0].message == "rows.parquet: row 2 has '..' in 'day', which no folder can be named"
    assert bad.errors[3].message.endswith("has no value in 'day'")
    assert bad.errors[-1].message.endswith("has no value in 'hour'")
    with pytest.raises(CommandError, match=r"^rows\.parquet: row 2 has '\.\.' in 'day'"):
        fitted(path, parted(operation), skip_bad=False)


def test_what_is_refused_as_a_partition_is_what_a_table_refuses(tmp_path: Path) -> None:
    for at, day in enumerate(DAYS):
        rows = pa.table({"id": [1], "day": pa.array([day], pa.string()), "hour": pa.array([1], pa.int32())})
        table = hudi.create_table(str(tmp_path / str(at)), PARTED, record_key="id", partition_by=["day", "hour"], buckets=1)
        with table, contextlib.nullcontext() if at in FOLDERS else pytest.raises(PartitionValueError):
            table.upsert(rows)
