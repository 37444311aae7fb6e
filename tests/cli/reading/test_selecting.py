"""--select: the columns that are named, in their order, whatever the others hold."""

import json
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from headgate_cli.failures import CommandError
from headgate_cli.load.identity import identify
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import Source
from headgate_cli.reading.sources import format_of, open_source

ROWS = [{"id": number, "Full Name": f"name {number}", "n": number * 3} for number in range(5_000)]
TABLE = pa.Table.from_pylist(ROWS)
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "id", "type": "long"}, {"name": "FullName", "type": "string"}, {"name": "n", "type": "long"}],
}


def write(path: Path) -> Path:
    match path.suffix:
        case ".csv":
            path.write_text("id,Full Name,n\n" + "".join(f"{row['id']},{row['Full Name']},{row['n']}\n" for row in ROWS))
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        case ".json":
            path.write_text(json.dumps(ROWS, indent=1))
        case ".parquet":
            pq.write_table(TABLE, path, row_group_size=2_000)
        case ".orc":
            orc.write_table(TABLE, path)
        case _:
            feather.write_feather(TABLE, str(path))
    return path


def read(path: Path, *select: str, types: pa.Schema | None = None, **more: Any) -> pa.Table:
    source: Source = open_source(path, format_of(path), types, ReadOptions(select=select, **more))
    assert source.schema.names == [dict(more.get("renames", ())).get(name, name) for name in select]
    return pa.Table.from_batches([piece.rows for piece in source.pieces(0)], source.schema)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet", "orc", "arrow"])
def test_the_columns_that_are_named_come_in_their_order_as_duckdb_selects_them(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"rows.{suffix}")
    theirs = duckdb.from_arrow(TABLE).select('n, "Full Name"').fetchall()
    found = read(path, "n", "Full Name")
    assert [tuple(row.values()) for row in found.to_pylist()] == theirs
    assert read(path, "n", "Full Name", renames=(("Full Name", "name"),)).column_names == ["n", "name"]


def test_columns_of_avro_are_selected_too(tmp_path: Path) -> None:
    with (tmp_path / "rows.avro").open("wb") as file:
        fastavro.writer(file, AVRO, [{"id": 1, "FullName": "a", "n": 2}])
    assert read(tmp_path / "rows.avro", "n", "id").to_pylist() == [{"n": 2, "id": 1}]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("given", "near"), [("ful name", "Full Name"), ("N", "n"), ("idd", "id")])
def test_a_name_that_is_not_there_is_refused_with_the_nearest(suffix: str, given: str, near: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"rows.{suffix}")
    with pytest.raises(CommandError, match=f"has no column {given!r}$") as refused:
        open_source(path, suffix, None, ReadOptions(select=("id", given)))
    assert refused.value.fix.startswith(f"Did you mean {near!r}? Correct --select")
    assert "id, Full Name, n" in refused.value.fix
    with pytest.raises(CommandError, match=r"has no column 'quite another'$"):
        open_source(path, suffix, None, ReadOptions(select=("quite another",)))


def test_what_is_not_selected_may_be_ambiguous_or_of_a_type_that_no_table_has(tmp_path: Path) -> None:
    csv = tmp_path / "rows.csv"
    csv.write_text("id,at,n\n1,3/4/2026,NA\n2,2026-01-01 10:00:00,2\n")
    with pytest.raises(CommandError):
        open_source(csv, "csv", None)
    assert read(csv, "id").to_pylist() == [{"id": 1}, {"id": 2}]
    parquet = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"at": pa.array([1], pa.timestamp("us")), "id": [1]}), parquet)
    with pytest.raises(CommandError):
        open_source(parquet, "parquet", None)
    assert read(parquet, "id").to_pylist() == [{"id": 1}]


def test_json_may_mix_types_in_a_field_that_is_not_selected_and_have_fields_that_the_table_lacks(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1, "m": 1, "price": 0.1}\n{"id": 2, "m": "x"}\n{"id": 3, "m": {"y": 1}, "new": 1}\n')
    with pytest.raises(CommandError):
        open_source(path, "jsonl", None)
    assert read(path, "price", "id").to_pylist() == [{"price": 0.1, "id": 1}, {"price": None, "id": 2}, {"price": None, "id": 3}]
    with pytest.raises(CommandError, match="'m'"):
        open_source(path, "jsonl", None, ReadOptions(select=("id", "m")))
    table = pa.schema([("id", pa.int32())])
    assert read(path, "id", types=table).to_pylist() == [{"id": 1}, {"id": 2}, {"id": 3}]
    path.write_text('{"id": 1, "m": 1}\n{"id": "x"}\n')
    with pytest.raises(CommandError, match="row 2, column 'id'"):
        read(path, "id", types=table)


def test_a_rejected_line_has_the_columns_that_were_not_selected(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,name,n\n1,a,1\nx,b,NA\n")
    options = ReadOptions(select=("n", "id"), skip_bad=True, casts=(("id", pa.int64()), ("n", pa.int64())), nulls=("", "NA"))
    bad = BadRows(options)
    source = open_source(path, "csv", None, options, bad)
    assert [row for piece in source.pieces(0) for row in piece.rows.to_pylist()] == [{"n": 1, "id": 1}]
    bad.write(tmp_path / "rejected.csv", source.header)
    assert (tmp_path / "rejected.csv").read_text() == '"id","name","n"\n"x","b",\n'


def test_other_columns_are_another_load(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv")
    ways = [(), ("id",), ("id", "n"), ("n", "id")]
    assert len({identify(path, "upsert", ReadOptions(select=way)) for way in ways}) == len(ways)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_column_that_the_file_has_twice_is_refused_unless_others_are_selected(suffix: str, tmp_path: Path) -> None:
    twice = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["id", "a", "a"])
    path = tmp_path / f"twice.{suffix}"
    if suffix == "parquet":
        pq.write_table(twice, path)
    else:
        with pa.ipc.new_file(str(path), twice.schema) as file:
            file.write_table(twice)
    for select in ((), ("id", "a")):
        with pytest.raises(CommandError, match=rf"^twice\.{suffix} has the column 'a' more than once$") as refused:
            open_source(path, suffix, None, ReadOptions(select=select))
        assert "--select" in refused.value.fix
    assert read(path, "id").to_pylist() == [{"id": 1}]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet", "orc", "arrow"])
def test_a_cast_of_a_column_that_is_not_there_is_refused_with_the_nearest(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"rows.{suffix}")
    for select in ((), ("id",)):
        options = ReadOptions(select=select, casts=(("full name", pa.string()),))
        with pytest.raises(CommandError, match=rf"^rows\.{suffix} has no column 'full name'$") as refused:
            open_source(path, format_of(path), None, options)
        assert refused.value.fix.startswith("Did you mean 'Full Name'? Correct --cast; the columns are id, Full Name, n.")
    assert read(path, "id", casts=(("Full Name", pa.string()),)).num_rows == len(ROWS), "it is there, and not selected"


def test_fields_of_json_may_come_after_the_rows_that_types_are_taken_from(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl")
    late = {"casts": (("late", pa.int64()),)}
    open_source(path, "jsonl", None, ReadOptions(sample_rows=1, **late))
    open_source(path, "jsonl", TABLE.schema, ReadOptions(**late))
